#include <linux/capability.h>

#include <fmt/format.h>

#include "base/strings.h"
#include "exporter/doctor/doctor.h"
#include "exporter/doctor/report.h"
#include "host/mountstats.h"
#include "host/read_file.h"

namespace ceems::exporter {
namespace {

constexpr const char* kNameJobs =
    "lctl set_param -P jobid_var=SLURM_JOB_ID jobid_name=%j, on the MGS";

constexpr std::size_t kMaxMounts = 10'000;

/// The setting of this node, which newer versions show in sysfs; empty if there is none.
std::string lustre_setting(const DoctorContext& context, const char* name) {
  for (const std::string root :
       {context.paths.sys / "fs/lustre", context.paths.proc / "fs/lustre"}) {
    if (const auto text = host::read_file(fmt::format("{}/{}", root, name), host::kMaxValueSize)) {
      return printable(trim(*text));
    }
  }
  return {};
}

void examine_lustre(const DoctorContext& context, Report report) {
  if (!exists(context.paths.sys / "fs/lustre") && !exists(context.paths.proc / "fs/lustre")) {
    report.absent("Lustre is not loaded",
                  "mount a file system of Lustre, or remove --collector.lustre");
    return;
  }
  const std::string variable = lustre_setting(context, "jobid_var");
  if (!report.wanted()) {
    report.off("Lustre is loaded; --collector.lustre shows its statistics");
  } else if (variable == "disable") {
    report.cannot("jobid_var is disable, so servers of Lustre cannot tell this node's jobs apart",
                  kNameJobs);
  } else if (!context.may_raise(CAP_DAC_READ_SEARCH)) {
    report.cannot("since Lustre 2.12, only root may read some of its statistics",
                  "AmbientCapabilities=CAP_DAC_READ_SEARCH in the unit file");
  } else if (variable == "procname_uid") {
    report.works(
        "Lustre is loaded; jobid_var is procname_uid, so servers see programs instead of jobs",
        kNameJobs);
  } else {
    report.works(fmt::format("Lustre is loaded; jobid_var is {}",
                             variable.empty() ? "not shown" : variable));
  }
}

void examine_nfs(const DoctorContext& context, Report report) {
  const std::string file = context.paths.proc / "self/mountstats";
  const auto text = host::read_file(file);
  host::NfsMounts mounts;
  if (text) {
    static_cast<void>(host::parse_mountstats(*text, kMaxMounts, mounts));
  }
  const std::size_t found = mounts.mounts.size();
  if (found == 0) {
    report.absent(text ? fmt::format("{} has no NFS mount", file) : text.error().message,
                  "mount one in the exporter's mount namespace, or remove --collector.nfs");
    return;
  }
  const std::string mounted = fmt::format("{} NFS mount{}", found, found == 1 ? "" : "s");
  if (report.wanted()) {
    report.works(mounted);
  } else {
    report.off(mounted + "; --collector.nfs shows their statistics");
  }
}

}  // namespace

void examine_filesystems(const DoctorContext& context, Findings& findings) {
  examine_lustre(context, Report(context, findings, "lustre"));
  examine_nfs(context, Report(context, findings, "nfs"));
}

}  // namespace ceems::exporter
