#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace ceems::host {

/// The fields of /proc/PID/stat (proc_pid_stat(5)) that identify where a process comes from.
struct ProcessOrigin {
  int parent = 0;
  int session = 0;
  std::uint64_t start_ticks = 0;  ///< since boot, 1/100 s
};

/// Nothing if the text is malformed. The command name in it may contain blanks and parentheses.
std::optional<ProcessOrigin> parse_process_origin(std::string_view stat);

}  // namespace ceems::host
