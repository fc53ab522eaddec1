#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "exporter/profile/symbol/elf_file.h"
#include "exporter/profile/symbol/python/layout.h"

namespace ceems::exporter::profile {

/// The Python interpreter that a binary contains: a libpython, or a program that is linked with it
/// statically.
struct PythonBinary {
  std::uint64_t interpreters = 0;  ///< where the pointer to the list of interpreters is, from the
                                   ///< binary's lowest PT_LOAD address
  PythonLayout layout;
};

/// Looks for CPython 3.6 to 3.15 in a binary by its dynamic symbols, because programs that contain
/// an interpreter have any name. Nothing where there is none, or one of another version.
std::optional<PythonBinary> find_python(const ElfFile& elf);

/// The address that a function's machine code for x86-64 reads and returns, if that is all it does:
/// of `return variable;`. `address` is that of the function.
std::optional<std::uint64_t> returned_variable(std::string_view code, std::uint64_t address);

}  // namespace ceems::exporter::profile
