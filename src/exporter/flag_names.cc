#include "exporter/flag_names.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/log.h"

namespace ceems::exporter {
namespace {

using enum Release;

constexpr ReleaseRange kAll{kV10, kV16};
constexpr ReleaseRange kOld{kV10, kV10};
constexpr ReleaseRange kSince11{kV11, kV16};
constexpr ReleaseRange kSince13{kV13, kV16};

/// The one table of names. Everything else about names (aliases, warnings, `doctor`) follows it.
constexpr std::array kNames{
    FlagName{"collector.ipmi_dcmi", "", kOld, "collector.ipmi"},
    FlagName{"collector.ipmi_dcmi.cmd", "", kOld, "collector.ipmi.dcmi.cmd"},
    FlagName{"collector.ipmi_dcmi.dev-num", "", kOld, "collector.ipmi.dev-num"},
    FlagName{"collector.ipmi_dcmi.force-native-mode", "", kOld, "collector.ipmi.force-native-mode"},
    FlagName{"collector.ipmi_dcmi.test-mode", "", kOld, "collector.ipmi.test-mode"},
    FlagName{"collector.ipmi", "collector.ipmi_dcmi", kSince11},
    // Deprecated in 0.10.2, and the only spelling since.
    FlagName{"collector.ipmi.dcmi.cmd", "collector.ipmi_dcmi.cmd", kAll},
    FlagName{"collector.ipmi.dev-num", "collector.ipmi_dcmi.dev-num", kSince11},
    FlagName{"collector.ipmi.force-native-mode", "collector.ipmi_dcmi.force-native-mode", kSince11},
    FlagName{"collector.ipmi.test-mode", "collector.ipmi_dcmi.test-mode", kSince11},
    FlagName{"collector.ipmi.power-energy-sensor-readings", "", kSince11},
    FlagName{"collector.ipmi.sensor-id", "", kSince11},
    FlagName{"collector.lsf", "", kSince13},
    FlagName{"collector.lsf.swap-memory-metrics", "", kSince13},
    FlagName{"collector.lsf.psi-metrics", "", kSince13},
    FlagName{"collector.lsf.bjobs-path", "", kSince13},
    FlagName{"collector.meminfo.all.stats", "collector.meminfo.all-stats", kAll, "", true},
    FlagName{"collector.slurm.swap.memory.metrics", "collector.slurm.swap-memory-metrics", kAll, "",
             true},
    FlagName{"collector.slurm.psi.metrics", "collector.slurm.psi-metrics", kAll, "", true},
    FlagName{"collector.redfish.web-config", "collector.redfish.config.file", kAll, "", true,
             "CEEMS_EXPORTER_REDFISH_COLL_WEB_CONFIG_FILE"},
    FlagName{"collector.redfish.web-config-file", "collector.redfish.config.file", {}},
    FlagName{"collector.k8s.kube-config-file", "collector.k8s.kubeconfig.file", kAll, "", true},
    FlagName{"collector.k8s.kubeconfig-file", "collector.k8s.kubeconfig.file", {}},
    FlagName{"collector.k8s.kubelet-socket-file", "collector.k8s.kubelet-podresources-socket.file",
             kAll, "", true},
    FlagName{"collector.cgroup.active-subsystem", "collector.cgroups.active-subsystem", {}},
    FlagName{"profiling.ebpf.config-file", "profiling.ebpf.config.file", {}},
};

/// The other flags of CEEMS, which all releases from 0.10.2 on know.
constexpr auto kEverywhere = std::to_array<std::string_view>({
    "collector.cgroups.active-subsystem",
    "collector.cgroups.force-version",
    "collector.cpu",
    "collector.cray_pm_counters",
    "collector.disable-defaults",
    "collector.ebpf.fs-mount-point",
    "collector.ebpf.io-metrics",
    "collector.ebpf.network-metrics",
    "collector.emissions",
    "collector.emissions.provider",
    "collector.empty-hostname-label",
    "collector.gpu.amd-smi-path",
    "collector.gpu.nvidia-smi-path",
    "collector.gpu.rocm-smi-path",
    "collector.gpu.type",
    "collector.hwmon",
    "collector.infiniband",
    "collector.k8s",
    "collector.k8s.kubeconfig.file",
    "collector.k8s.kubelet-podresources-socket.file",
    "collector.k8s.psi-metrics",
    "collector.libvirt",
    "collector.libvirt.blkio-metrics",
    "collector.libvirt.psi-metrics",
    "collector.libvirt.swap-memory-metrics",
    "collector.libvirt.xml-dir",
    "collector.meminfo",
    "collector.meminfo.all-stats",
    "collector.netdev",
    "collector.netdev.device-exclude",
    "collector.netdev.device-include",
    "collector.perf.cache-profilers",
    "collector.perf.env-var",
    "collector.perf.hardware-cache-events",
    "collector.perf.hardware-events",
    "collector.perf.hardware-profilers",
    "collector.perf.software-events",
    "collector.perf.software-profilers",
    "collector.rapl",
    "collector.rapl.enable-zone-label",
    "collector.rdma.cmd",
    "collector.rdma.stats",
    "collector.redfish",
    "collector.redfish.config.file",
    "collector.redfish.config.file.expand-env-vars",
    "collector.slurm",
    "collector.slurm.gpu-order-map",
    "collector.slurm.gres-config-file",
    "collector.slurm.psi-metrics",
    "collector.slurm.swap-memory-metrics",
    "discoverer.alloy-targets",
    "discoverer.alloy-targets.env-var",
    "discoverer.alloy-targets.self-profiler",
    "help",
    "log.format",
    "log.level",
    "path.cgroupfs",
    "path.procfs",
    "path.sysfs",
    "profiling.ebpf",
    "profiling.ebpf.config.file",
    "profiling.ebpf.config.file.expand-env-vars",
    "profiling.ebpf.env-var",
    "profiling.ebpf.self-profiler",
    "runtime.gomaxprocs",
    "security.disable-cap-awareness",
    "security.drop-privileges",
    "security.run-as-user",
    "version",
    "web.config.file",
    "web.debug-server",
    "web.disable-exporter-metrics",
    "web.listen-address",
    "web.max-requests",
    "web.systemd-socket",
    "web.targets-path",
    "web.telemetry-path",
});

const FlagName* find_name(std::string_view name) {
  const auto* const found = std::ranges::find(kNames, name, &FlagName::name);
  return found == kNames.end() ? nullptr : found;
}

/// "0.10.2 to 0.16.1", or "0.10.2".
std::string to_text(ReleaseRange range) {
  return range.first == range.last
             ? std::string(to_string(range.first))
             : fmt::format("{} to {}", to_string(range.first), to_string(range.last));
}

/// Why some release refuses the flag; empty if none does.
std::string refusal(std::string_view name) {
  const auto known = releases_with(name);
  if (!known) {
    const FlagName* const row = find_name(name);
    return row != nullptr
               ? fmt::format("--{}: only the documentation of CEEMS has it, its programs do not",
                             name)
               : fmt::format("--{}: this program has it, CEEMS does not", name);
  }
  if (known->last != kV16) {
    const FlagName* const row = find_name(name);
    const auto next = static_cast<Release>(static_cast<int>(known->last) + 1);
    return row != nullptr && !row->now.empty()
               ? fmt::format("--{}: refused since {}, which calls it --{}", name, to_string(next),
                             row->now)
               : fmt::format("--{}: refused since {}", name, to_string(next));
  }
  if (known->first != kV10) {
    return fmt::format("--{}: unknown before {}", name, to_string(known->first));
  }
  return {};
}

/// What CEEMS refuses although each flag is known; empty if nothing.
std::string refused_combination(const std::vector<std::string>& given) {
  constexpr std::string_view kNative = "collector.ipmi.force-native-mode";
  if (std::ranges::find(given, kNative) != given.end() ||
      std::ranges::find(given, "collector.ipmi_dcmi.force-native-mode") != given.end()) {
    return {};
  }
  for (const std::string& name : given) {
    if (name == "collector.ipmi.sensor-id" ||
        name == "collector.ipmi.power-energy-sensor-readings") {
      return fmt::format("--{}: CEEMS refuses it without --{}", name, kNative);
    }
  }
  return {};
}

}  // namespace

std::string_view to_string(Release release) {
  constexpr std::array<std::string_view, 4> kTexts{"0.10.2", "0.11.0", "0.13.0", "0.16.1"};
  return kTexts.at(static_cast<std::size_t>(release));
}

std::span<const FlagName> flag_names() {
  return kNames;
}

void add_flag_aliases(config::FlagSet& flags) {
  for (const FlagName& row : kNames) {
    if (!row.flag.empty() && flags.has(row.flag)) {
      flags.alias(row.name, row.flag, row.env);
    }
  }
}

void log_deprecated_flags(const config::FlagSet& flags) {
  for (const std::string& name : flags.given_names()) {
    const FlagName* const row = find_name(name);
    if (row != nullptr && row->deprecated) {
      log::warn(fmt::format("flag --{} is deprecated, use --{}", row->name, row->flag));
    }
  }
}

std::optional<ReleaseRange> releases_with(std::string_view name) {
  if (const FlagName* const row = find_name(name)) {
    return row->known;
  }
  return std::ranges::find(kEverywhere, name) != kEverywhere.end() ? std::optional(kAll)
                                                                   : std::nullopt;
}

ReleaseFit fitting_releases(const std::vector<std::string>& given) {
  ReleaseFit fit;
  ReleaseRange all = kAll;
  bool foreign = false;
  for (const std::string& name : given) {
    if (std::string note = refusal(name); !note.empty()) {
      fit.notes.push_back(std::move(note));
    }
    if (const auto known = releases_with(name)) {
      all.first = std::max(all.first, known->first);
      all.last = std::min(all.last, known->last);
    } else {
      foreign = true;
    }
  }
  if (std::string note = refused_combination(given); !note.empty()) {
    fit.notes.push_back(std::move(note));
    fit.summary = "no release of CEEMS would start with these flags together; this program does";
  } else if (all.first > all.last) {
    fit.summary = "no single release of CEEMS knows all of these flags; this program accepts them";
  } else if (foreign) {
    fit.summary = fmt::format(
        "CEEMS {} would start with these flags, except those that only this program has",
        to_text(all));
  } else {
    fit.summary = fmt::format("CEEMS {} would start with these flags", to_text(all));
  }
  return fit;
}

}  // namespace ceems::exporter
