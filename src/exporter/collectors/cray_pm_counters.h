#pragma once

#include <optional>
#include <string>

#include "exporter/collector.h"
#include "exporter/energy/meter/counter_unwrap.h"

namespace ceems::exporter {

/// Energy of the whole node by <sysfs>/cray/pm_counters/energy, in whole joules at 10 Hz. Better
/// than what a BMC answers (energy::kBmcRank). `fresh` is when the node controller's time stamp
/// last moved: it stands still while the controller is away, then the age grows.
class CrayEnergyMeter final : public energy::EnergyMeter {
 public:
  static constexpr int kRank = 5;

  explicit CrayEnergyMeter(std::string sys);

  [[nodiscard]] const energy::SourceInfo& source() const override { return source_; }
  Result<energy::Reading> read(const energy::MeterContext& context) override;

 private:
  std::string sys_;
  energy::SourceInfo source_;
  energy::CounterUnwrap counter_;
  std::optional<std::uint64_t> timestamp_us_;
  Clock::SteadyTime fresh_{};
};

/// --collector.cray_pm_counters: energy, power, power cap and temperature of the node and its parts
/// below <sysfs>/cray/pm_counters. Brings the meter `cray` where the node's energy is there at the
/// start.
CollectorSpec cray_pm_counters_collector();

}  // namespace ceems::exporter
