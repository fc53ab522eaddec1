#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "exporter/perf/events.h"

namespace ceems::exporter::perf {

/// A counter of the kernel and the times that tell how much of the truth it saw: where events share
/// the registers of a CPU each is counted only part of the time.
struct Reading {
  std::uint64_t value = 0;
  std::uint64_t enabled = 0;  ///< ns in which it could have counted
  std::uint64_t running = 0;  ///< ns in which it did
};

/// How much was counted between two readings, scaled to the whole time. A counter that went back
/// was reset: what it has now came since.
std::uint64_t growth(const Reading& before, const Reading& now);

/// What a counter counts: one thread with the threads and processes it makes from now on, or
/// everything in a cgroup and below it on one CPU.
struct Target {
  int thread = -1;     ///< thread id; -1: a cgroup
  int cgroup_fd = -1;  ///< open directory of the cgroup
  int cpu = -1;
};

/// The system calls. Not thread-safe.
class Kernel {
 public:
  virtual ~Kernel() = default;
  /// Opens a counter that counts at once; gives its handle. Errors: kNotFound (this machine counts
  /// no such event), kNoData (the thread, cgroup or CPU is gone), kPermissionDenied, kUnavailable
  /// (no more descriptors or memory), kInvalidArgument (the kernel does not count by cgroup).
  virtual Result<int> open(const Event& event, const Target& target, bool exclude_kernel) = 0;
  virtual std::optional<Reading> read(int handle) = 0;
  virtual void close(int handle) = 0;
};

/// The machine's kernel. Raises CAP_PERFMON around the opening.
class RealKernel final : public Kernel {
 public:
  Result<int> open(const Event& event, const Target& target, bool exclude_kernel) override;
  std::optional<Reading> read(int handle) override;
  void close(int handle) override;
};

}  // namespace ceems::exporter::perf
