#pragma once

#include "base/clock.h"
#include "base/mutex.h"

namespace ceems::testing {

/// A clock that stands still until a test moves it. Safe for concurrent use.
class FakeClock final : public Clock {
 public:
  [[nodiscard]] SystemTime now() const override {
    const MutexLock lock(mutex_);
    return system_;
  }
  [[nodiscard]] SteadyTime steady_now() const override {
    const MutexLock lock(mutex_);
    return steady_;
  }
  /// Moves both clocks.
  void advance(std::chrono::nanoseconds by) {
    const MutexLock lock(mutex_);
    system_ += std::chrono::duration_cast<SystemTime::duration>(by);
    steady_ += std::chrono::duration_cast<SteadyTime::duration>(by);
  }
  /// Steps only the wall clock, as an administrator or NTP does.
  void step_to(SystemTime to) {
    const MutexLock lock(mutex_);
    system_ = to;
  }

 private:
  mutable Mutex mutex_;
  SystemTime system_ CEEMS_GUARDED_BY(mutex_){
      std::chrono::seconds(1'767'225'600)};  // 2026-01-01T00:00:00Z
  SteadyTime steady_ CEEMS_GUARDED_BY(mutex_){std::chrono::seconds(1000)};
};

}  // namespace ceems::testing
