#include "exporter/collectors/unit_flags.h"

#include "exporter/collectors/all.h"

namespace ceems::exporter {

void CgroupFlags::add_to(config::FlagSet& flags) {
  flags.add("collector.cgroups.active-subsystem", active_subsystem,
            {.help = "cgroup v1 hierarchy in which units and their processes are searched"});
  flags.add_enum(
      "collector.cgroups.force-version", force_version, {"v1", "v2"},
      {.help = "Treat --path.cgroupfs as this version of cgroups: v1 or v2", .hidden = true});
}

host::CgroupMount CgroupFlags::mount(const CollectorContext& context) const {
  return host::detect_cgroup(context.paths.cgroup, force_version);
}

UnitFlags::UnitFlags()
    : subs({perf_sub_collector(), rdma_sub_collector(), ebpf_sub_collector(),
            profiling_sub_collector()}) {}

void UnitFlags::add_to(config::FlagSet& flags) {
  cgroups.add_to(flags);
  subs.add_to(flags);
  gpus.add_to(flags);
}

}  // namespace ceems::exporter
