#pragma once

#include <string_view>

#include "base/time/time_zone.h"
#include "model/unit.h"

namespace ceems::ingest {

/// Sets created_at, started_at and ended_at to the text of their *_ts in `zone`
/// ("2031-04-05T06:07:08+0200"), or to `unknown` if that is 0.
void print_times(model::Unit& unit, const TimeZone& zone, std::string_view unknown);

/// Returns total_time_seconds of a unit that held CPUs, memory (MiB) and GPUs for some seconds. The
/// memory of GPUs is not known, so alloc_gpumemtime equals alloc_gputime.
model::MetricMap allocation_times(double seconds, double cpus, double memory_mib, double gpus);

}  // namespace ceems::ingest
