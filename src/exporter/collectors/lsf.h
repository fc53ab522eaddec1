#pragma once

#include <memory>
#include <string>

#include "exporter/collector.h"
#include "exporter/collectors/unit_flags.h"
#include "exporter/collectors/unit_metrics.h"
#include "exporter/lsf/allocations.h"
#include "exporter/sub_collector.h"

namespace ceems::exporter {

/// How the allocations of LSF and the GPUs of its jobs are determined.
struct LsfOptions {
  /// Asks LSF for the allocations of this host's jobs.
  std::function<Result<lsf::AllocationMap>(const std::stop_token&)> fetch = {};
  std::string evidence = "any";  ///< or "trusted": never use the environment of jobs
  std::shared_ptr<const gpu::ProcessList> processes = {};  ///< may be null
};

/// The collector without its flags, for tests. Without an inventory it has no GPU series. Errors:
/// the cgroup hierarchy does not exist.
Result<std::unique_ptr<Collector>> make_lsf_collector(
    const CollectorContext& context,
    const CgroupFlags& cgroups,
    const SubCollectorSet& subs,
    UnitMetricOptions metrics,
    LsfOptions options,
    const std::shared_ptr<gpu::Inventory>& inventory = nullptr);

}  // namespace ceems::exporter
