#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"

namespace ceems::exporter::energy {

/// Converts a hardware energy counter that restarts at 0 after `range` microjoules to joules per
/// interval (Documentation/power/powercap/powercap.rst: max_energy_range_uj).
///
/// - An interval longer than the counter's period counts modulo the range: too little by whole
///   multiples of the range, never too much.
/// - A step down that would mean more than kMaxWatts is a reset (driver reload, suspend) and counts
///   nothing.
/// - A step up that would mean more than kMaxJumpWatts counts nothing either (firmware faults).
/// - When reads failed for longer than kMaxGap, the counter continues from its new value. The
///   energy of a long gap would be charged to the units that run now, so it is left out.
///
/// Not thread-safe.
class CounterUnwrap {
 public:
  static constexpr double kMaxWatts = 4000;         // above any socket or memory of one socket
  static constexpr double kMaxJumpWatts = 100'000;  // above any node
  static constexpr auto kMaxGap = std::chrono::seconds(30);

  explicit CounterUnwrap(std::uint64_t range_uj) : range_uj_(range_uj) {}

  /// Takes the counter's value `raw_uj` at `now` and returns the joules since the last call.
  double advance(std::uint64_t raw_uj, Clock::SteadyTime now);
  /// Records that the counter could not be read.
  void miss() { missed_ = true; }

 private:
  std::uint64_t range_uj_;
  std::optional<std::uint64_t> last_uj_;
  Clock::SteadyTime last_time_{};
  bool missed_ = false;
};

}  // namespace ceems::exporter::energy
