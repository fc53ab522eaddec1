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
#include "host/read_file.h"

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

/// A cap of a server that is lower than this is none. In watts.
constexpr double kLeastCap = 200;

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
                                   const host::CounterFile::Opener& opener,
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

/// The highest power to which the platform can cap itself, from the file beside that of the value.
std::optional<double> highest_cap(const host::HwmonSensor& sensor) {
  const std::string base = sensor.path.substr(0, sensor.path.rfind('_'));
  const auto microwatts = host::read_hwmon_value(base + "_cap_max");
  const double watts = microwatts ? static_cast<double>(*microwatts) * 1e-6 : 0;
  return watts >= kLeastCap ? std::optional(watts) : std::nullopt;
}

/// The driver of a sensor. Before Linux 6.15 acpi_power_meter showed its name in the directory of
/// the device only.
std::string driver_of(const host::HwmonSensor& sensor) {
  constexpr std::size_t kMaxText = 256;
  if (!sensor.chip_name.empty()) {
    return sensor.chip_name;
  }
  const auto name =
      host::read_file(sensor.path.substr(0, sensor.path.rfind('/')) + "/name", kMaxText);
  return name ? host::clean_hwmon_name(*name) : std::string();
}

/// What the vendor says that an ACPI power meter measures; empty if nothing.
std::string oem_info(const host::HwmonSensor& sensor) {
  constexpr std::size_t kMaxText = 256;
  const std::string directory = sensor.path.substr(0, sensor.path.rfind('/'));
  const auto text =
      host::read_file(fmt::format("{}/{}_oem_info", directory, sensor.sensor), kMaxText);
  return text ? std::string(trim(*text)) : std::string();
}

/// True if the ACPI power meter is one of a part of the node. It is then taken as a rail, if it is
/// known which and if it has a value: a module without GPUs has meters that show 0.
bool take_rail(const host::HwmonSensor& sensor, const Clock& clock, SocketRails& rails) {
  const std::string text = oem_info(sensor);
  const auto name = parse_rail_name(text);
  if (!name) {
    if (is_part_of_socket(text)) {
      log::info("power meter of an unknown part of a socket left out",
                {{"chip", sensor.chip}, {"oem_info", printable(text)}});
    }
    return is_part_of_socket(text);
  }
  if (const auto value = host::read_hwmon_value(sensor.path); value && *value > 0) {
    rails.add(*name, std::make_unique<HwmonPowerMeter>(sensor.path,
                                                       SourceInfo{.name = printable(text)}, clock));
  }
  return true;
}

void add_hwmon(const host::Paths& paths,
               const Clock& clock,
               const host::CounterFile::Opener& opener,
               const std::shared_ptr<SocketRails>& rails,
               Meters& meters) {
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
    const std::string driver = driver_of(sensor);
    if (power && driver == "power_meter" && take_rail(sensor, clock, *rails)) {
      continue;
    }
    if (power && driver == "power_meter") {
      meters.push_back(std::make_unique<HwmonPowerMeter>(sensor.path,
                                                         SourceInfo{.name = name,
                                                                    .domain = Domain::kNode,
                                                                    .method = Method::kMeasured,
                                                                    .rank = kPowerMeterRank},
                                                         clock, highest_cap(sensor)));
    } else if (power && sensor.chip_name == "fam15h_power" && !has_package) {
      meters.push_back(std::make_unique<HwmonPowerMeter>(
          sensor.path,
          SourceInfo{.name = name, .domain = Domain::kPackage, .method = Method::kMeasured},
          clock));
    } else if (!power && sensor.chip_name == "amd_energy" && sensor.label.starts_with("Esocket") &&
               !has_package) {
      meters.push_back(std::make_unique<HwmonEnergyMeter>(
          host::CounterFile(sensor.path, opener),
          SourceInfo{.name = name, .domain = Domain::kPackage, .method = Method::kMeasured}));
    }
  }
  const Meters found = SocketRails::meters(rails);
  meters.insert(meters.end(), found.begin(), found.end());
}

bool has_apus(const host::Paths& paths) {
  const auto text = host::read_file((paths.proc / "cpuinfo").string());
  return text && is_apu(*text);
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
                   const host::CounterFile::Opener& opener,
                   const SocketParts& parts) {
  Meters meters;
  const auto rails = parts.rails != nullptr ? parts.rails : std::make_shared<SocketRails>();
  const auto tdp_watts = add_powercap(paths, opener, meters);
  add_hwmon(paths, clock, opener, rails, meters);
  if (parts.apu != nullptr && has_apus(paths)) {
    parts.apu->set_topology(host::read_cpu_topology(paths));
    for (auto& meter : meters) {
      if (meter->source().domain == Domain::kPackage) {
        meter = std::make_shared<ApuPackageMeter>(meter, parts.apu);
      }
    }
  }
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

HwmonPowerMeter::HwmonPowerMeter(std::string path,
                                 SourceInfo source,
                                 const Clock& clock,
                                 std::optional<double> capacity_watts)
    : path_(std::move(path)),
      source_(std::move(source)),
      clock_(clock),
      capacity_watts_(capacity_watts) {}

Result<Reading> HwmonPowerMeter::read(const MeterContext& context) {
  std::optional<Error> error;
  if (context.may_block && context.now >= next_) {
    const auto before = clock_.steady_now();
    const auto microwatts = host::read_hwmon_value(path_);
    const auto after = clock_.steady_now();
    next_ = context.now +
            std::max<Clock::SteadyTime::duration>(kMinPause, kPausePerRead * (after - before));
    if (microwatts) {
      power_.set({.watts = static_cast<double>(*microwatts) * 1e-6,
                  .time = context.now,
                  .capacity_watts = capacity_watts_},
                 context.gate);
    } else {
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

HwmonEnergyMeter::HwmonEnergyMeter(host::CounterFile file, SourceInfo source)
    : file_(std::move(file)),
      source_(std::move(source)),
      counter_(std::numeric_limits<std::uint64_t>::max(), power_bound(source_.domain)) {
  // Opens the counter while the process still has the privileges of the user who started it.
  static_cast<void>(file_.read().has_value());
}

Result<Reading> HwmonEnergyMeter::read(const MeterContext& context) {
  const auto raw = file_.read();
  if (!raw || *raw == 0) {
    counter_.miss(context, source_);
    return fail(
        raw ? Error{ErrorCode::kUnavailable, fmt::format("{}: no energy reading", source_.name)}
            : raw.error());
  }
  return counter_.advance(*raw, context, source_);
}

}  // namespace ceems::exporter::energy
