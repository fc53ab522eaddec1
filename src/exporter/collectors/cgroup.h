#pragma once

#include <memory>
#include <string>
#include <vector>

#include "exporter/collector.h"
#include "exporter/collectors/unit_flags.h"
#include "exporter/collectors/unit_metrics.h"
#include "exporter/sub_collector.h"

namespace ceems::exporter {

struct CgroupOptions {
  std::vector<std::string> patterns = {};  ///< RE2; none: see pattern_matcher()
  UnitMetricOptions metrics = {};
};

/// The collector without its flags, for tests. Without patterns it leaves out the cgroups of the
/// managers whose units are among `sources`. Errors: the cgroup hierarchy is not there, a pattern
/// is wrong.
Result<std::unique_ptr<Collector>> make_cgroup_collector(const CollectorContext& context,
                                                         const Sources& sources,
                                                         const CgroupFlags& cgroups,
                                                         const SubCollectorSet& subs,
                                                         const CgroupOptions& options);

/// True where the collector is on by default: `sources` has no units, no resource manager
/// has made cgroups here, and there is a real cgroup file system.
bool cgroup_by_default(const CollectorContext& context,
                       const Sources& sources,
                       const CgroupFlags& cgroups);

}  // namespace ceems::exporter
