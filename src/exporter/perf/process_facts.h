#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace ceems::exporter::perf {

/// What tells where a process comes from, of /proc/PID/stat (proc_pid_stat(5)).
struct ProcessFacts {
  int parent = 0;
  int session = 0;
  std::uint64_t start_ticks = 0;  ///< since boot, 1/100 s
};

/// Nothing on a malformed text. The command name in it may hold blanks and parentheses.
std::optional<ProcessFacts> parse_process_facts(std::string_view stat);

/// "0-3,8" as numbers; nothing on a malformed list or one with more than 65536 CPUs.
std::optional<std::vector<int>> parse_cpu_numbers(std::string_view text);

}  // namespace ceems::exporter::perf
