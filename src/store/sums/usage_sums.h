#pragma once

#include <array>
#include <cstdint>

#include "model/unit.h"
#include "store/schema/sums_columns.h"

namespace ceems::store {

/// The maps of a row: total_time_seconds and the metrics, in the order of the columns.
using UsageMaps = std::array<model::MetricMap, model::kMetricCount + 1>;

/// Sums over rows of units or days, from which the averages are computed at the end. Except for
/// rounding they do not depend on the order of the rows.
struct UsageSums {
  std::int64_t num_units = 0;
  /// Times and totals: Σ value; averages: Σ value·weight; least and greatest values: themselves.
  UsageMaps maps;
  /// Of averages: Σ weight over the rows that have the name.
  std::array<model::MetricMap, model::kMetricCount> weights;

  /// `maps` of one row; `wanted` says which of them count.
  void add_row(const UsageMaps& row, const WantedMaps& wanted);
  void add(const UsageSums& other);
};

/// Whether the map holds averages, which have a weight.
bool is_average(std::size_t metric);

}  // namespace ceems::store
