#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ceems::host {

/// One line of /proc/meminfo (proc_meminfo(5)).
struct MeminfoLine {
  std::string_view key;     ///< before the colon, e.g. "Active(anon)"; points into the text
  std::uint64_t value = 0;  ///< bytes if `is_bytes`, otherwise a plain count
  bool is_bytes = false;
};

/// Replaces the content of `lines`, whose memory is reused. Skips blank lines. kParse, with the
/// line number: a line is not "key: number [unit]".
Result<> parse_meminfo(std::string_view text, std::vector<MeminfoLine>& lines);

}  // namespace ceems::host
