#include "exporter/collector.h"
#include "exporter/collectors/cpu.h"
#include "exporter/collectors/hwmon.h"
#include "exporter/collectors/meminfo.h"
#include "exporter/collectors/rapl.h"

namespace ceems::exporter {

std::vector<CollectorSpec> all_collectors() {
  return {
      cpu_collector(),
      hwmon_collector(),
      meminfo_collector(),
      rapl_collector(),
  };
}

}  // namespace ceems::exporter
