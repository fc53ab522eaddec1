#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/time/time_zone.h"
#include "ingest/manager/manager.h"
#include "tsdb/client.h"

namespace ceems::ingest {

struct LocalOptions {
  std::string project = "local";
  std::vector<std::string> unit_managers{"cgroup"};  ///< values of the label `manager`
};

/// The manager "local": the units that the exporter's `cgroup` collector reports to a TSDB, for
/// machines without a resource manager (docs/api/resource-managers.md). CEEMS 0.10.2 has no such
/// manager.
///
/// It reads ceems_compute_unit_{info,start_time_seconds,end_time_seconds,cpus,memory_total_bytes}.
/// A unit whose series vanish without an end time is considered ended at its last sample.
std::unique_ptr<ResourceManager> make_local(LocalOptions options,
                                            std::unique_ptr<tsdb::Client> client,
                                            TimeZone zone);

}  // namespace ceems::ingest
