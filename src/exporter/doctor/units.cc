#include <linux/capability.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/strings.h"
#include "exporter/doctor/doctor.h"
#include "exporter/doctor/report.h"
#include "exporter/unit/matcher/unit_matcher.h"
#include "host/cgroup/mount.h"
#include "host/read_file.h"

namespace ceems::exporter {
namespace {

/// The root of the hierarchy in this mode. Empty if the v1 hierarchy does not exist.
std::string root_of(const DoctorContext& context, const host::CgroupMount& mount) {
  if (mount.mode == host::CgroupMode::kUnified) {
    return context.paths.cgroup;
  }
  const auto found = host::find_v1_hierarchy(context.paths.cgroup, context.active_subsystem, true);
  return found ? (context.paths.cgroup / *found).string() : std::string();
}

/// Checks what all unit collectors need from the kernel. False if none of them can work.
bool examine_cgroups(const DoctorContext& context, const host::CgroupMount& mount, Report report) {
  if (!host::is_directory(context.paths.cgroup)) {
    report.cannot(fmt::format("{} does not exist", context.paths.cgroup.string()),
                  "mount -t cgroup2 none /sys/fs/cgroup, or give its path with --path.cgroupfs");
    return false;
  }
  if (mount.mode == host::CgroupMode::kUnified) {
    const std::string file = context.paths.cgroup / "cgroup.controllers";
    for (const char* controller : {"cpu", "memory"}) {
      if (!file_has_word(file, controller)) {
        report.cannot(fmt::format("no controller {} in {}", controller, file),
                      fmt::format("remove cgroup_disable={} or systemd.legacy_* from the kernel's "
                                  "command line (/etc/default/grub), run update-grub, reboot",
                                  controller));
        return false;
      }
    }
    return true;
  }
  if (root_of(context, mount).empty()) {
    report.cannot(fmt::format("cgroup v1 has no hierarchy '{}' in {}", context.active_subsystem,
                              context.paths.cgroup.string()),
                  "use --collector.cgroups.active-subsystem=memory or another one that exists");
    return false;
  }
  if (!host::find_v1_hierarchy(context.paths.cgroup, "cpuacct", true)) {
    report.cannot(fmt::format("cgroup v1 has no hierarchy cpuacct in {}, so the CPU time of units "
                              "is not known",
                              context.paths.cgroup.string()),
                  "mount cpuacct, and let the resource manager use it (slurm.conf: "
                  "JobAcctGatherType=jobacct_gather/cgroup)");
  }
  if (!host::is_directory(context.paths.cgroup / "memory")) {
    report.cannot(
        fmt::format("cgroup v1 has no hierarchy 'memory' in {}", context.paths.cgroup.string()),
        "cgroup_enable=memory on the kernel's command line (/etc/default/grub), "
        "update-grub, reboot");
    return false;
  }
  return true;
}

/// The units that a collector would find, and where.
struct FoundUnits {
  std::size_t count = 0;
  std::string place;  ///< the directory of the first, or, without any, one that may get some
};

void find_units(const UnitMatcher& matcher,
                const std::string& root,
                const std::string& path,
                const DirectoryMatch& parent,
                FoundUnits& found) {
  constexpr std::ptrdiff_t kMaxLevels = 24;
  if (std::ranges::count(path, '/') > kMaxLevels) {
    return;
  }
  const auto names = host::list_directory(root + path);
  for (const std::string& name : names ? *names : std::vector<std::string>()) {
    std::string below = path;
    below.append("/").append(name);
    const DirectoryMatch match = matcher.match(below, name, parent);
    if (match.kind == DirectoryMatch::Kind::kSkip || !host::is_directory(root + below)) {
      continue;
    }
    const bool unit = match.kind == DirectoryMatch::Kind::kUnit;
    if ((unit && found.count++ == 0) || (match.inside && found.place.empty())) {
      found.place = root + (unit ? path : below);
    }
    if (!unit) {
      find_units(matcher, root, below, match, found);
    }
  }
}

FoundUnits find_units(const UnitMatcher& matcher, const std::string& root) {
  FoundUnits found;
  find_units(matcher, root, matcher.start(), {.kind = DirectoryMatch::Kind::kDescend}, found);
  return found;
}

/// The first process with one of the names, as "slurmd (process 812)"; empty if there is none.
std::string find_process(const host::Paths& paths, const std::vector<std::string_view>& names) {
  const auto entries = host::list_directory(paths.proc.string());
  for (const std::string& entry : entries ? *entries : std::vector<std::string>()) {
    if (!is_number(entry)) {
      continue;
    }
    const auto comm = host::read_file((paths.proc / entry / "comm").string());
    if (comm && std::ranges::find(names, trim(*comm)) != names.end()) {
      return fmt::format("{} (process {})", trim(*comm), entry);
    }
  }
  return {};
}

/// What shows that a manager runs: a process or, without one, a socket. Empty if nothing does.
std::string find_manager(const DoctorContext& context,
                         const std::vector<std::string_view>& processes,
                         const std::vector<std::string>& sockets) {
  std::string found = find_process(context.paths, processes);
  for (const std::string& socket : sockets) {
    if (found.empty() && exists(socket)) {
      found = socket;
    }
  }
  return found;
}

void examine_slurm(const DoctorContext& context,
                   const host::CgroupMount& mount,
                   const std::string& root,
                   Report report) {
  const FoundUnits found = find_units(*slurm_matcher(mount.mode), root);
  const std::string manager = find_manager(context, {"slurmd"}, {});
  const std::string& slurm = found.place;
  if (slurm.empty()) {
    report.absent(fmt::format("no cgroups of SLURM in {}{}", root,
                              manager.empty() ? "" : ", although this runs: " + manager),
                  "slurm.conf: ProctrackType=proctrack/cgroup, TaskPlugin=task/cgroup; "
                  "JobAcctGatherType=jobacct_gather/cgroup; then restart slurmd and run a job");
    return;
  }
  if (mount.mode == host::CgroupMode::kUnified && exists(slurm + "/cgroup.controllers") &&
      !file_has_word(slurm + "/cgroup.controllers", "memory")) {
    report.cannot(fmt::format("{} has no controller memory, so jobs have no memory metrics", slurm),
                  "cgroup.conf: ConstrainRAMSpace=yes (and EnableControllers=yes), restart slurmd");
    return;
  }
  if (exists(context.gres_config) && !world_readable(context.gres_config) &&
      !context.may_raise(CAP_DAC_READ_SEARCH)) {
    report.cannot(
        fmt::format("{} is not readable, so shards and MPS are unknown", context.gres_config),
        fmt::format("chmod a+r {}", context.gres_config));
    return;
  }
  if (report.wanted()) {
    report.works(found.count > 0 ? fmt::format("cgroups of {} jobs of SLURM, the first in {}",
                                               found.count, slurm)
                                 : "cgroups of SLURM in " + slurm + ", no job now");
  } else {
    report.off("found cgroups of SLURM; --collector.slurm exports its jobs");
  }
}

void examine_libvirt(const DoctorContext& context, const std::string& root, Report report) {
  const FoundUnits units = find_units(*libvirt_matcher(), root);
  const std::string manager = find_manager(
      context, {"libvirtd", "virtqemud"},
      {context.run + "/libvirt/libvirt-sock", context.run + "/libvirt/virtqemud-sock"});
  if (units.count == 0 && !manager.empty()) {
    report.absent(
        fmt::format("no VM of OpenStack in {}, although this runs: {}",
                    units.place.empty() ? root : units.place, manager),
        "start a VM of Nova; if one runs, find out with systemd-cgls where its cgroup is, "
        "and whether its name has \"instance-\"");
    return;
  }
  if (units.place.empty()) {
    report.absent(fmt::format("no cgroups of libvirt in {}", root),
                  "start a VM; virtqemud needs systemd-machined (apt install systemd-container)");
    return;
  }
  if (!report.wanted()) {
    report.off("found cgroups of VMs; --collector.libvirt exports OpenStack's VMs");
    return;
  }
  const auto found = std::ranges::find_if(context.xml_directories, [](const auto& directory) {
    return host::is_directory(directory.string());
  });
  if (found == context.xml_directories.end()) {
    std::vector<std::string> names;
    names.reserve(context.xml_directories.size());
    for (const auto& directory : context.xml_directories) {
      names.push_back(directory.string());
    }
    report.cannot(fmt::format("VMs have no UUID, because none of these directories exists: {}",
                              fmt::join(names, ", ")),
                  "mount the directory of the domain XML files into the container");
    return;
  }
  if (!world_readable(found->string()) && !context.may_raise(CAP_DAC_READ_SEARCH)) {
    report.cannot(fmt::format("only root may read {}, so VMs have no UUID", found->string()),
                  "AmbientCapabilities=CAP_DAC_READ_SEARCH in the unit file");
    return;
  }
  report.works(fmt::format("cgroups of {} VMs and their XML files", units.count));
}

void examine_k8s(const DoctorContext& context, const std::string& root, Report report) {
  const FoundUnits units = find_units(*k8s_matcher(), root);
  const std::string manager = find_manager(
      context, {"kubelet", "k3s-server", "k3s-agent", "kubelite"}, {context.kubelet_socket});
  if (units.count == 0 && !manager.empty()) {
    report.absent(
        fmt::format("no pod in {}, although this runs: {}",
                    units.place.empty() ? root : units.place, manager),
        "mount /sys/fs/cgroup of the host (in a container), or find out with systemd-cgls "
        "where the cgroups of pods are and report it");
    return;
  }
  if (units.place.empty()) {
    report.absent(fmt::format("no cgroups of the kubelet in {}", root),
                  "run on a node of the cluster, with /sys/fs/cgroup of the host mounted");
    return;
  }
  if (!report.wanted()) {
    report.off("found cgroups of pods; --collector.k8s exports them");
    return;
  }
  if (!exists(context.kubelet_socket)) {
    report.cannot(
        fmt::format("{} does not exist, so GPUs of pods are unknown", context.kubelet_socket),
        "mount /var/lib/kubelet/pod-resources of the host, or "
        "--collector.k8s.kubelet-podresources-socket.file");
    return;
  }
  const std::string pods =
      fmt::format("cgroups of {} pods, the first in {}", units.count, units.place);
  if (context.environment("NODE_NAME").empty()) {
    report.works(pods +
                 " and the kubelet's socket; NODE_NAME is not set, so the pods of the "
                 "whole cluster are listed");
    return;
  }
  report.works(pods + " and the kubelet's socket");
}

/// Checks one of the batch systems that few nodes have. Prints nothing about one that is neither
/// installed nor enabled.
void examine_batch(const std::vector<std::string>& places,
                   std::string_view name,
                   std::string_view settings,
                   Report report) {
  const auto found = std::ranges::find_if(
      places, [](const std::string& place) { return host::is_directory(place); });
  if (found == places.end()) {
    if (report.wanted()) {
      report.absent(fmt::format("no cgroups of {} in {}", name, places.front()),
                    std::string(settings));
    }
  } else if (report.wanted()) {
    report.works(fmt::format("cgroups of {} in {}", name, *found));
  } else {
    report.off(
        fmt::format("found cgroups of {}; --collector.{} exports its jobs", name, to_lower(name)));
  }
}

void examine_perf(const DoctorContext& context, Report report) {
  if (!context.perf_wanted) {
    report.off("not requested");
    return;
  }
  if (const auto level = permitted_perf_events(context, report)) {
    const auto missing =
        context.missing_perf_events ? context.missing_perf_events() : std::vector<std::string>{};
    if (!missing.empty()) {
      report.cannot(fmt::format("this machine does not have the selected events {}",
                                fmt::join(missing, ", ")),
                    "select others with --collector.perf.*-profilers; in a virtual machine, give "
                    "it a PMU");
      return;
    }
    report.works("kernel.perf_event_paranoid is " + *level);
  }
}

void examine_pressure(const DoctorContext& context, Report report) {
  if (exists(context.paths.proc / "pressure/cpu")) {
    report.works("the kernel counts pressure stall times");
  } else {
    report.off(
        "the kernel does not count pressure stall times (psi=1 on its command line turns them "
        "on)");
  }
}

}  // namespace

void examine_units(const DoctorContext& context, Findings& findings) {
  const host::CgroupMount mount = host::detect_cgroup(context.paths.cgroup, context.cgroup_version);
  if (!examine_cgroups(context, mount, Report(context, findings, "cgroup"))) {
    return;
  }
  const std::string root = root_of(context, mount);
  Report(context, findings, "cgroup")
      .works(mount.mode == host::CgroupMode::kUnified ? "cgroup v2" : "cgroup v1 in " + root);
  examine_slurm(context, mount, root, Report(context, findings, "slurm"));
  examine_batch({root + "/lsf", root + "/lsf.slice", root + "/system.slice/lsfd.service"}, "LSF",
                "lsf.conf: LSF_PROCESS_TRACKING=Y, LSF_LINUX_CGROUP_ACCT=Y, "
                "LSB_RESOURCE_ENFORCE=\"cpu memory gpu\"; then restart sbatchd and run a job",
                Report(context, findings, "lsf"));
  examine_batch({root + "/pbs_jobs.service", root + "/system.slice/pbs_jobs.service"}, "OpenPBS",
                "qmgr -c 'set hook pbs_cgroups enabled = True', then run a job",
                Report(context, findings, "openpbs"));
  examine_libvirt(context, root, Report(context, findings, "libvirt"));
  examine_k8s(context, root, Report(context, findings, "k8s"));
  examine_perf(context, Report(context, findings, "perf"));
  examine_pressure(context, Report(context, findings, "psi"));
}

}  // namespace ceems::exporter
