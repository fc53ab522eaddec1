#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "tool/validate/plan.h"
#include "tool/validate/record.h"

namespace ceems::tool::validate {

/// The work of one thread of a load, in blocks of milliseconds. Each thread has its own. Not
/// thread-safe.
///
/// - compute: products of matrices of doubles that stay in the cache of the core;
/// - scalar: a chain of integer operations and branches, each waiting for the one before;
/// - memory-bound: copies between two buffers that are larger than the caches, as in STREAM.
class Kernel {
 public:
  explicit Kernel(LoadClass load);
  /// Does one block. The result depends on all of it, so that a compiler cannot leave it out.
  double block();

 private:
  double compute();
  double scalar();
  double memory();

  LoadClass load_;
  std::vector<double> left_, right_, out_;
  std::uint64_t state_ = 1;
};

/// Tells which processes use the CPUs, from /proc/N/stat (proc_pid_stat(5)). Not thread-safe.
class BusyProcesses {
 public:
  /// `ticks_per_second` is sysconf(_SC_CLK_TCK).
  BusyProcesses(std::string proc, double ticks_per_second)
      : proc_(std::move(proc)), ticks_per_second_(ticks_per_second) {}

  /// The three processes that used most CPU time since the last call, which was `seconds` ago:
  /// "75 % of a CPU by make (process 17), ...". Empty if none used a hundredth of a CPU.
  std::string since_last(double seconds);

 private:
  struct Use {
    std::string name;
    std::uint64_t ticks = 0;
  };
  [[nodiscard]] std::map<int, Use> read() const;

  std::string proc_;
  double ticks_per_second_;
  std::map<int, Use> last_;  ///< by the number of the process
};

/// The directories in which cgroups are made: that of cgroups v2, or the directories of the
/// controllers cpu, cpuacct and memory of v1, each once. kNotFound if there is none below `root`,
/// such as /sys/fs/cgroup.
Result<std::vector<std::string>> cgroup_roots(const std::string& root);

/// A load: a process of its own in a cgroup of its own, /ceems_validate/NAME, with one thread
/// pinned to each CPU. It is a copy of this process, which must not have other threads when it is
/// started, and is killed with it. The destructor kills it and removes the cgroup. Not thread-safe.
class LoadProcess {
 public:
  /// Returns when all threads run. kPermissionDenied if the cgroup cannot be made or entered: this
  /// needs root. kUnavailable if a thread cannot run on its CPU.
  static Result<LoadProcess> start(const std::vector<std::string>& roots,
                                   const std::string& name,
                                   const Assignment& load);
  LoadProcess(LoadProcess&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)), cgroups_(std::exchange(other.cgroups_, {})) {}
  LoadProcess& operator=(LoadProcess&&) = delete;
  LoadProcess(const LoadProcess&) = delete;
  LoadProcess& operator=(const LoadProcess&) = delete;
  ~LoadProcess();

  [[nodiscard]] pid_t pid() const { return pid_; }
  /// Whether the process has ended by itself, for example because memory ran out.
  [[nodiscard]] bool ended() const;

 private:
  explicit LoadProcess(std::vector<std::string> cgroups) : cgroups_(std::move(cgroups)) {}

  pid_t pid_ = -1;
  std::vector<std::string> cgroups_;
};

}  // namespace ceems::tool::validate
