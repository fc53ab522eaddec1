#pragma once

#include "exporter/collector.h"

namespace ceems::exporter {

/// Metric name of a line of /proc/meminfo: "Active(anon)" in bytes is
/// "ceems_meminfo_Active_anon_bytes".
std::string meminfo_metric_name(std::string_view key, bool is_bytes);

/// --collector.meminfo: ceems_meminfo_{MemTotal,MemFree,MemAvailable}_bytes, or every line of
/// /proc/meminfo with --collector.meminfo.all-stats.
CollectorSpec meminfo_collector();

}  // namespace ceems::exporter
