#include "store/sums/usage_sums.h"

#include <utility>

#include "store/merge.h"
#include "store/schema/tables.h"

namespace ceems::store {
namespace {

void add_to(model::MetricMap& sum, const model::MetricMap& map) {
  for (const auto& [name, value] : map) {
    sum[name] += value;
  }
}

/// Adds up, or keeps the least or greatest value of each name.
void join(std::size_t metric, model::MetricMap& sum, const model::MetricMap& map) {
  switch (column_of(static_cast<model::Metric>(metric)).update) {
    case Update::kLeast:
      sum = least_of(std::move(sum), map);
      break;
    case Update::kGreatest:
      sum = greatest_of(std::move(sum), map);
      break;
    default:
      add_to(sum, map);
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
      join(metric, maps[metric + 1], row[metric + 1]);
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
  add_to(maps[0], other.maps[0]);
  for (std::size_t metric = 0; metric < model::kMetricCount; ++metric) {
    join(metric, maps[metric + 1], other.maps[metric + 1]);
  }
  for (std::size_t metric = 0; metric < weights.size(); ++metric) {
    add_to(weights[metric], other.weights[metric]);
  }
}

}  // namespace ceems::store
