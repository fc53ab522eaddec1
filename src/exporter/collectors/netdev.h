#pragma once

#include <string>

#include "exporter/collector.h"

namespace ceems::exporter {

/// Which network devices are exported: RE2 expressions that fit anywhere in the name ("eth0" also
/// fits "veth01", as in the reference). Empty: no such filter.
struct NetdevOptions {
  std::string include;
  std::string exclude;
};

/// The collector without its flags, for tests. kInvalidArgument names the flag: both filters, an
/// expression that is none, a procfs root that is no directory.
Result<std::unique_ptr<Collector>> make_netdev_collector(const CollectorContext& context,
                                                         const NetdevOptions& options);

/// --collector.netdev: counters of <procfs>/net/dev, that is of the exporter's network namespace.
CollectorSpec netdev_collector();

}  // namespace ceems::exporter
