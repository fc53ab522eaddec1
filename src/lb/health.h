#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "net/relay/upstream.h"

namespace ceems::lb {

/// A backend to check.
struct HealthTarget {
  std::shared_ptr<net::Upstream> upstream;
  /// Sends it a request and waits for any answer; false when none came in time. Runs on a thread of
  /// its own.
  std::function<bool()> responds;
};

struct HealthTimes {
  std::chrono::milliseconds interval{20'000};       ///< between rounds: probes of all backends
  std::chrono::milliseconds probe_timeout{10'000};  ///< of each
  /// Between probes of those that cannot be reached, and looks for those that are silent.
  std::chrono::milliseconds retry_interval{2500};
  /// How long requests may wait without a byte of any answer before `responds` is asked.
  std::chrono::milliseconds silence{5000};
};

/// Probes backends on a thread of its own: all at the start and once per interval, those that are
/// not alive at each retry. A backend that takes connections but keeps requests waiting is sent a
/// request; while it does not respond it hangs, and is not alive. Each change is logged. A backend
/// that takes its time delays no other.
class HealthChecker {
 public:
  using Targets = std::function<std::vector<HealthTarget>()>;

  /// Starts. `targets` is asked at each retry, on the checker's thread.
  explicit HealthChecker(Targets targets, const HealthTimes& times = {});
  /// Stops: probes end at once, and what `responds` is waited for.
  ~HealthChecker();
  HealthChecker(const HealthChecker&) = delete;
  HealthChecker& operator=(const HealthChecker&) = delete;

  /// Begins a round at once, for when the targets have changed. Thread-safe.
  void check_now();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ceems::lb
