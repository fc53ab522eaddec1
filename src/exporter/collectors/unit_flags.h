#pragma once

#include <string>

#include "config/flags.h"
#include "exporter/collector.h"
#include "exporter/collectors/gpu_flags.h"
#include "exporter/sub_collector.h"
#include "host/cgroup/mount.h"

namespace ceems::exporter {

/// --collector.cgroups.*: where cgroups are mounted.
struct CgroupFlags {
  std::string active_subsystem = "cpuacct";
  std::string force_version;  ///< "", "v1" or "v2"

  void add_to(config::FlagSet& flags);
  /// The cgroup hierarchies at --path.cgroupfs.
  [[nodiscard]] host::CgroupMount mount(const CollectorContext& context) const;
};

/// Flags that the collectors of units and of GPUs share, with the objects they configure. The
/// `slurm` collector adds them to the command line.
struct UnitFlags {
  UnitFlags();

  CgroupFlags cgroups;
  SubCollectorSet subs;  ///< --collector.perf.*, .rdma.*, .ebpf.*
  GpuFlags gpus;

  void add_to(config::FlagSet& flags);
};

}  // namespace ceems::exporter
