#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/fd.h"
#include "base/mutex.h"
#include "base/result.h"

namespace ceems::exporter::run {

/// What the processes of a job have used.
struct TreeUse {
  double user_seconds = 0;              ///< never decreases
  double system_seconds = 0;            ///< never decreases
  std::uint64_t memory_held_bytes = 0;  ///< now, without files and without shared memory
  std::vector<int> pids;                ///< live ones, ascending
};

/// A line of /proc/PID/stat (proc_pid_stat(5)).
struct ProcessStat {
  bool ended = false;  ///< it is only kept until its parent has waited for it
  int parent = 0;
  std::uint64_t start_ticks = 0;
  /// CPU time of the process and of all children it has waited for, in ticks.
  std::uint64_t user_ticks = 0;
  std::uint64_t system_ticks = 0;
  std::uint64_t resident_pages = 0;
};
/// Nothing if the text is malformed. The command name in it may have any bytes.
std::optional<ProcessStat> parse_process_stat(std::string_view text);

/// Follows the descendants of this process, and other processes for which `belongs` says so.
///
/// The kernel adds the CPU time of a process to its parent's when the parent waits for it, and this
/// process waits for its own children and for orphans (PR_SET_CHILD_SUBREAPER), so nothing is lost
/// between two reads, except of children whose parent ignores SIGCHLD. What processes used before
/// the first read counts for descendants only.
///
/// A read lists all processes of the machine, but reads the files of new ones and of members only.
///
/// Units: seconds, bytes. Safe for concurrent use.
class ProcessTree {
 public:
  /// `self` is the process whose descendants count; it does not.
  ProcessTree(const std::filesystem::path& proc, int self, std::function<bool(int pid)> belongs);

  Result<TreeUse> read() CEEMS_EXCLUDES(mutex_);
  /// Leaves out a child of this process and its descendants. Call it before the next read.
  void leave_out(int pid) CEEMS_EXCLUDES(mutex_);
  /// Waits for all children that have ended, without blocking, and adds their CPU time. `ended` is
  /// called for each with its wait status. False if there is no child any more.
  bool reap(const std::function<void(int pid, int status)>& ended) CEEMS_EXCLUDES(mutex_);
  /// What children used that have been waited for: for tests.
  void add_reaped(double user_seconds, double system_seconds) CEEMS_EXCLUDES(mutex_);

 private:
  struct Member {
    ProcessStat stat;
    std::uint64_t held_pages = 0;
    std::uint64_t held_at = 0;  // resident pages when that was read
  };
  struct Times {
    double user = 0;
    double system = 0;
  };
  Result<> list() CEEMS_REQUIRES(mutex_);
  std::optional<ProcessStat> stat_of(int pid) CEEMS_REQUIRES(mutex_);
  void read_held(int pid, Member& member) CEEMS_REQUIRES(mutex_);
  void keep_vanished(const std::unordered_map<int, Member>& before) CEEMS_REQUIRES(mutex_);
  void find_new(bool first) CEEMS_REQUIRES(mutex_);
  [[nodiscard]] Times times_of(const ProcessStat& stat) const;

  const std::filesystem::path proc_;
  const UniqueFd proc_fd_;
  const int self_;
  const std::function<bool(int pid)> belongs_;
  const double tick_;  // seconds
  const double page_;  // bytes

  Mutex mutex_;
  std::unordered_map<int, Member> members_ CEEMS_GUARDED_BY(mutex_);
  std::unordered_set<int> others_ CEEMS_GUARDED_BY(mutex_);  // known not to be members
  std::unordered_set<int> seen_ CEEMS_GUARDED_BY(mutex_);    // once, without a decision
  std::unordered_set<int> left_out_ CEEMS_GUARDED_BY(mutex_);
  std::vector<int> pids_ CEEMS_GUARDED_BY(mutex_);  // listed now
  Times gone_ CEEMS_GUARDED_BY(mutex_);             // of processes that ended
  Times before_ CEEMS_GUARDED_BY(mutex_);           // what others used before the first read
  Times most_ CEEMS_GUARDED_BY(mutex_);             // that was returned
  std::string buffer_ CEEMS_GUARDED_BY(mutex_);
  bool begun_ CEEMS_GUARDED_BY(mutex_) = false;
};

}  // namespace ceems::exporter::run
