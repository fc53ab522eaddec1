#include "exporter/energy/meter/host_meters.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <utility>

#include "base/log.h"
#include "base/strings.h"
#include "exporter/energy/meter/power_model.h"
#include "host/cpu_topology.h"

namespace ceems::exporter::energy {
namespace {

std::optional<Domain> zone_domain(std::string_view name) {
  if (name.starts_with("package")) {  // also package-0-die-1
    return Domain::kPackage;
  }
  if (name == "dram") {
    return Domain::kDram;
  }
  if (name == "psys") {
    return Domain::kNode;
  }
  return std::nullopt;
}

constexpr std::string_view kMsrType = "intel-rapl";

/// Returns "intel-rapl" for "intel-rapl:0:1".
std::string_view control_type(std::string_view entry) {
  return take_until(entry, ':');
}

/// The number N of "package-N" or "package-N-die-M"; nothing for other names.
std::optional<int> package_number(std::string_view name) {
  constexpr std::string_view kPrefix = "package-";
  if (!name.starts_with(kPrefix)) {
    return std::nullopt;
  }
  name.remove_prefix(kPrefix.size());
  return parse_int<int>(take_until(name, '-'));
}

/// The socket of a package, or of the package in which the zone lies; -1 if not known.
int socket_of(const host::PowercapZone& zone,
              const std::vector<host::PowercapZone>& zones,
              const host::CpuTopology& topology) {
  for (const host::PowercapZone& package : zones) {
    const bool around = zone.entry == package.entry || zone.entry.starts_with(package.entry + ":");
    if (const auto number = package_number(package.name); around && number) {
      return topology.socket_of_package(*number);
    }
  }
  return -1;
}

PowerBound zone_bound(host::Powercap& powercap, std::size_t zone, Domain domain) {
  const auto limit = powercap.highest_limit_uw(zone);
  return power_bound(domain,
                     limit ? std::optional(static_cast<double>(*limit) * 1e-6) : std::nullopt);
}

/// Adds the powercap meters. Returns the sum of the packages' long-term power limits.
std::optional<double> add_powercap(const host::Paths& paths,
                                   const host::Powercap::Opener& opener,
                                   Meters& meters) {
  const auto powercap = std::make_shared<host::Powercap>(paths.sys.string(), opener);
  if (!powercap->scan()) {
    return std::nullopt;  // as in most virtual machines
  }
  const auto& zones = powercap->zones();
  std::map<std::string, std::string> type_of_name;  // the control type that counts, by zone name
  for (const host::PowercapZone& zone : zones) {
    const std::string type(control_type(zone.entry));
    std::string& counts = type_of_name.try_emplace(zone.name, type).first->second;
    if (type == kMsrType) {  // prefer it to intel-rapl-mmio, which comes first
      counts = type;
    }
  }
  std::map<std::string, int> next_number;
  const host::CpuTopology topology = host::read_cpu_topology(paths);
  double tdp = 0;
  for (std::size_t i = 0; i < zones.size(); ++i) {
    const auto domain = zone_domain(zones[i].name);
    if (!domain) {
      continue;
    }
    if (type_of_name[zones[i].name] != control_type(zones[i].entry)) {
      continue;
    }
    // The name of a package has its number. Other zones are numbered here, without those left out.
    const int number = *domain == Domain::kPackage ? zones[i].index : next_number[zones[i].name]++;
    meters.push_back(std::make_unique<RaplMeter>(
        powercap, i,
        SourceInfo{.name = fmt::format("rapl-{}-{}", printable(zones[i].name), number),
                   .domain = *domain,
                   .method = Method::kMeasured,
                   .rank = kPsysRank,
                   .socket = socket_of(zones[i], zones, topology)}));
    // Opens the counter while the process still has the privileges of the user who started it. The
    // sampler logs a refusal.
    static_cast<void>(powercap->energy_uj(i).has_value());
    if (*domain == Domain::kPackage) {
      tdp += static_cast<double>(powercap->power_limit_uw(i).value_or(0)) * 1e-6;
    }
  }
  return tdp > 0 ? std::optional(tdp) : std::nullopt;
}

void add_hwmon(const host::Paths& paths, const Clock& clock, Meters& meters) {
  const auto sensors = host::find_hwmon_sensors(paths.sys.string());
  if (!sensors) {
    return;
  }
  const bool has_package =
      std::any_of(meters.begin(), meters.end(), [](const std::shared_ptr<EnergyMeter>& meter) {
        return meter->source().domain == Domain::kPackage;
      });
  for (const host::HwmonSensor& sensor : *sensors) {
    const bool value = sensor.file.property == host::HwmonProperty::kInput ||
                       sensor.file.property == host::HwmonProperty::kAverage;
    const std::string name = fmt::format("hwmon-{}-{}", printable(sensor.chip), sensor.sensor);
    const bool listed =
        std::any_of(meters.begin(), meters.end(), [&](const std::shared_ptr<EnergyMeter>& meter) {
          return meter->source().name == name;  // power1_input beside power1_average
        });
    if (!value || listed) {
      continue;
    }
    const bool power = sensor.file.type == host::HwmonType::kPower;
    if (power && sensor.chip_name == "power_meter") {
      meters.push_back(std::make_unique<HwmonPowerMeter>(sensor.path,
                                                         SourceInfo{.name = name,
                                                                    .domain = Domain::kNode,
                                                                    .method = Method::kMeasured,
                                                                    .rank = kPowerMeterRank},
                                                         clock));
    } else if (power && sensor.chip_name == "fam15h_power" && !has_package) {
      meters.push_back(std::make_unique<HwmonPowerMeter>(
          sensor.path,
          SourceInfo{.name = name, .domain = Domain::kPackage, .method = Method::kMeasured},
          clock));
    } else if (!power && sensor.chip_name == "amd_energy" && sensor.label.starts_with("Esocket") &&
               !has_package) {
      meters.push_back(std::make_unique<HwmonEnergyMeter>(
          sensor.path,
          SourceInfo{.name = name, .domain = Domain::kPackage, .method = Method::kMeasured}));
    }
  }
}

void add_model(const host::Paths& paths, std::optional<double> tdp_watts, Meters& meters) {
  auto model = host_power_model(paths, tdp_watts);
  if (!model) {
    log::warn("power model not available", {{"err", model.error().message}});
    return;
  }
  log::info("power model ready; it counts only if no meter delivers energy",
            {{"basis", model->basis},
             {"idle_watts", model->idle_watts},
             {"full_watts", model->full_watts}});
  meters.push_back(std::make_unique<ModelMeter>(std::move(*model)));
}

}  // namespace

Meters find_meters(const host::Paths& paths,
                   const Clock& clock,
                   const host::Powercap::Opener& opener) {
  Meters meters;
  const auto tdp_watts = add_powercap(paths, opener, meters);
  add_hwmon(paths, clock, meters);
  add_model(paths, tdp_watts, meters);
  return meters;
}

RaplMeter::RaplMeter(std::shared_ptr<host::Powercap> powercap, std::size_t zone, SourceInfo source)
    : powercap_(std::move(powercap)),
      zone_(zone),
      source_(std::move(source)),
      counter_(powercap_->zones().at(zone).max_energy_range_uj,
               zone_bound(*powercap_, zone, source_.domain)) {}

Result<Reading> RaplMeter::read(const MeterContext& context) {
  const auto raw = powercap_->energy_uj(zone_);
  if (!raw) {
    counter_.miss(context, source_);
    return fail(raw.error());
  }
  return counter_.advance(*raw, context, source_);
}

HwmonPowerMeter::HwmonPowerMeter(std::string path, SourceInfo source, const Clock& clock)
    : path_(std::move(path)), source_(std::move(source)), clock_(clock) {}

Result<Reading> HwmonPowerMeter::read(const MeterContext& context) {
  std::optional<Error> error;
  if (context.may_block && context.now >= next_) {
    const auto before = clock_.steady_now();
    const auto microwatts = host::read_hwmon_value(path_);
    const auto after = clock_.steady_now();
    next_ = context.now +
            std::max<Clock::SteadyTime::duration>(kMinPause, kPausePerRead * (after - before));
    if (microwatts && *microwatts > 0) {  // 0 means that the meter has no value
      power_.set({.watts = static_cast<double>(*microwatts) * 1e-6, .time = context.now});
    } else if (!microwatts) {
      error = microwatts.error();
    }
  }
  const auto joules = power_.advance(context.now);
  if (!joules) {
    return fail(error ? std::move(*error)
                      : Error{ErrorCode::kUnavailable, fmt::format("{}: no power reading", path_)});
  }
  return Reading{.joules = *joules,
                 .fresh = power_.fresh().value_or(context.now),
                 .idle_watts = {},
                 .watts = power_.watts()};
}

HwmonEnergyMeter::HwmonEnergyMeter(std::string path, SourceInfo source)
    : path_(std::move(path)),
      source_(std::move(source)),
      counter_(std::numeric_limits<std::uint64_t>::max(), power_bound(source_.domain)) {}

Result<Reading> HwmonEnergyMeter::read(const MeterContext& context) {
  const auto raw = host::read_hwmon_value(path_);
  if (!raw || *raw <= 0) {
    counter_.miss(context, source_);
    return fail(raw ? Error{ErrorCode::kUnavailable, fmt::format("{}: no energy reading", path_)}
                    : raw.error());
  }
  return counter_.advance(static_cast<std::uint64_t>(*raw), context, source_);
}

}  // namespace ceems::exporter::energy
