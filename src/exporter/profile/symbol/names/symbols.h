#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"
#include "exporter/profile/symbol/elf_file.h"
#include "exporter/profile/symbol/names/symbol_table.h"

namespace ceems::exporter::profile {

/// A function of a Go program. Offsets count from the start of the line table.
struct GoFunction {
  std::uint64_t address = 0;
  std::uint64_t end = 0;
  std::uint64_t name = 0;         ///< offset of its name
  std::uint64_t stack_sizes = 0;  ///< offset of the sizes of its frame by program counter
  bool is_outermost = false;      ///< nothing calls it, such as runtime.goexit; known since Go 1.18
  bool switches_stacks = false;   ///< sizes do not lead to its caller; likewise
};

/// The section with the line table (.gopclntab); null if the binary is not a Go program.
const Section* go_line_table(const ElfFile& elf);

/// Calls `found` for the functions of a Go program by address, until it returns false. Calls
/// nothing if there is no line table of Go 1.2, 1.16, 1.18 or 1.20 and later.
void each_go_function(const ElfFile& elf, const std::function<bool(const GoFunction&)>& found);

/// Opens another file of the process that the binary belongs to, by an absolute path.
using FileOpener = std::function<Result<BinaryFile>(const std::string& path)>;

/// The functions of a binary. Sources in order of precedence: the line table of Go programs; the
/// separate debug file, by build id in /usr/lib/debug/.build-id, or by debug link beside the
/// binary, in its .debug/ and in /usr/lib/debug; the binary's symbol tables; its mini debug info.
/// If there are none but dynamic symbols, `source` is asked, unless it is null. @param path of the
/// binary, which a debug link is relative to
SymbolTable read_symbols(const ElfFile& elf,
                         const std::string& path,
                         const FileOpener& open,
                         const SymbolLimits& limits = {},
                         DebugFileSource* source = nullptr);

/// Adds the functions of .symtab and .dynsym, as offsets from `base`.
void add_elf_symbols(const ElfFile& elf, std::uint64_t base, SymbolTableBuilder& builder);
/// Adds the functions in a Go program's .gopclntab (Go 1.2, 1.16, 1.18 and from 1.20). Adds none if
/// it has no such table.
void add_go_symbols(const ElfFile& elf, SymbolTableBuilder& builder);

/// The ELF file in .gnu_debugdata, which Fedora and RHEL add to stripped binaries. kNotFound if
/// there is none, or no liblzma to decompress it.
Result<ElfFile> mini_debug_info(const ElfFile& elf);

}  // namespace ceems::exporter::profile
