#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "base/clock.h"

namespace ceems::ingest {

/// The wall clock, except that a step forward of more than a minute counts only after it has lasted
/// for a while. Otherwise a clock that is wrong for a moment would let windows end in the future,
/// and they would never be fetched again. Steps back count immediately. Not thread-safe.
class TrustedClock {
 public:
  /// A step forward counts after `doubt`. `clock` must outlive the object.
  TrustedClock(const Clock& clock, std::chrono::milliseconds doubt)
      : clock_(clock), doubt_(doubt) {}

  /// Returns epoch milliseconds. While a step forward is not trusted yet, the time does not include
  /// it.
  std::int64_t now_ms();

 private:
  const Clock& clock_;
  const std::chrono::milliseconds doubt_;
  bool known_ = false;  ///< whether the last times below are set
  std::int64_t last_ms_ = 0;
  Clock::SteadyTime last_steady_;
  std::optional<Clock::SteadyTime> ahead_since_;
  std::int64_t ahead_ms_ = 0;
};

}  // namespace ceems::ingest
