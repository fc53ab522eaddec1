#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <utility>

#include "base/fd.h"
#include "base/result.h"
#include "os/command.h"

namespace ceems::os {

/// One end to read and one to write; both close on exec and are none of 0, 1, 2.
struct Pipe {
  UniqueFd read;
  UniqueFd write;
};
Result<Pipe> make_pipe();

/// A started process, leader of its own process group. When the object goes away the group is
/// killed and the leader reaped. Not thread-safe.
class Child {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  /// Starts the command with stdin from /dev/null and the given descriptors as stdout and stderr.
  /// Errors: kInvalidArgument, kNotFound, kPermissionDenied, kTimeout when exec hangs (a dead file
  /// server).
  static Result<Child> start(const Command& command, int output, int errors, Deadline deadline);

  Child(Child&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)),
        as_root_(other.as_root_),
        pidfd_(std::move(other.pidfd_)) {}
  Child& operator=(Child&&) = delete;
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child();

  /// Becomes readable when the process ends; -1 where the kernel is older than 5.3.
  [[nodiscard]] int pidfd() const { return pidfd_.get(); }
  /// True once the process has ended; it is not reaped yet.
  [[nodiscard]] bool ended() const;
  /// Kills what is left of the group, reaps the leader and gives its exit status, or 128 + signal.
  /// Nothing when it does not even end after SIGKILL (stuck in the kernel) within two seconds.
  std::optional<int> finish();

 private:
  Child(pid_t pid, bool as_root);
  void kill_group() const;

  pid_t pid_;
  bool as_root_;
  UniqueFd pidfd_;
};

}  // namespace ceems::os
