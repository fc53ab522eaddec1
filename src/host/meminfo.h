#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ceems::host {

/// One line of /proc/meminfo (proc_meminfo(5)).
struct MeminfoLine {
  std::string_view key;     ///< before the colon, e.g. "Active(anon)"; points into the text
  std::uint64_t value = 0;  ///< bytes where `is_bytes`, else a plain count
  bool is_bytes = false;
};

/// Appends the lines to `lines` (cleared first; its memory is reused). Blank lines are skipped.
/// kParse with the line number: a line that is not "key: number [unit]".
Result<> parse_meminfo(std::string_view text, std::vector<MeminfoLine>& lines);

}  // namespace ceems::host
