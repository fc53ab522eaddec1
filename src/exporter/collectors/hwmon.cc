#include "host/hwmon.h"

#include <array>
#include <chrono>

#include "exporter/collector.h"

namespace ceems::exporter {
namespace {

constexpr double kHwmonMicroPerUnit = 1e6;
constexpr auto kSearchAgainAfter = std::chrono::minutes(1);

metrics::Desc hwmon_desc(const char* name, const char* help) {
  // All are gauges, including energy, as in the reference.
  return {name, help, metrics::Type::kGauge, {"hostname", "index", "sensor", "chip", "chip_name"}};
}
/// In the order of HwmonProperty.
const std::array kPower{
    hwmon_desc("ceems_hwmon_power_current_watts", "Power that the sensor reads now, in watts."),
    hwmon_desc("ceems_hwmon_power_avg_watts",
               "Average power over the sensor's interval, in watts."),
    hwmon_desc("ceems_hwmon_power_min_watts", "Lowest power that the sensor has seen, in watts."),
    hwmon_desc("ceems_hwmon_power_max_watts", "Highest power that the sensor has seen, in watts.")};
const metrics::Desc kEnergy =
    hwmon_desc("ceems_hwmon_energy_current_joules", "Energy counter of the sensor, in joules.");

const metrics::Desc* desc_of(const host::HwmonFile& file) {
  if (file.type == host::HwmonType::kPower) {
    return &kPower.at(static_cast<std::size_t>(file.property));
  }
  return file.property == host::HwmonProperty::kInput ? &kEnergy : nullptr;
}

class HwmonCollector final : public Collector {
 public:
  explicit HwmonCollector(const CollectorContext& context)
      : sys_(context.paths.sys), hostname_(context.hostname), clock_(*context.clock) {}

  Result<> collect(metrics::Sink& sink) override {
    CEEMS_TRY(search());
    for (const host::HwmonSensor& sensor : sensors_) {
      const metrics::Desc* desc = desc_of(sensor.file);
      const auto value = desc != nullptr ? host::read_hwmon_value(sensor.path) : 0;
      if (value && *value > 0) {
        sink.add(*desc, static_cast<double>(*value) / kHwmonMicroPerUnit,
                 {hostname_, sensor.index, sensor.sensor, sensor.chip, sensor.chip_name});
      }
    }
    return {};
  }

 private:
  Result<> search() {
    const auto now = clock_.steady_now();
    if (!sensors_.empty() && now < next_search_) {
      return {};
    }
    auto found = host::find_hwmon_sensors(sys_);
    if (!found) {
      sensors_.clear();
      return fail(std::move(found).error());
    }
    sensors_ = std::move(*found);
    next_search_ = now + kSearchAgainAfter;
    return {};
  }

  std::string sys_;
  std::string hostname_;
  const Clock& clock_;
  Clock::SteadyTime next_search_{};
  std::vector<host::HwmonSensor> sensors_;
};

}  // namespace

/// --collector.hwmon: ceems_hwmon_power_*_watts and ceems_hwmon_energy_current_joules of all chips
/// below <sysfs>/class/hwmon. Chips may appear and disappear, so the directory is searched again
/// once a minute.
CollectorSpec hwmon_collector() {
  return {.name = "hwmon",
          .help = "Enable the hwmon collector (power and energy sensors of the kernel)",
          .create = [](const CollectorContext& context,
                       const Sources&) -> Result<std::unique_ptr<Collector>> {
            return std::make_unique<HwmonCollector>(context);
          }};
}

}  // namespace ceems::exporter
