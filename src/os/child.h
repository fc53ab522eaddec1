#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <utility>

#include "base/fd.h"
#include "base/result.h"
#include "os/command.h"

namespace ceems::os {

/// A pipe. Both ends close on exec, and neither is descriptor 0, 1 or 2.
struct Pipe {
  UniqueFd read;
  UniqueFd write;
};
Result<Pipe> make_pipe();

/// A started process, which leads its own process group. The destructor kills the group and reaps
/// the leader. Not thread-safe.
class Child {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  /// Starts the command with stdin from /dev/null and the given descriptors as stdout and stderr.
  /// Errors: kInvalidArgument, kNotFound, kPermissionDenied, or kTimeout if exec hangs (for example
  /// on a dead file server).
  static Result<Child> start(const Command& command, int output, int errors, Deadline deadline);

  Child(Child&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)),
        as_root_(other.as_root_),
        pidfd_(std::move(other.pidfd_)) {}
  Child& operator=(Child&&) = delete;
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child();

  /// Becomes readable when the process ends; -1 on kernels before 5.3.
  [[nodiscard]] int pidfd() const { return pidfd_.get(); }
  /// Whether the process has ended. It is not reaped yet.
  [[nodiscard]] bool ended() const;
  /// Kills the rest of the group, reaps the leader and returns its exit status, or 128 + signal.
  /// Nothing if the leader is stuck in the kernel and does not end within two seconds of SIGKILL.
  std::optional<int> finish();

 private:
  Child(pid_t pid, bool as_root);
  void kill_group() const;

  pid_t pid_;
  bool as_root_;
  UniqueFd pidfd_;
};

}  // namespace ceems::os
