#include "ingest/manager/unit_fields.h"

#include <cstdint>
#include <string>

namespace ceems::ingest {

void print_times(model::Unit& unit, const TimeZone& zone, std::string_view unknown) {
  const auto text = [&](std::int64_t time_ms) {
    return time_ms > 0 ? zone.local_with_offset(time_ms) : std::string(unknown);
  };
  unit.created_at = text(unit.created_at_ts);
  unit.started_at = text(unit.started_at_ts);
  unit.ended_at = text(unit.ended_at_ts);
}

model::MetricMap allocation_times(double seconds, double cpus, double memory_mib, double gpus) {
  return {{"walltime", seconds},
          {"alloc_cputime", cpus * seconds},
          {"alloc_cpumemtime", memory_mib * seconds},
          {"alloc_gputime", gpus * seconds},
          {"alloc_gpumemtime", gpus * seconds}};
}

}  // namespace ceems::ingest
