#pragma once

#include <memory>
#include <string>

#include "exporter/collector.h"
#include "exporter/collectors/unit_flags.h"
#include "exporter/collectors/unit_metrics.h"
#include "exporter/sub_collector.h"

namespace ceems::exporter {

/// How the GPUs of OpenPBS jobs are determined (exporter/gpu/claim/batch_claims.h).
struct OpenpbsGpuOptions {
  std::string evidence = "any";  ///< or "trusted": never use the environment of jobs
  std::shared_ptr<const gpu::ProcessList> processes = {};  ///< may be null
};

/// The collector without its flags, for tests. Without an inventory it has no GPU series. Errors:
/// the cgroup hierarchy does not exist.
Result<std::unique_ptr<Collector>> make_openpbs_collector(
    const CollectorContext& context,
    const CgroupFlags& cgroups,
    const SubCollectorSet& subs,
    UnitMetricOptions metrics,
    const OpenpbsGpuOptions& gpu = {},
    const std::shared_ptr<gpu::Inventory>& inventory = nullptr);

}  // namespace ceems::exporter
