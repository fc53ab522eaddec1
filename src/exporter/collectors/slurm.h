#pragma once

#include <memory>

#include "exporter/collector.h"
#include "exporter/collectors/cgroup_flags.h"
#include "exporter/collectors/unit_metrics.h"
#include "exporter/sub_collector.h"

namespace ceems::exporter {

/// The collector without its flags, for tests. Errors: the cgroup hierarchy is not there.
Result<std::unique_ptr<Collector>> make_slurm_collector(const CollectorContext& context,
                                                        const CgroupFlags& cgroups,
                                                        const SubCollectorSet& subs,
                                                        UnitMetricOptions options);

/// --collector.slurm: jobs of SLURM. Declares the flags that all unit collectors
/// share, too.
CollectorSpec slurm_collector(const std::shared_ptr<CgroupFlags>& cgroups,
                              const std::shared_ptr<SubCollectorSet>& subs);

}  // namespace ceems::exporter
