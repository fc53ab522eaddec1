#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "exporter/energy/meter/meter.h"

namespace ceems::exporter::energy {

/// The power that a counter is believed to measure, in watts.
struct PowerBound {
  double expected = 0;  ///< the most that the part draws as far as is known; grows if it draws more
  double ceiling = 0;   ///< more is never believed
};

/// The bound of a meter of `domain`: `limit_watts`, its highest power limit, where that is known
/// and possible, otherwise the power of the largest parts that are sold.
PowerBound power_bound(Domain domain, std::optional<double> limit_watts = {});

/// Converts a hardware energy counter that restarts at 0 after `range` microjoules to joules per
/// interval (Documentation/power/powercap/powercap.rst: max_energy_range_uj).
///
/// - An interval longer than the counter's period counts modulo the range: too little by whole
///   multiples of the range, never too much.
/// - A step may be as large as the expected power in kMargin times the interval and kSlack. A
///   larger step down is a reset (driver reload, suspend) and counts nothing.
/// - A larger step up counts with the power of the interval before, and the rest is held back. If
///   it was a jump (firmware faults), the rest is rejected. If kConfirmations steps in a row show
///   about the same power, for kConfirmTime at least, the part really draws it: the energy held
///   back counts, and the expected power grows.
/// - In an interval in which the machine was suspended, the counter may have gone on, stopped or
///   jumped. At most the power of the interval before counts, for the time in which the machine
///   ran.
/// - When reads failed for longer than kMaxGap, the counter continues from its new value. The
///   energy of a long gap would be charged to the units that run now, so it is left out.
///
/// Joules returned, held back and rejected add up to the steps of the counter without resets.
///
/// Not thread-safe.
class CounterUnwrap {
 public:
  static constexpr double kMargin = 1.25;
  /// Time by which a read may be late, and for which a part may draw more than its limits.
  static constexpr double kSlack = 1;
  static constexpr int kConfirmations = 3;
  static constexpr double kConfirmTime = 2;
  /// Powers that differ by more than this factor do not confirm each other.
  static constexpr double kAgreement = 2;
  static constexpr auto kMaxGap = std::chrono::seconds(30);
  /// Less is the time between the readings of two clocks.
  static constexpr auto kMinSuspend = std::chrono::milliseconds(500);

  CounterUnwrap(std::uint64_t range_uj, PowerBound bound) : range_uj_(range_uj), bound_(bound) {}

  /// Takes the counter's value `raw_uj` at `now` and returns the joules since the last call.
  /// `suspended` is that of MeterContext.
  double advance(std::uint64_t raw_uj,
                 Clock::SteadyTime now,
                 std::chrono::nanoseconds suspended = {});
  /// Records that the counter could not be read.
  void miss();

  /// Whether advance() returned the power of an interval before, or nothing for a reset.
  [[nodiscard]] bool assumed() const { return assumed_; }
  [[nodiscard]] const Rejected& rejected() const { return rejected_; }
  [[nodiscard]] double held_back_joules() const { return held_.joules; }
  [[nodiscard]] double expected_watts() const { return bound_.expected; }

 private:
  /// Steps in a row that are too large and agree with each other.
  struct HeldBack {
    int steps = 0;
    double joules = 0;        ///< the parts of the steps that were not counted
    double total_joules = 0;  ///< the whole steps
    double seconds = 0;
    [[nodiscard]] double watts() const { return seconds > 0 ? total_joules / seconds : 0; }
  };

  [[nodiscard]] std::optional<double> step(std::uint64_t last_uj, std::uint64_t raw_uj) const;
  [[nodiscard]] double usual_joules(double seconds);
  double hold_back(double joules, double seconds);
  void reject(double joules);
  void reject_held_back();

  std::uint64_t range_uj_;
  PowerBound bound_;
  std::optional<std::uint64_t> last_uj_;
  Clock::SteadyTime last_time_{};
  std::chrono::nanoseconds last_suspended_{};
  bool missed_ = false;
  bool assumed_ = false;
  double last_watts_ = 0;  // of the last interval that was believed
  HeldBack held_;
  Rejected rejected_;
};

/// A hardware counter with the log and the statistics of what it showed and is not believed. Same
/// thread-safety as EnergyMeter.
class MeteredCounter {
 public:
  /// A line is logged for each rejected step, but none sooner than this after another.
  static constexpr auto kLogPause = std::chrono::minutes(1);

  MeteredCounter(std::uint64_t range_uj, PowerBound bound) : counter_(range_uj, bound) {}

  /// The reading of `source` when its counter shows `raw_uj`. All ones, which is what a register or
  /// a driver shows that has no value, is kUnavailable.
  Result<Reading> advance(std::uint64_t raw_uj,
                          const MeterContext& context,
                          const SourceInfo& source);
  void miss(const MeterContext& context, const SourceInfo& source);
  [[nodiscard]] Rejected rejected() const { return {.joules = joules_, .steps = steps_}; }

 private:
  void publish(const MeterContext& context, const SourceInfo& source);

  CounterUnwrap counter_;
  Rejected logged_;
  std::optional<Clock::SteadyTime> last_log_;
  std::atomic<double> joules_ = 0;
  std::atomic<std::uint64_t> steps_ = 0;
};

}  // namespace ceems::exporter::energy
