#include "ingest/trusted_clock.h"

#include <cmath>
#include <cstdlib>

#include "base/log.h"

namespace ceems::ingest {
namespace {

using std::chrono::milliseconds;

// NTP slews the wall clock, so it may deviate from the steady clock by this much without a step.
constexpr milliseconds kMaxDrift = std::chrono::minutes(1);

std::int64_t count_ms(Clock::SteadyTime::duration duration) {
  return std::chrono::duration_cast<milliseconds>(duration).count();
}

}  // namespace

std::int64_t TrustedClock::now_ms() {
  const std::int64_t now = clock_.now_ms();
  const auto steady = clock_.steady_now();
  const std::int64_t expected = last_ms_ + count_ms(steady - last_steady_);
  if (const std::int64_t ahead = now - expected; known_ && ahead > kMaxDrift.count()) {
    if (!ahead_since_ || std::abs(ahead - ahead_ms_) > kMaxDrift.count()) {
      log::warn("the clock has jumped ahead; waiting to see whether it stays",
                {{"seconds", ahead / 1000}});
      ahead_since_ = steady;
      ahead_ms_ = ahead;
    }
    if (steady - *ahead_since_ < doubt_) {
      return expected;
    }
  }
  known_ = true;
  ahead_since_.reset();
  last_ms_ = now;
  last_steady_ = steady;
  return now;
}

}  // namespace ceems::ingest
