#pragma once

#include <memory>
#include <string>
#include <vector>

#include "exporter/perf/events.h"
#include "exporter/perf/kernel.h"
#include "exporter/sub_collector.h"
#include "host/cgroup/mount.h"

namespace ceems::exporter {

struct PerfOptions {
  perf::GroupChoice hardware;
  perf::GroupChoice software;
  perf::GroupChoice cache;
  /// Count only processes with one of these variables. All if empty.
  std::vector<std::string> variables = {};
};

/// Perf events of each unit. Null if every group is off. Errors: the kernel refuses every event;
/// the message says what to do.
Result<std::unique_ptr<SubCollector>> make_perf(const CollectorContext& context,
                                                host::CgroupMode mode,
                                                UnitSource& source,
                                                PerfOptions options,
                                                std::unique_ptr<perf::Kernel> kernel);

}  // namespace ceems::exporter
