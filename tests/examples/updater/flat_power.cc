// A complete updater, as an example. CONTRIBUTING.md says where its parts stand when it is one of
// the API server.

#include <memory>
#include <stop_token>
#include <vector>

#include "config/section.h"
#include "ingest/updater/updater.h"

namespace ceems::ingest {
namespace {

constexpr model::Metric kEnergy = model::Metric::kTotalCpuEnergyUsageKwh;
constexpr double kJoulesPerKwh = 3.6e6;
constexpr double kMaxWatts = 10'000;

/// Estimates the energy of units without a meter: their reserved CPU time in the window, in
/// CPU-seconds, times the power of one CPU.
class FlatPowerUpdater final : public Updater {
 public:
  explicit FlatPowerUpdater(double watts_per_cpu) : watts_per_cpu_(watts_per_cpu) {}

  Result<Missing> update(const UpdateRequest& /*request*/,
                         std::vector<model::Unit>& units,
                         std::stop_token /*stop*/) override {
    for (model::Unit& unit : units) {
      const auto cpu_seconds = unit.total_time_seconds.find("alloc_cputime");
      if (cpu_seconds == unit.total_time_seconds.end()) {
        continue;
      }
      unit.metric(kEnergy) = {{"total", cpu_seconds->second * watts_per_cpu_ / kJoulesPerKwh}};
      unit.has_metric[static_cast<std::size_t>(kEnergy)] = true;
    }
    return Missing{};
  }

  [[nodiscard]] bool gives(model::Metric metric) const override { return metric == kEnergy; }

 private:
  double watts_per_cpu_;
};

Result<std::unique_ptr<Updater>> create_flat_power(const UpdaterConfig& config,
                                                   const Clock& /*clock*/) {
  double watts_per_cpu = 10;
  config::Section section(config.extra);
  section.number("watts_per_cpu", watts_per_cpu)
      .refuse(watts_per_cpu < 0 || watts_per_cpu > kMaxWatts, "watts_per_cpu",
              "expected watts from 0 to 10000");
  CEEMS_TRY(section.done());
  return std::make_unique<FlatPowerUpdater>(watts_per_cpu);
}

}  // namespace

/// updaters[].updater: flat_power, which scales reserved CPU time to energy.
UpdaterSpec flat_power_updater() {
  return {.name = "flat_power",
          .source = "the CPUs that units reserve",
          .extra_keys = {"watts_per_cpu"},
          .create = create_flat_power};
}

}  // namespace ceems::ingest
