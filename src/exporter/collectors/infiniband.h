#pragma once

#include "exporter/collector.h"

namespace ceems::exporter {

/// --collector.infiniband: state, rate and counters of the ports below <sysfs>/class/infiniband,
/// Omni-Path adapters (hfi1) included. Its series have no label `hostname`. What is odd about one
/// device, port or counter only takes away the series it concerns; the scrape fails where devices
/// are there but nothing of them can be read.
CollectorSpec infiniband_collector();

}  // namespace ceems::exporter
