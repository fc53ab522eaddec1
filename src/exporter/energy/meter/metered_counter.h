#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "exporter/energy/meter/counter_unwrap.h"
#include "exporter/energy/meter/meter.h"

namespace ceems::exporter::energy {

/// A hardware counter with the log and the statistics of what it showed and is not believed. Same
/// thread-safety as EnergyMeter.
class MeteredCounter {
 public:
  /// A line is logged for each rejected step, but none sooner than this after another.
  static constexpr auto kLogPause = std::chrono::minutes(1);

  MeteredCounter(std::uint64_t range_uj, PowerBound bound) : counter_(range_uj, bound) {}

  /// The reading of `source` when its counter shows `raw_uj`.
  Reading advance(std::uint64_t raw_uj, const MeterContext& context, const SourceInfo& source);
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
