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
  /// Sends a request to the backend. Returns whether any answer came in time. Runs on its own
  /// thread.
  std::function<bool()> responds;
};

struct HealthTimes {
  std::chrono::milliseconds interval{
      20'000};  ///< between rounds, each of which probes all backends
  std::chrono::milliseconds probe_timeout{10'000};  ///< of one probe
  /// Between probes of backends that are down, and between checks for backends that hang.
  std::chrono::milliseconds retry_interval{2500};
  /// How long requests may wait without a byte of any answer before `responds` is called.
  std::chrono::milliseconds silence{5000};
};

/// Probes backends on its own thread: all of them at the start and once per interval, those that
/// are down at each retry. A backend that accepts connections but keeps requests waiting is sent a
/// health request. While it does not respond, it counts as down. One that is doubted is sent a
/// health request, too, and is down at least until the next retry if it does not respond. Each
/// change is logged. A slow backend does not delay the others.
class HealthChecker {
 public:
  using Targets = std::function<std::vector<HealthTarget>()>;

  /// Starts the thread, which calls `targets` at each retry.
  explicit HealthChecker(Targets targets, const HealthTimes& times = {});
  /// Stops the thread. Probes are cancelled at once; calls of `responds` are waited for.
  ~HealthChecker();
  HealthChecker(const HealthChecker&) = delete;
  HealthChecker& operator=(const HealthChecker&) = delete;

  /// Starts a round at once, because the targets have changed. Thread-safe.
  void check_now();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ceems::lb
