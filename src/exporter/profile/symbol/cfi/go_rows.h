#pragma once

#include <cstddef>
#include <vector>

#include "exporter/profile/symbol/unwind_table.h"

namespace ceems::exporter::profile {

/// The rows of a Go program's own functions, which its line table gives even when it is stripped.
/// They cover one range without gaps.
struct GoRows {
  std::vector<UnwindRow> rows;
  std::uint32_t end = 0;  ///< of the range
  std::size_t functions = 0;
  bool truncated = false;
};
GoRows go_rows(const ElfFile& elf, std::size_t max_rows);

}  // namespace ceems::exporter::profile
