#include "host/cray_pm_counters.h"

#include <array>
#include <limits>
#include <utility>

#include "exporter/collector.h"
#include "exporter/energy/meter/counter_unwrap.h"
#include "host/read_file.h"

namespace ceems::exporter {
namespace {

constexpr std::uint64_t kMicro = 1'000'000;
constexpr std::uint64_t kMaxJoules = std::numeric_limits<std::uint64_t>::max() / kMicro;

metrics::Desc make_desc(const char* stem, const char* help) {
  // All are gauges, including energy, as in the reference.
  return {std::string("ceems_cray_pm_counters_") + stem,
          help,
          metrics::Type::kGauge,
          {"hostname", "domain"}};
}

struct Quantity {
  std::string_view file;
  metrics::Desc desc;
};

/// Energy of the whole node from <sysfs>/cray/pm_counters/energy, in whole joules at 10 Hz. `fresh`
/// is when the node controller's time stamp last changed. While the controller is not available the
/// stamp stands still and the age grows; the next change counts for the whole time.
class CrayEnergyMeter final : public energy::EnergyMeter {
 public:
  explicit CrayEnergyMeter(std::string sys)
      : sys_(std::move(sys)),
        source_{.name = "cray",
                .domain = energy::Domain::kNode,
                .method = energy::Method::kMeasured,
                .rank = energy::kCrayRank},
        counter_(std::numeric_limits<std::uint64_t>::max(),
                 energy::power_bound(energy::Domain::kNode)) {}

  [[nodiscard]] const energy::SourceInfo& source() const override { return source_; }

  Result<energy::Reading> read(const energy::MeterContext& context) override {
    auto reading = host::read_cray_counter(sys_, "node", "energy");
    if (!reading || reading->value == 0 || reading->value > kMaxJoules) {
      counter_.miss(context, source_);
      return fail(reading ? Error{ErrorCode::kUnavailable, "cray/pm_counters: no energy reading"}
                          : std::move(reading).error());
    }
    const std::optional<std::uint64_t> timestamp_us = reading->timestamp_us;
    if (timestamp_us && timestamp_us == timestamp_us_) {
      return energy::Reading{.joules = 0, .fresh = fresh_, .idle_watts = {}};
    }
    fresh_ = context.now;
    timestamp_us_ = timestamp_us;
    return counter_.advance(reading->value * kMicro, context, source_);
  }
  [[nodiscard]] std::optional<energy::Rejected> rejected() const override {
    return counter_.rejected();
  }

 private:
  std::string sys_;
  energy::SourceInfo source_;
  energy::MeteredCounter counter_;
  std::optional<std::uint64_t> timestamp_us_;
  Clock::SteadyTime fresh_{};
};

class CrayCollector final : public Collector {
 public:
  explicit CrayCollector(const CollectorContext& context)
      : sys_(context.paths.sys), hostname_(context.hostname) {}

  Result<> collect(metrics::Sink& sink) override {
    CEEMS_TRY(domains, host::find_cray_domains(sys_));
    for (const std::string& domain : domains) {
      for (const Quantity& quantity : quantities_) {
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
    if (host::read_cray_counter(sys_, "node", "energy")) {
      sources.meters.push_back(std::make_shared<CrayEnergyMeter>(sys_));
    }
    return sources;
  }

 private:
  std::string sys_;
  std::string hostname_;
  std::array<Quantity, 4> quantities_{
      {{"energy", make_desc("energy_joules", "Energy counter of the domain in joules.")},
       {"power", make_desc("power_watts", "Power of the domain in watts.")},
       {"power_cap", make_desc("power_limit_watts", "Power limit of the domain in watts.")},
       {"temp", make_desc("temp_celsius", "Temperature of the domain in degrees Celsius.")}}};
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
