#pragma once

#include <deque>
#include <optional>

#include "base/clock.h"
#include "base/mutex.h"
#include "exporter/energy/meter/meter.h"
#include "exporter/energy/meter/source_gate.h"

namespace ceems::exporter::energy {

/// Integrates a power that is known at discrete times. Each value holds until the next one, but at
/// most for kMaxHold. After that the meter counts as silent and nothing is added. Not thread-safe.
class HeldPower {
 public:
  static constexpr auto kMaxHold = std::chrono::seconds(120);

  /// Readings must come in the order of their times. Others, and those that `gate` does not believe
  /// (without one: that no meter can mean), are dropped.
  void set(const PowerReading& reading, SourceGate* gate = nullptr);
  /// Joules since the last call that returned any (0 after a gap); nothing without a valid reading.
  std::optional<double> advance(Clock::SteadyTime now);
  /// Time of the newest reading that is not a repetition of what the meter showed long before.
  [[nodiscard]] std::optional<Clock::SteadyTime> fresh() const;
  /// Power of the newest reading.
  [[nodiscard]] std::optional<double> watts() const;

 private:
  std::optional<PowerReading> current_;
  std::optional<Clock::SteadyTime> fresh_;
  std::optional<Clock::SteadyTime> done_;  // integrated up to here
  double pending_joules_ = 0;              // of readings that were replaced since advance()
};

/// A wall meter that another thread reads at its own rate (IPMI, Redfish, Cray). That thread calls
/// publish(), and the sampler reads the meter. publish() is safe from any thread; for read() see
/// EnergyMeter. Must outlive both threads.
class PublishedPowerMeter final : public EnergyMeter {
 public:
  explicit PublishedPowerMeter(SourceInfo source) : source_(std::move(source)) {}

  void publish(const PowerReading& reading);

  [[nodiscard]] const SourceInfo& source() const override { return source_; }
  Result<Reading> read(const MeterContext& context) override;

 private:
  static constexpr std::size_t kMaxQueue = 64;  // when the sampler is stuck, the oldest is dropped
  SourceInfo source_;
  HeldPower power_;
  Mutex mutex_;
  std::deque<PowerReading> queue_ CEEMS_GUARDED_BY(mutex_);
};

}  // namespace ceems::exporter::energy
