#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "exporter/perf/events.h"

namespace ceems::exporter::perf {

/// A counter of the kernel and the times that show how much it missed: if events share the
/// registers of a CPU, each is counted only part of the time.
struct Reading {
  std::uint64_t value = 0;
  std::uint64_t enabled = 0;  ///< ns in which it was enabled
  std::uint64_t running = 0;  ///< ns in which it counted
};

/// The events between two readings, scaled to the whole time. A counter that decreased was reset,
/// so all of its value came since.
std::uint64_t growth(const Reading& before, const Reading& now);

/// What a counter counts: one thread with the threads and processes that it creates from now on, or
/// everything in a cgroup and below it on one CPU.
struct Target {
  int thread = -1;     ///< thread id; -1 for a cgroup
  int cgroup_fd = -1;  ///< open directory of the cgroup
  int cpu = -1;
};

/// The system calls of perf events. Not thread-safe.
class Kernel {
 public:
  virtual ~Kernel() = default;
  /// Opens a counter, which starts at once, and returns its handle. Errors: kNotFound (this machine
  /// does not support the event), kNoData (the thread, cgroup or CPU is gone), kPermissionDenied,
  /// kUnavailable (no descriptors or memory left), kInvalidArgument (the kernel does not count by
  /// cgroup).
  virtual Result<int> open(const Event& event, const Target& target, bool exclude_kernel) = 0;
  virtual std::optional<Reading> read(int handle) = 0;
  virtual void close(int handle) = 0;
};

/// Names of the `events` (indices into all_events()) that this machine does not support,
/// found by opening each for this process. Errors other than kNotFound do not count.
std::vector<std::string> unsupported_events(Kernel& kernel,
                                            std::span<const std::size_t> events,
                                            bool exclude_kernel);

/// The machine's kernel. Raises CAP_PERFMON while it opens a counter.
class RealKernel final : public Kernel {
 public:
  Result<int> open(const Event& event, const Target& target, bool exclude_kernel) override;
  std::optional<Reading> read(int handle) override;
  void close(int handle) override;
};

}  // namespace ceems::exporter::perf
