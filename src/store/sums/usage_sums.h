#pragma once

#include <array>
#include <cstdint>

#include "model/unit.h"
#include "store/schema/sums_columns.h"

namespace ceems::store {

/// total_time_seconds and the twelve metrics, in the order of the columns.
using UsageMaps = std::array<model::MetricMap, model::kMetricCount + 1>;

/// Sums over rows of units or days, from which averages are made at last. They do not depend on the
/// order of the rows but for rounding.
struct UsageSums {
  std::int64_t num_units = 0;
  /// Times and totals: Σ value; averages: Σ value·weight.
  UsageMaps maps;
  /// Of averages: Σ weight over the rows that have the name.
  std::array<model::MetricMap, model::kMetricCount> weights;

  /// `maps` of one row; `wanted` says which of them count.
  void add_row(const UsageMaps& row, const WantedMaps& wanted);
  void add(const UsageSums& other);
};

/// Is it a mean, which has a weight?
bool is_average(std::size_t metric);

}  // namespace ceems::store
