#pragma once

#include <memory>
#include <string>

#include "exporter/collector.h"
#include "exporter/collectors/unit_flags.h"
#include "exporter/collectors/unit_metrics.h"
#include "exporter/sub_collector.h"

namespace ceems::exporter {

/// How the GPUs of jobs are determined (exporter/gpu/claim/slurm_claims.h).
struct SlurmGpuOptions {
  std::string gres_config_file = "/etc/slurm/gres.conf";
  std::string order_map;
  std::string map_directory = "/run/ceems/slurm-gpu-map";
  /// SlurmdSpoolDir: Slurm's default, and the defaults of packages.
  std::string spools = "/var/spool/slurmd,/var/spool/slurm/slurmd,/var/lib/slurm/slurmd";
  std::string evidence = "any";  ///< or "trusted"
  bool every_gres_file = false;
  std::shared_ptr<const gpu::ProcessList> processes = {};  ///< may be null
};

/// The collector without its flags, for tests. Without an inventory it has no GPU series. Errors:
/// the cgroup hierarchy does not exist.
Result<std::unique_ptr<Collector>> make_slurm_collector(
    const CollectorContext& context,
    const CgroupFlags& cgroups,
    const SubCollectorSet& subs,
    UnitMetricOptions options,
    const SlurmGpuOptions& gpu = {},
    const std::shared_ptr<gpu::Inventory>& inventory = nullptr);

}  // namespace ceems::exporter
