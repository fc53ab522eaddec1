#pragma once

#include "exporter/collector.h"
#include "host/powercap.h"

namespace ceems::exporter {

/// How the rapl collector opens energy counters; tests deny or allow it.
struct RaplOptions {
  bool zone_label = false;  ///< one metric name and the label rapl_zone
  host::Powercap::Opener open = {};
};

/// The collector without its flags, for tests.
std::unique_ptr<Collector> make_rapl_collector(const CollectorContext& context,
                                               RaplOptions options);

/// --collector.rapl: energy counters and power limits of all powercap zones.
CollectorSpec rapl_collector();

}  // namespace ceems::exporter
