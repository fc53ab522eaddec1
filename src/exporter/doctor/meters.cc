#include <linux/capability.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "config/environment.h"
#include "exporter/doctor/doctor.h"
#include "exporter/doctor/meter_check.h"
#include "exporter/doctor/report.h"
#include "exporter/energy/meter/source_gate.h"
#include "exporter/options.h"
#include "exporter/redfish/config.h"
#include "exporter/source/privileged_open.h"
#include "host/cray_pm_counters.h"
#include "host/hwmon.h"
#include "host/powercap.h"
#include "host/proc.h"
#include "host/read_file.h"
#include "os/command.h"

namespace ceems::exporter {
namespace {

bool has_rapl_cpu(const host::Paths& paths) {
  const auto text = host::read_file(paths.proc / "cpuinfo");
  const auto cpus = text ? host::parse_cpuinfo(*text) : fail(text.error());
  return cpus && (cpus->vendor == "GenuineIntel" || cpus->vendor == "AuthenticAMD");
}

/// Reads each zone twice with a load in between, and names those that cannot be read and packages
/// that stand still. Whether all is well.
bool report_unreadable_zones(const DoctorContext& context, Report& report) {
  host::Powercap powercap(context.paths.sys, open_privileged);
  static_cast<void>(powercap.scan().has_value());
  std::vector<std::optional<std::uint64_t>> before;
  std::vector<std::string> unreadable;
  std::vector<std::string> frozen;
  for (std::size_t i = 0; i < powercap.zones().size(); ++i) {
    const auto energy = powercap.energy_uj(i);
    before.push_back(energy ? std::optional(*energy) : std::nullopt);
    if (!energy) {
      unreadable.push_back(
          fmt::format("{} ({})", powercap.zones()[i].path, energy.error().message));
    }
  }
  keep_busy(context.rapl_watch);
  for (std::size_t i = 0; i < powercap.zones().size() && context.rapl_watch.count() > 0; ++i) {
    const auto& zone = powercap.zones()[i];
    const auto energy = powercap.energy_uj(i);
    if (energy && before[i] == *energy &&
        (zone.name.starts_with("package") || zone.name == "psys")) {
      frozen.push_back(zone.path);
    }
  }
  if (!unreadable.empty()) {
    report.cannot(fmt::format("{} of {} zones cannot be read: {}", unreadable.size(),
                              powercap.zones().size(), fmt::join(unreadable, "; ")),
                  "check the mode of its energy_uj and dmesg; the energy of this part is missing");
  }
  if (!frozen.empty()) {
    report.cannot(
        fmt::format("counters stand still while the node works: {}", fmt::join(frozen, ", ")),
        "modprobe -r intel_rapl_msr; modprobe intel_rapl_msr, and update the BIOS");
  }
  return unreadable.empty() && frozen.empty();
}

void examine_rapl(const DoctorContext& context, Report report) {
  host::Powercap powercap(context.paths.sys);
  const auto scanned = powercap.scan();
  if (!scanned || powercap.zones().empty()) {
    if (in_virtual_machine(context.paths)) {
      report.off(
          "this is a virtual machine, which has no access to the meters of its host; power is "
          "estimated from CPU use");
    } else if (has_rapl_cpu(context.paths)) {
      report.cannot(scanned ? "the powercap tree has no energy zone" : scanned.error().message,
                    "modprobe intel_rapl_msr (and list it in /etc/modules-load.d/rapl.conf)");
    } else {
      report.absent("this CPU has no RAPL", "remove --collector.rapl");
    }
    return;
  }
  const auto unreadable = std::ranges::find_if(powercap.zones(), [](const auto& zone) {
    return exists(zone.path + "/energy_uj") && !world_readable(zone.path + "/energy_uj");
  });
  if (unreadable != powercap.zones().end() && !context.may_raise(CAP_DAC_READ_SEARCH)) {
    report.cannot(fmt::format("only root may read {}/energy_uj", unreadable->path),
                  "AmbientCapabilities=CAP_DAC_READ_SEARCH in the unit file, or setcap "
                  "cap_dac_read_search+p on the program");
    return;
  }
  const auto missing = std::ranges::count_if(
      powercap.zones(), [](const auto& zone) { return !exists(zone.path + "/energy_uj"); });
  if (missing == static_cast<std::ptrdiff_t>(powercap.zones().size())) {
    report.cannot("no zone has a counter energy_uj",
                  "modprobe -r intel_rapl_msr; modprobe "
                  "intel_rapl_msr, and check dmesg");
    return;
  }
  if (report_unreadable_zones(context, report)) {
    report.works(fmt::format("{} zones, the first is {}", powercap.zones().size(),
                             powercap.zones().front().name));
  }
}

void examine_hwmon(const DoctorContext& context, Report report) {
  const auto sensors = host::find_hwmon_sensors(context.paths.sys);
  if (!sensors) {
    report.absent(sensors.error().message,
                  "load the driver of the sensor chip (sensors-detect finds it), or remove "
                  "--collector.hwmon");
    return;
  }
  const auto closed = std::ranges::find_if(
      *sensors, [](const auto& sensor) { return !world_readable(sensor.path); });
  if (closed != sensors->end()) {
    report.absent(
        fmt::format("only root may read {}, and the exporter does not run as root", closed->path),
        fmt::format("chmod a+r {} (a udev rule makes this permanent)", closed->path));
    return;
  }
  std::vector<std::string> silent;
  std::size_t current = 0;  // all but the lowest and highest values
  for (const host::HwmonSensor& sensor : *sensors) {
    if (sensor.file.property != host::HwmonProperty::kInput &&
        sensor.file.property != host::HwmonProperty::kAverage) {
      continue;
    }
    ++current;
    if (const auto value = host::read_hwmon_value(sensor.path); !value) {
      silent.push_back(fmt::format("{} ({})", sensor.path, value.error().message));
    } else if (sensor.file.type == host::HwmonType::kPower &&
               energy::judge_watts(static_cast<double>(*value) * 1e-6)) {
      silent.push_back(fmt::format("{} ({} uW)", sensor.path, *value));
    }
  }
  if (silent.size() == current) {
    report.absent(fmt::format("no sensor shows a power: {}", fmt::join(silent, "; ")),
                  "update the firmware, or remove --collector.hwmon");
    return;
  }
  report.works(fmt::format(
      "{} power and energy sensors, the first of {}{}", sensors->size(), sensors->front().chip,
      silent.empty() ? "" : fmt::format("; without a power now: {}", fmt::join(silent, "; "))));
}

void examine_cray(const DoctorContext& context, Report report) {
  const auto domains = host::find_cray_domains(context.paths.sys);
  if (!domains) {
    report.absent(domains.error().message,
                  "only HPE Cray nodes have pm_counters; remove "
                  "--collector.cray_pm_counters");
    return;
  }
  if (const auto power = host::read_cray_counter(context.paths.sys, "node", "power"); !power) {
    report.cannot(power.error().message,
                  "check the node controller, which does not update pm_counters");
    return;
  }
  constexpr auto kMaxJoules = std::numeric_limits<std::uint64_t>::max() / 1'000'000;
  const auto energy = host::read_cray_counter(context.paths.sys, "node", "energy");
  if (!energy || energy->value == 0 || energy->value > kMaxJoules) {
    report.cannot(
        fmt::format("the energy counter of the node has no value{}, so the energy of the "
                    "node is not taken from it",
                    energy ? fmt::format(" ({} J)", energy->value) : ": " + energy.error().message),
        "check the node controller, which does not update pm_counters");
    return;
  }
  keep_busy(context.rapl_watch);
  const auto later = host::read_cray_counter(context.paths.sys, "node", "energy");
  const bool moved = context.rapl_watch.count() == 0 || (later && *later != *energy);
  report.works(fmt::format(
      "{} domains{}", domains->size(),
      moved ? ""
            : fmt::format("; unknown: whether the energy counter of the node stands still, which "
                          "did not move for {} ms",
                          context.rapl_watch.count())));
}

/// Reports the reading, for a BMC that can be asked in the way that `how` says.
void report_ipmi_reading(const DoctorContext& context, std::string how, Report& report) {
  if (!context.read_ipmi) {
    report.works(std::move(how));
    return;
  }
  const auto watts = context.read_ipmi();
  if (watts && *watts > 0) {
    report.works(fmt::format("{}; the node draws {:.0f} W", how, *watts), {}, *watts);
    return;
  }
  report.cannot(
      fmt::format("{}, but it shows no power: {}", how,
                  watts ? std::string("the BMC reports no current power") : watts.error().message),
      "activate the power measurement (DCMI) of the BMC or update its firmware; otherwise try "
      "--collector.redfish and remove --collector.ipmi_dcmi");
}

void examine_ipmi(const DoctorContext& context, Report report) {
  const std::string device = context.dev / "ipmi0";
  const bool node =
      exists(device) || exists(context.dev / "ipmi/0") || exists(context.dev / "ipmidev/0");
  if (node) {
    if (!report.wanted()) {
      report.off("there is an IPMI device; --collector.ipmi_dcmi reads its power");
    } else if (context.may_raise(CAP_DAC_OVERRIDE)) {
      report_ipmi_reading(context, "the IPMI device can be opened", report);
    } else {
      report.cannot(fmt::format("only root may open {}", device),
                    "start as root (privileges are dropped after opening it), or link the drop-in "
                    "/usr/share/ceems/systemd/ceems_exporter.service.d/ipmi.conf in "
                    "/etc/systemd/system/ceems_exporter.service.d (CAP_DAC_OVERRIDE)");
    }
    return;
  }
  for (const char* tool : {"ipmi-dcmi", "ipmitool", "ipmiutil", "capmc"}) {
    if (const auto path = os::find_program(tool, context.search_path)) {
      if (report.wanted()) {
        report_ipmi_reading(context, "no IPMI device; uses " + *path, report);
      } else {
        report.off("not requested");
      }
      return;
    }
  }
  report.absent(
      "no IPMI device, and none of the tools ipmi-dcmi, ipmitool, ipmiutil and capmc is installed",
      "modprobe ipmi_si ipmi_devintf if the machine has a BMC; otherwise remove "
      "--collector.ipmi_dcmi");
}

void examine_hsmp(const DoctorContext& context, Report report) {
  const std::string device = context.dev / "hsmp";
  if (!exists(device)) {
    report.absent(
        "no device " + device,
        "modprobe amd_hsmp (AMD EPYC since 7003, with HSMP enabled in the BIOS); otherwise "
        "remove --collector.amd_hsmp");
  } else if (!report.wanted()) {
    report.off("there is a device; --collector.amd_hsmp reads power, clocks and memory bandwidth");
  } else if (world_readable(device) || context.may_raise(CAP_DAC_READ_SEARCH)) {
    if (!context.read_hsmp) {
      report.works("the device can be opened");
      return;
    }
    const auto sockets = context.read_hsmp();
    if (sockets) {
      double watts = 0;
      for (const hsmp::Socket& socket : *sockets) {
        watts += socket.power_watts.value_or(0);
      }
      report.works(fmt::format("{} sockets draw {:.0f} W", sockets->size(), watts));
    } else {
      report.cannot(
          fmt::format("{} can be opened, but shows no power: {}", device, sockets.error().message),
          "enable HSMP in the BIOS and update it; otherwise remove --collector.amd_hsmp");
    }
  } else {
    report.cannot(
        fmt::format("only root may open {}", device),
        fmt::format("chmod a+r {}, or AmbientCapabilities=CAP_DAC_READ_SEARCH in the unit "
                    "file",
                    device));
  }
}

void examine_redfish(const DoctorContext& context, Report report) {
  if (!report.wanted()) {
    report.off("not requested");
    return;
  }
  if (context.redfish_config.empty()) {
    report.cannot("no configuration file is given",
                  "--collector.redfish.config.file=/etc/ceems_exporter/redfish-config.yml");
    return;
  }
  auto text = host::read_file(context.redfish_config);
  if (text && context.redfish_expands) {
    text = config::expand_environment(*text, context.environment);
  }
  if (!text) {
    report.cannot(text.error().message, "correct the path of --collector.redfish.config.file");
    return;
  }
  auto config =
      redfish::parse_config(*text, context.redfish_config,
                            {.node_name = node_name(false), .environment = context.environment});
  if (!config) {
    report.cannot(config.error().message,
                  "correct the file; docs/exporter/collectors.md describes it");
    return;
  }
  if (!context.read_redfish || config->hostname.empty()) {
    report.works("the configuration is valid; the BMC was not contacted");
    return;
  }
  const auto found = context.read_redfish(*std::move(config));
  if (!found) {
    report.cannot(found.error().message,
                  "check address, login and network; if the service reports no power, use "
                  "--collector.ipmi_dcmi (docs/exporter/collectors.md lists vendors)");
    return;
  }
  report.works(fmt::format("{} chassis report power; the node draws {:.0f} W", found->chassis,
                           found->node_watts),
               {}, found->node_watts);
}

void examine_emissions(const DoctorContext& context, Report report) {
  if (!report.wanted()) {
    report.off("not requested");
    return;
  }
  const struct {
    const char* provider;
    std::vector<std::string> variables;
  } needs[] = {{"emaps", {"EMAPS_API_TOKEN"}}, {"wt", {"WT_USERNAME", "WT_PASSWORD", "WT_REGION"}}};
  bool fine = true;
  for (const auto& need : needs) {
    for (const std::string& variable : need.variables) {
      if (context.emission_providers.contains(need.provider) &&
          context.environment(variable).empty()) {
        report.cannot(fmt::format("provider {} needs the variable {}", need.provider, variable),
                      fmt::format("Environment={}=... in the unit file (systemctl edit "
                                  "ceems_exporter)",
                                  variable));
        fine = false;
      }
    }
  }
  if (fine) {
    report.works("the selected providers have what they need; none was contacted");
  }
}

}  // namespace

void examine_meters(const DoctorContext& context, Findings& findings) {
  examine_rapl(context, Report(context, findings, "rapl"));
  examine_hwmon(context, Report(context, findings, "hwmon"));
  examine_cray(context, Report(context, findings, "cray_pm_counters"));
  examine_ipmi(context, Report(context, findings, "ipmi_dcmi"));
  examine_hsmp(context, Report(context, findings, "amd_hsmp"));
  examine_redfish(context, Report(context, findings, "redfish"));
  examine_emissions(context, Report(context, findings, "emissions"));
}

}  // namespace ceems::exporter
