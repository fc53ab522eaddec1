#pragma once

#include <cmath>

namespace ceems::exporter::energy {

/// How evenly the counters of an interval were read. Where nothing is known of that, all is 0.
struct Timing {
  /// Seconds by which CPU times were counted for longer than the interval took by the clock, with
  /// its sign: somebody held up the reader between the clock and the counters, or the counters
  /// themselves.
  double slip = 0;
  /// Seconds after the end of the interval by which counters of energy may have been read, and
  /// seconds before it by which CPU times may. If they always are, it does not matter.
  double late = 0;
  double early = 0;
  /// Seconds between the first counter that was read and the last.
  [[nodiscard]] double apart() const { return early + late; }
};

/// A time over which power and use are averaged before something is learned from them.
///
/// Counters that are read too late show more power and more use than there was, and less in the
/// next interval. Both together look like a steep line through power and use. Therefore a window
/// ends only at an interval whose counters were read in time, compared with the length of the
/// window; the longer it is, the less an uneven reading matters. One that finds no end is given up.
///
/// Some machines count CPU times slower or faster than the clock at all times: virtual ones that
/// lose ticks, or do not count what they wait for a CPU. Where two windows in a row were given up
/// with about the same slip, the next ones are compared with that.
///
/// Units: seconds. Source: errors in both variables (Fuller, as in unit_watts.h); the limits are
/// what bench/energy showed to be enough on overloaded nodes.
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
    apart_ = timing.apart();
    if (seconds_ < least_) {
      return Next::kSame;
    }
    const double uneven = std::abs(slip_ - drift_ * seconds_) + std::abs(apart_ - apart_before_);
    if (uneven <= kMaxUneven * seconds_) {
      return Next::kNew;
    }
    if (seconds_ < kMaxWindows * least_) {
      return Next::kSame;
    }
    const double slip = slip_ / seconds_;
    drift_ = std::abs(slip - given_up_) <= kSame * std::abs(slip) ? slip : 0;
    given_up_ = slip;
    return Next::kGivenUp;
  }
  void restart() {
    seconds_ = 0;
    slip_ = 0;
    apart_before_ = apart_;
  }
  [[nodiscard]] double seconds() const { return seconds_; }

 private:
  static constexpr double kMaxUneven = 0.01;  // of its length
  static constexpr double kMaxWindows = 6;    // of the usual length
  static constexpr double kSame = 0.25;       // of a slip

  double least_;
  double seconds_ = 0;
  double slip_ = 0;
  double drift_ = 0;         // the slip of each second where readings are even
  double given_up_ = 0;      // that of the last window that was given up
  double apart_ = 0;         // of the last interval
  double apart_before_ = 0;  // of the one before the window
};

}  // namespace ceems::exporter::energy
