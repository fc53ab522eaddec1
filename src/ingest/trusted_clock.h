#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "base/clock.h"

namespace ceems::ingest {

/// The wall clock, except that a step ahead of more than a minute counts only once it has lasted:
/// windows that reach into a time that did not come yet would never be fetched again. Steps back
/// count at once. Not thread-safe.
class TrustedClock {
 public:
  /// Steps ahead are believed after `doubt`. `clock` must outlive it.
  TrustedClock(const Clock& clock, std::chrono::milliseconds doubt)
      : clock_(clock), doubt_(doubt) {}

  /// Epoch milliseconds; while a step ahead is doubted, what the clock would show without it.
  std::int64_t now_ms();

 private:
  const Clock& clock_;
  const std::chrono::milliseconds doubt_;
  bool known_ = false;  ///< the last time below was read
  std::int64_t last_ms_ = 0;
  Clock::SteadyTime last_steady_;
  std::optional<Clock::SteadyTime> ahead_since_;
  std::int64_t ahead_ms_ = 0;
};

}  // namespace ceems::ingest
