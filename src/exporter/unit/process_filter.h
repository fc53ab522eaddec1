#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "os/privileges.h"

namespace ceems::exporter {

/// Selects processes by their environment, for perf counters and profiling targets. A process is
/// kept if an entry "NAME=value" of its environment starts with one of the given texts. With the
/// manager "slurm", SLURM's own processes (step daemons, batch scripts, sleep) are left out.
/// Immutable and safe for concurrent use.
class ProcessFilter {
 public:
  /// `proc` is where procfs is mounted. Without `variables` every process is kept.
  ProcessFilter(std::filesystem::path proc,
                std::string manager,
                std::vector<std::string> variables);

  [[nodiscard]] bool empty() const { return variables_.empty(); }
  /// Needed to read the environments of other users. None for an empty filter.
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

/// The content of /proc/PID/cmdline with blanks between the arguments and without trailing NULs.
std::string command_line_text(std::string_view cmdline);

/// True for processes of the manager inside a unit, which never carry the user's settings: SLURM's
/// step daemon and batch script, and the "sleep" of its external step.
bool is_manager_process(std::string_view manager, std::string_view command_line);

/// True if an entry "NAME=value" in the content of /proc/PID/environ starts with one of `prefixes`.
/// A prefix "NAME=" therefore selects exactly that variable. Text after the last NUL is not an
/// entry.
bool environment_matches(std::string_view environ, std::span<const std::string> prefixes);

}  // namespace ceems::exporter
