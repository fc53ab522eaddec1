#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "os/privileges.h"

namespace ceems::exporter {

/// Chooses processes by their environment, for perf counters and profiling targets: kept is one
/// with an entry "NAME=value" that starts with one of the given texts. With the manager "slurm" its
/// own processes (step daemons, batch scripts, sleep) are left out. Immutable, safe for concurrent
/// use.
class ProcessFilter {
 public:
  /// `proc` is where procfs is mounted. Without `variables` every process is kept.
  ProcessFilter(std::filesystem::path proc,
                std::string manager,
                std::vector<std::string> variables);

  [[nodiscard]] bool empty() const { return variables_.empty(); }
  /// What reading environments of other users takes; none for an empty filter.
  [[nodiscard]] std::vector<os::Capability> capabilities() const;
  /// The processes to keep, in order. One whose command line or environment cannot be read is
  /// dropped. Raises capabilities() in the calling thread while it reads.
  [[nodiscard]] std::vector<int> keep(std::span<const int> pids) const;

 private:
  [[nodiscard]] bool keeps(int pid, std::string& buffer) const;

  std::filesystem::path proc_;
  std::string manager_;
  std::vector<std::string> variables_;
};

/// Content of /proc/PID/cmdline with blanks between the arguments, without NULs at its end.
std::string command_line_text(std::string_view cmdline);

/// True for the manager's own processes inside a unit, which never carry the user's wishes: step
/// daemon and batch script of SLURM, and the "sleep" of its external step.
bool is_manager_process(std::string_view manager, std::string_view command_line);

/// True when an entry "NAME=value" of the content of /proc/PID/environ starts with one of
/// `prefixes`; a prefix "NAME=" thus means that variable alone. Text behind the last NUL is no
/// entry.
bool environment_matches(std::string_view environ, std::span<const std::string> prefixes);

}  // namespace ceems::exporter
