#pragma once

#include "exporter/collector.h"
#include "host/stat.h"

namespace ceems::exporter {

/// CPU times that never go back, from readings that may: iowait and steal jitter downwards, and all
/// fields restart when CPUs are taken out and put in again. Not thread-safe.
class CpuCounter {
 public:
  /// Takes a reading and gives the times to export. Where idle falls by 3 s or more the CPUs were
  /// hot-plugged and the new reading is taken whole; else each field keeps its highest value.
  const host::CpuTimes& update(const host::CpuTimes& reading);

 private:
  host::CpuTimes times_;
};

/// --collector.cpu: ceems_cpu_count, ceems_cpu_per_core_count, ceems_cpu_seconds_total.
CollectorSpec cpu_collector();

}  // namespace ceems::exporter
