#include "store/sums/usage_sums.h"

#include "store/merge.h"
#include "store/schema/tables.h"

namespace ceems::store {
namespace {

void add_to(model::MetricMap& sum, const model::MetricMap& map) {
  for (const auto& [name, value] : map) {
    sum[name] += value;
  }
}

}  // namespace

bool is_average(std::size_t metric) {
  return !weight_name(static_cast<model::Metric>(metric)).empty();
}

void UsageSums::add_row(const UsageMaps& row, const WantedMaps& wanted) {
  if (wanted[0]) {
    add_to(maps[0], row[0]);
  }
  for (std::size_t metric = 0; metric < model::kMetricCount; ++metric) {
    if (!wanted[metric + 1]) {
      continue;
    }
    if (!is_average(metric)) {
      add_to(maps[metric + 1], row[metric + 1]);
      continue;
    }
    const double weight = value_or_zero(row[0], weight_name(static_cast<model::Metric>(metric)));
    for (const auto& [name, value] : row[metric + 1]) {
      maps[metric + 1][name] += value * weight;
      weights[metric][name] += weight;
    }
  }
}

void UsageSums::add(const UsageSums& other) {
  num_units += other.num_units;
  for (std::size_t map = 0; map < maps.size(); ++map) {
    add_to(maps[map], other.maps[map]);
  }
  for (std::size_t metric = 0; metric < weights.size(); ++metric) {
    add_to(weights[metric], other.weights[metric]);
  }
}

}  // namespace ceems::store
