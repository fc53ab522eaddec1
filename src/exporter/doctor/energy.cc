#include <linux/capability.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/clock.h"
#include "exporter/doctor/doctor.h"
#include "exporter/doctor/meter_check.h"
#include "exporter/doctor/report.h"
#include "exporter/doctor/validation.h"
#include "exporter/energy/meter/held_power.h"
#include "exporter/energy/meter/host_meters.h"
#include "exporter/energy/meter/power_model.h"
#include "exporter/energy/meter/reading_gate.h"
#include "exporter/energy/options.h"
#include "exporter/source/privileged_open.h"
#include "host/hwmon.h"
#include "host/powercap.h"

namespace ceems::exporter {
namespace {

using energy::Domain;
using energy::Method;
using energy::SourceInfo;

constexpr const char* kLoadCommand = "stress-ng --cpu 0 --cpu-method matrixprod";

/// Whether the exporter can read the counters of powercap.
bool can_read_powercap(const DoctorContext& context) {
  host::Powercap powercap(context.paths.sys);
  return context.may_raise(CAP_DAC_READ_SEARCH) || !powercap.scan() ||
         std::ranges::all_of(powercap.zones(), [](const host::PowercapZone& zone) {
           return world_readable(zone.path + "/energy_uj");
         });
}

/// Whether the exporter can read the sensor of the meter `name`, "hwmon-CHIP-SENSOR".
bool can_read_sensor(const DoctorContext& context, std::string_view name) {
  const auto sensors = host::find_hwmon_sensors(context.paths.sys);
  return sensors && std::ranges::any_of(*sensors, [&](const host::HwmonSensor& sensor) {
           return name == fmt::format("hwmon-{}-{}", sensor.chip, sensor.sensor) &&
                  world_readable(sensor.path);
         });
}

/// Whether an earlier finding says that the collector is on and works.
bool works(const DoctorContext& context, const Findings& findings, std::string_view collector) {
  return context.wanted.contains(collector) &&
         std::ranges::any_of(findings, [&](const Finding& finding) {
           return finding.collector == collector && finding.state == Finding::State::kWorks &&
                  !finding.cause.ends_with("capmc");  // whose readings are not used
         });
}

struct Found {
  std::vector<SourceInfo> sources;
  std::optional<energy::PowerModel> model;
  std::vector<std::string> unmoved;  // counters

