#pragma once

#include <algorithm>
#include <chrono>

#include "base/clock.h"

namespace ceems::exporter::marks {

/// Limits a rate: `burst` tokens at first, and `rate` new ones a second up to `burst`. Not
/// thread-safe.
class TokenBucket {
 public:
  TokenBucket(double rate, double burst) : rate_(rate), burst_(burst), tokens_(burst) {}

  [[nodiscard]] bool has(Clock::SteadyTime now) {
    if (now > filled_) {
      tokens_ =
          std::min(burst_, tokens_ + rate_ * std::chrono::duration<double>(now - filled_).count());
      filled_ = now;
    }
    return tokens_ >= 1;
  }
  /// Call it after has().
  void spend() { tokens_ -= 1; }
  [[nodiscard]] bool take(Clock::SteadyTime now) {
    const bool has_one = has(now);
    tokens_ -= has_one ? 1 : 0;
    return has_one;
  }

 private:
  double rate_;
  double burst_;
  double tokens_;
  Clock::SteadyTime filled_{};
};

}  // namespace ceems::exporter::marks
