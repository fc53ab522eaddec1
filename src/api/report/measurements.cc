#include "api/report/measurements.h"

#include <algorithm>
#include <utility>

namespace ceems::api {

RunMeasurements numbers_of(const UnitMeasurements& unit) {
  RunMeasurements numbers;
  const auto add = [](Number& sum, const Number& value) {
    if (value) {
      sum = sum.value_or(0) + *value;
    }
  };
  for (const NodeMeasurements& node : unit.nodes) {
    numbers.mem_peak = std::max(numbers.mem_peak, node.mem_peak);
    add(numbers.cpu_used_max, node.cpu_used_max);
    for (const NodeMeasurements::Gpu& gpu : node.gpus) {
      if (gpu.busy_seconds) {
        add(numbers.gpu_busy_seconds, gpu.busy_seconds);
        ++numbers.gpus;
        numbers.gpus_unused += *gpu.busy_seconds == 0 ? 1 : 0;
      }
    }
  }
  return numbers;
}

Result<std::vector<UnitMeasurements>> MeasurementSource::measure_all(
    const std::string& cluster_id, const std::vector<UnitRun>& runs) {
  std::vector<UnitMeasurements> all;
  all.reserve(runs.size());
  for (const UnitRun& run : runs) {
    CEEMS_TRY(one, measure(cluster_id, run));
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace ceems::api
