#pragma once

#include <cmath>

namespace ceems::exporter::energy {

/// How evenly the counters of an interval were read. Where nothing is known of that, all is 0.
struct Timing {
  /// Seconds by which CPU times were counted for longer than the interval took by the clock, with
  /// its sign: somebody held up the reader between the clock and the counters, or the counters
  /// themselves.
  double slip = 0;
  /// Seconds after the end of the interval by which counters of energy may have been read. If they
  /// are always so late, it does not matter.
  double late = 0;
};

/// A time over which power and use are averaged before something is learned from them.
///
/// Counters that are read too late show more power and more use than there was, and less in the
/// next interval. Both together look like a steep line through power and use. Therefore a window
/// ends only at an interval whose counters were read in time, compared with the length of the
/// window; the longer it is, the less an uneven reading matters. One that finds no end is given up.
class Window {
 public:
  explicit Window(double seconds) : least_(seconds) {}

  /// What begins with the next interval.
  enum class Next { kSame, kNew, kGivenUp };
  /// Adds an interval. kNew: it completed the window. kGivenUp: what it saw is to be forgotten.
  /// restart() begins the next one.
  Next add(double seconds, const Timing& timing) {
    seconds_ += seconds;
    slip_ += timing.slip;
    late_ = timing.late;
    if (seconds_ < least_) {
      return Next::kSame;
    }
    if (std::abs(slip_) + std::abs(late_ - late_before_) <= kMaxUneven * seconds_) {
      return Next::kNew;
    }
    return seconds_ < kMaxWindows * least_ ? Next::kSame : Next::kGivenUp;
  }
  void restart() {
    seconds_ = 0;
    slip_ = 0;
    late_before_ = late_;
  }
  [[nodiscard]] double seconds() const { return seconds_; }

 private:
  static constexpr double kMaxUneven = 0.01;  // of its length
  static constexpr double kMaxWindows = 6;    // of the usual length

  double least_;
  double seconds_ = 0;
  double slip_ = 0;
  double late_ = 0;         // of the last interval
  double late_before_ = 0;  // of the one before the window
};

}  // namespace ceems::exporter::energy
