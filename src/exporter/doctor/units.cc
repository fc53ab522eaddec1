#include <linux/capability.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/strings.h"
#include "exporter/doctor/doctor.h"
#include "exporter/doctor/report.h"
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
  if (!host::is_directory(context.paths.cgroup / "memory")) {
    report.cannot(
        fmt::format("cgroup v1 has no hierarchy 'memory' in {}", context.paths.cgroup.string()),
        "cgroup_enable=memory on the kernel's command line (/etc/default/grub), "
        "update-grub, reboot");
    return false;
  }
  return true;
}

/// The first SLURM root, for example ".../system.slice/slurmstepd.scope". Empty if there is none.
std::string slurm_root(const std::string& root, host::CgroupMode mode) {
  const bool unified = mode == host::CgroupMode::kUnified;
  const std::string parent = unified ? root + "/system.slice" : root;
  const auto names = host::list_directory(parent);
  if (!names) {
    return {};
  }
  const auto found = std::ranges::find_if(*names, [unified](const std::string& name) {
    return unified ? host::slurm_scope_node(name).has_value()
                   : host::slurm_v1_node(name).has_value();
  });
  return found == names->end() ? std::string() : parent + "/" + *found;
}

void examine_slurm(const DoctorContext& context,
                   const host::CgroupMount& mount,
                   const std::string& root,
                   Report report) {
  const std::string slurm = slurm_root(root, mount.mode);
  if (slurm.empty()) {
    report.absent(fmt::format("no cgroups of SLURM in {}", root),
                  "slurm.conf: ProctrackType=proctrack/cgroup, TaskPlugin=task/cgroup; "
                  "JobAcctGatherType=jobacct_gather/cgroup; then restart slurmd and run a job");
    return;
  }
  if (mount.mode == host::CgroupMode::kUnified &&
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
    report.works("cgroups of SLURM in " + slurm);
  } else {
    report.off("found cgroups of SLURM; --collector.slurm exports its jobs");
  }
}

void examine_libvirt(const DoctorContext& context, const std::string& root, Report report) {
  const bool there =
      host::is_directory(root + "/machine") || host::is_directory(root + "/machine.slice");
  if (!there) {
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
  report.works("cgroups of VMs and their XML files");
}

void examine_k8s(const DoctorContext& context, const std::string& root, Report report) {
  const bool there =
      host::is_directory(root + "/kubepods") || host::is_directory(root + "/kubepods.slice");
  if (!there) {
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
  if (context.environment("NODE_NAME").empty()) {
    report.works(
        "cgroups of pods and the kubelet's socket; NODE_NAME is not set, so the pods of the "
        "whole cluster are listed");
    return;
  }
  report.works("cgroups of pods and the kubelet's socket");
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
