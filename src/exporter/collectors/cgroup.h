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
  /// RE2 syntax. If empty, the defaults of pattern_matcher().
  std::vector<std::string> patterns = {};
  UnitMetricOptions metrics = {};
};

/// The collector without its flags, for tests. Without patterns it leaves out the cgroups of the
/// managers whose units are among `sources`. Errors: the cgroup hierarchy does not exist, or a
/// pattern is invalid.
Result<std::unique_ptr<Collector>> make_cgroup_collector(const CollectorContext& context,
                                                         const Sources& sources,
                                                         const CgroupFlags& cgroups,
                                                         const SubCollectorSet& subs,
                                                         const CgroupOptions& options);

/// Whether the collector is on by default: `sources` has no units, no resource manager has created
/// cgroups on this machine, and there is a real cgroup file system.
bool cgroup_by_default(const CollectorContext& context,
                       const Sources& sources,
                       const CgroupFlags& cgroups);

}  // namespace ceems::exporter
