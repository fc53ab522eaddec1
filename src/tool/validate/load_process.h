#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "tool/validate/plan.h"

namespace ceems::tool::validate {

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
