#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "exporter/profile/symbol/elf_file.h"

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

}  // namespace ceems::exporter::profile
