#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

// What we read about the processes of a cgroup. Formats: proc_pid_status(5), proc_pid_stat(5).
namespace ceems::host {

/// The real user id in /proc/PID/status.
std::optional<std::uint32_t> parse_status_uid(std::string_view status);

/// The start time in /proc/PID/stat, in ticks (1/100 s) since boot. The command name in the text
/// may contain blanks and parentheses.
std::optional<std::uint64_t> parse_start_ticks(std::string_view stat);

/// The CPU time in /proc/PID/stat, user and system together, in ticks (1/100 s).
std::optional<std::uint64_t> parse_cpu_ticks(std::string_view stat);

/// How long a thread ran and how long it was ready but waited for a CPU, in nanoseconds
/// (/proc/PID/task/TID/schedstat, Documentation/scheduler/sched-stats.rst). All 0 where the kernel
/// does not count.
struct ScheduledTime {
  std::uint64_t ran = 0;
  std::uint64_t waited = 0;
};
std::optional<ScheduledTime> parse_schedstat(std::string_view schedstat);

/// The CPUs on which a thread may run, from `Cpus_allowed_list` in /proc/PID/status, ascending.
std::optional<std::vector<int>> parse_allowed_cpus(std::string_view status);

/// The boot time in /proc/stat, in seconds since the epoch. The kernel cuts its fraction off.
std::optional<std::uint64_t> parse_boot_time(std::string_view stat);

/// The time since boot in /proc/uptime, in hundredths of a second.
std::optional<std::uint64_t> parse_uptime(std::string_view uptime);

/// The job id in the command line of a SLURM step daemon ("slurmstepd: [1009248.batch]"). Any
/// process can set such a title, so trust it only for a process of root.
std::optional<std::uint64_t> parse_slurmstepd_job(std::string_view cmdline);

/// The name of `uid` in the text of a passwd(5) file; empty if it is not listed.
std::string_view find_user_name(std::string_view passwd, std::uint32_t uid);

/// The fields of /proc/PID/stat (proc_pid_stat(5)) that identify where a process comes from.
struct ProcessOrigin {
  int parent = 0;
  int session = 0;
  std::uint64_t start_ticks = 0;  ///< since boot, 1/100 s
};

/// Nothing if the text is malformed. The command name in it may contain blanks and parentheses.
std::optional<ProcessOrigin> parse_process_origin(std::string_view stat);

}  // namespace ceems::host
