#pragma once

#include <memory>

#include "exporter/collector.h"
#include "exporter/collectors/cgroup_flags.h"
#include "exporter/collectors/unit_metrics.h"

namespace ceems::exporter {

/// The collector without its flags, for tests. Errors: the cgroup hierarchy is not there.
Result<std::unique_ptr<Collector>> make_slurm_collector(const CollectorContext& context,
                                                        const CgroupFlags& cgroups,
                                                        UnitMetricOptions options);

/// --collector.slurm: jobs of SLURM. Declares the shared flags, too.
CollectorSpec slurm_collector(const std::shared_ptr<CgroupFlags>& cgroups);

}  // namespace ceems::exporter
