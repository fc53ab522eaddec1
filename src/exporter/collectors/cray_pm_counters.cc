#include "host/cray_pm_counters.h"

#include <array>
#include <utility>

#include "exporter/collector.h"
#include "exporter/energy/meter/cray_meter.h"
#include "host/read_file.h"

namespace ceems::exporter {
namespace {

metrics::Desc cray_desc(const char* stem, const char* help) {
  // All are gauges, including energy, as in the reference.
  return {std::string("ceems_cray_pm_counters_") + stem,
          help,
          metrics::Type::kGauge,
          {"hostname", "domain"}};
}

struct CrayQuantity {
  std::string_view file;
  metrics::Desc desc;
};

class CrayCollector final : public Collector {
 public:
  explicit CrayCollector(const CollectorContext& context)
      : sys_(context.paths.sys), hostname_(context.hostname) {}

  Result<> collect(metrics::Sink& sink) override {
    CEEMS_TRY(domains, host::find_cray_domains(sys_));
    for (const std::string& domain : domains) {
      for (const CrayQuantity& quantity : quantities_) {
        const auto reading = host::read_cray_counter(sys_, domain, quantity.file);
        if (reading && reading->value > 0) {  // 0 means "no cap" or "no sensor"
          sink.add(quantity.desc, static_cast<double>(reading->value), {hostname_, domain});
        }
      }
    }
    return {};
  }

  [[nodiscard]] Sources sources() const override {
    Sources sources;
    if (auto meter = energy::find_cray_meter(sys_)) {
      sources.meters.push_back(std::move(meter));
    }
    return sources;
  }

 private:
  std::string sys_;
  std::string hostname_;
  std::array<CrayQuantity, 4> quantities_{
      {{"energy", cray_desc("energy_joules", "Energy counter of the domain in joules.")},
       {"power", cray_desc("power_watts", "Power of the domain in watts.")},
       {"power_cap", cray_desc("power_limit_watts", "Power limit of the domain in watts.")},
       {"temp", cray_desc("temp_celsius", "Temperature of the domain in degrees Celsius.")}}};
};

}  // namespace

/// --collector.cray_pm_counters: energy, power, power cap and temperature of the node and its
/// parts, from <sysfs>/cray/pm_counters. Provides the meter `cray` if the node's energy is
/// available at the start.
CollectorSpec cray_pm_counters_collector() {
  return {.name = "cray_pm_counters",
          .help = "Enable the cray_pm_counters collector (power counters of HPE Cray nodes)",
          .create = [](const CollectorContext& context,
                       const Sources&) -> Result<std::unique_ptr<Collector>> {
            const std::string sys = context.paths.sys;
            if (!host::is_directory(sys)) {
              return fail(ErrorCode::kInvalidArgument, "--path.sysfs: {} is not a directory", sys);
            }
            return std::make_unique<CrayCollector>(context);
          }};
}

}  // namespace ceems::exporter