  [[nodiscard]] bool has(Domain domain) const {
    return std::ranges::any_of(sources,
                               [domain](const auto& source) { return source.domain == domain; });
  }
  /// The source of the node's energy with the lowest rank; null for the sum of known domains.
  [[nodiscard]] const SourceInfo* wall() const {
    const SourceInfo* best = nullptr;
    for (const SourceInfo& source : sources) {
      if (source.domain == Domain::kNode && (best == nullptr || source.rank < best->rank)) {
        best = &source;
      }
    }
    return best;
  }
};

/// The collector whose finding speaks of the meter.
std::string_view collector_of(const SourceInfo& source) {
  const std::string_view name = source.name;
  return name.starts_with("rapl-")                                 ? "rapl"
         : name.starts_with("hwmon-") || name.starts_with("acpi-") ? "hwmon"
                                                                   : name;
}

/// A meter that does not count, although its collector may have found that it works.
void report_doubt(const SourceInfo& source, energy::Doubt doubt, Findings& findings) {
  constexpr const char* kFix =
      "compare it with a wattmeter, reset the BMC (ipmitool mc reset cold) or update the firmware; "
      "meanwhile the service leaves it out (docs/energy.md#which-readings-are-believed)";
  const std::string_view collector = collector_of(source);
  const std::string cause =
      fmt::format("{} is not believed: {}", source.name, energy::explain(doubt));
  const auto own = std::ranges::find_if(findings, [&](const Finding& finding) {
    return finding.collector == collector && finding.state != Finding::State::kOff;
  });
  if (own == findings.end()) {
    findings.push_back(
        {.collector = "energy", .state = Finding::State::kCannot, .cause = cause, .fix = kFix});
  } else if (own->state == Finding::State::kWorks) {
    own->state = Finding::State::kCannot;
    own->cause += "; " + cause;
    own->fix = kFix;
  } else if (doubt != energy::Doubt::kUnreadable) {  // which it says itself
    own->cause += "; " + cause;
  }
}

/// The meters that the exporter would have with these flags, and believe.
Found find(const DoctorContext& context, Findings& findings) {
  Found found;
  auto meters = energy::find_meters(context.paths, real_clock(), open_privileged);
  if (const energy::ModelMeter* model = energy::find_model(meters)) {
    found.model = model->model();
  }
  const bool powercap = can_read_powercap(context);
  std::erase_if(meters, [&](const std::shared_ptr<energy::EnergyMeter>& meter) {
    const std::string& name = meter->source().name;
    return name.starts_with("hwmon-") ? !can_read_sensor(context, name)
                                      : name.starts_with("rapl-") && !powercap;
  });
  const auto add = [&](const char* name, int rank) {
    if (!works(context, findings, name)) {
      return;
    }
    const SourceInfo source{.name = name, .domain = Domain::kNode, .rank = rank};
    const auto finding = std::ranges::find_if(findings, [name](const Finding& each) {
      return each.collector == name && each.node_watts;
    });
    if (finding == findings.end()) {
      found.sources.push_back(source);
      return;
    }
    auto meter = std::make_shared<energy::PublishedPowerMeter>(source);
    meter->publish({.watts = finding->node_watts.value_or(0), .time = real_clock().steady_now()});
    meters.push_back(std::move(meter));
  };
  add("ipmi_dcmi", energy::kIpmiRank);
  add("redfish", energy::kRedfishRank);
  const auto checks = check_meters(meters, context.paths, context.rapl_watch);
  std::vector<SourceInfo> believed;
  for (std::size_t i = 0; i < meters.size(); ++i) {
    const SourceInfo& source = meters[i]->source();
    if (checks[i].unmoved) {
      found.unmoved.push_back(source.name);
    }
    if (const auto& doubt = checks[i].doubt) {
      report_doubt(source, *doubt, findings);
    } else if (source.method != Method::kModelled) {
      believed.push_back(source);
    }
  }
  found.sources.insert(found.sources.begin(), believed.begin(), believed.end());
  if (works(context, findings, "cray_pm_counters")) {
    found.sources.push_back({.name = "cray", .domain = Domain::kNode, .rank = energy::kCrayRank});
  }
  if (works(context, findings, "gpu")) {
    found.sources.push_back({.name = "gpu", .domain = Domain::kGpu});
  }
  return found;
}

/// "package: rapl-package-0, rapl-package-1; node: ipmi_dcmi".
std::string by_domain(const Found& found) {
  std::vector<std::string> parts;
  for (const Domain domain : energy::kDomains) {
    std::vector<std::string> names;
    for (const SourceInfo& source : found.sources) {
      if (source.domain == domain) {
        names.push_back(source.name);
      }
    }
    if (!names.empty()) {
      parts.push_back(fmt::format("{}: {}", energy::to_string(domain), fmt::join(names, ", ")));
    }
  }
  return parts.empty() ? "no meter" : fmt::format("{}", fmt::join(parts, "; "));
}

void report_meters(const DoctorContext& context, const Found& found, Report& report) {
  std::string text = by_domain(found);
  std::string advice;
  const bool parts = found.has(Domain::kPackage);
  if (const SourceInfo* wall = found.wall()) {
    text += fmt::format("; the node's energy is that of {} ({})", wall->name,
                        energy::to_string(wall->method));
  } else {
    text += parts ? "; the node's energy is the sum of these (derived), without fans, disks and "
                    "losses"
                  : "; the node's energy is that of the power model (modelled)";
    if (exists(context.dev / "ipmi0")) {
      advice = "--collector.ipmi_dcmi measures the whole node";
    }
  }
  if (!found.unmoved.empty()) {
    text += fmt::format(
        "; unknown: whether {} stands still, which did not move for {} ms (the service decides "
        "after {:.0f} s)",
        fmt::join(found.unmoved, ", "), context.rapl_watch.count(), energy::ReadingGate::kStill);
  }
  report.works(std::move(text), std::move(advice));
}

/// "package=90.5,dram=12" for --collector.energy.idle-watts.
std::string as_flag(const energy::IdleWatts& watts) {
  std::vector<std::string> parts;
  for (const Domain domain : energy::kDomains) {
    if (const auto value = watts.at(energy::index(domain))) {
      parts.push_back(fmt::format("{}={:.1f}", energy::to_string(domain), *value));
    }
  }
  return fmt::format("{}", fmt::join(parts, ","));
}

std::string range(const energy::ErrorRange& error) {
  return fmt::format("{:+.0f} to {:+.0f} %", error.low, error.high);
}

/// What holds until idle power was learned.
std::string assumption(const Found& found) {
  constexpr const char* kOther = "; the error is unknown, easily half";
  const energy::AssumedIdle assumed =
      found.model ? energy::assumed_idle(*found.model) : energy::AssumedIdle{};
  if (found.model && found.model->calibrated) {
    return fmt::format(
        "assumed from the calibrated power model: {:.0f} % of the power at full load",
        100 * assumed.packages);
  }
  if (!found.model || found.model->family.empty()) {
    return fmt::format(
        "assumed without a model of the CPU family: {:.0f} % of the power at full load{}",
        100 * assumed.packages, kOther);
  }
  return fmt::format("assumed from the model of {}: {:.0f} % of the power at full load{}",
                     found.model->family, 100 * assumed.packages,
                     found.model->idle_error
                         ? fmt::format("; error {} over the published results of the family",
                                       range(*found.model->idle_error))
                         : kOther);
}

void report_learned(const Found& found, const energy::IdleEstimates& estimates, Report& report) {
  energy::IdleWatts learned{};
  energy::IdleWatts assumed{};
  double error = 0;
  for (const Domain domain : energy::kDomains) {
    if (const auto& estimate = estimates.at(energy::index(domain))) {
      const bool known = estimate->learned();
      (known ? learned : assumed).at(energy::index(domain)) = estimate->watts;
      error = known ? std::max(error, estimate->deviation / estimate->watts) : error;
    }
  }
  const std::string flag = as_flag(learned);
  if (!flag.empty()) {
    report.works(fmt::format("idle power was learned: {}, error about {:.0f} %", flag,
                             std::max(1.0, 100 * error)),
                 "for other nodes of this kind: --collector.energy.idle-watts=" + flag);
  }
  if (const std::string flag_assumed = as_flag(assumed); !flag_assumed.empty()) {
    report.works(fmt::format("idle power while the use has hardly varied: {}, {}", flag_assumed,
                             assumption(found)));
  }
  if (flag.empty() && as_flag(assumed).empty()) {
    report.works("idle power is learned; nothing is stored yet. Until the use varies, it is " +
                 assumption(found));
  }
}

void report_idle(const DoctorContext& context, const Found& found, Report& report) {
  const auto configured = energy::parse_idle_watts(context.idle_watts);
  if (!configured) {
    report.cannot("--collector.energy.idle-watts: " + configured.error().message,
                  "correct the flag, or leave it out: idle power is learned");
    return;
  }
  const energy::IdleEstimates estimates = energy::idle_estimates(
      context.learned, found.model ? energy::assumed_idle(*found.model) : energy::AssumedIdle{});
  const std::string given = as_flag(*configured);
  if (!given.empty()) {
    energy::IdleWatts all{};
    std::ranges::transform(estimates, all.begin(), [](const auto& estimate) {
      return estimate ? std::optional(estimate->watts) : std::nullopt;
    });
    const std::string learned = as_flag(all);
    report.works(fmt::format("idle power is configured: {}{}", given,
                             learned.empty() ? "" : "; learned was " + learned));
  } else if (found.wall() == nullptr && !found.has(Domain::kPackage) &&
             context.learned.idle.empty()) {
    report.works("idle power is that of the power model");
  } else {
    report_learned(found, estimates, report);
  }
}

void report_error(const Found& found, Report& report) {
  const SourceInfo* wall = found.wall();
  const bool packages = found.has(Domain::kPackage);
  if (wall == nullptr && !packages) {
    if (found.model && found.model->calibrated) {
      report.works("expected error: that of the wattmeter when idle and at full load");
    } else if (found.model && found.model->idle_error && found.model->full_error) {
      report.works(fmt::format(
          "expected error of the node's power: {} when idle, {} at full load, more on an untuned "
          "or virtual machine (published results of this CPU family)",
          range(*found.model->idle_error), range(*found.model->full_error)));
    } else {
      report.works("expected error of the node's power: unknown for this CPU family, easily half");
    }
    return;
  }
  const bool bmc =
      wall != nullptr && (wall->rank == energy::kIpmiRank || wall->rank == energy::kRedfishRank);
  const MeterSet meters = !packages         ? MeterSet::kBmc
                          : wall == nullptr ? MeterSet::kPackages
                          : bmc             ? MeterSet::kPackagesAndBmc
                                            : MeterSet::kPackagesAndWall;
  const auto text = expected_error(kEnergyErrorsCsv, meters);
  if (!text) {
    report.cannot(text.error().message, "correct data/energy-errors.csv and build again");
    return;
  }
  report.works("expected error, on simulated nodes: " + *text);
}

void report_model(const DoctorContext& context, Found& found, Report& report) {
  const auto readings = energy::parse_model_watts(context.model_watts);
  if (!readings) {
    report.cannot("--collector.energy.model-watts: " + readings.error().message,
                  "correct the flag, or leave it out");
    return;
  }
  if (const std::optional<energy::ModelWatts>& given = *readings; given) {
    found.model = energy::calibrated(found.model.value_or(energy::PowerModel()), *given);
    report.works(fmt::format("power model calibrated by two readings: {} W idle, {} W at full load",
                             given->idle, given->full));
    return;
  }
  if (found.model && found.wall() == nullptr && !found.has(Domain::kPackage)) {
    const bool host = in_virtual_machine(context.paths);  // the wattmeter is that of the host
    report.works(
        fmt::format("power model, not calibrated: {:.0f} W idle, {:.0f} W at full load; {}",
                    found.model->idle_watts, found.model->full_watts, found.model->basis),
        fmt::format("read a wattmeter{} twice, when {} is idle and under full load ({}), and start "
                    "with --collector.energy.model-watts=idle=WATTS,full=WATTS{}",
                    host ? " of the host" : "", host ? "it" : "the node", kLoadCommand,
                    host ? ", this machine's part of it by CPUs" : ""));
  }
}

}  // namespace

void examine_energy(const DoctorContext& context, Findings& findings) {
  Report report(context, findings, "energy");
  if (context.energy_refused) {
    report.off("switched off by --no-collector.energy");
    return;
  }
  Found found = find(context, findings);
  report_meters(context, found, report);
  report_model(context, found, report);
  report_idle(context, found, report);
  report_error(found, report);
}

}  // namespace ceems::exporter
