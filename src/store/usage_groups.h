#pragma once

#include <array>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "store/reader.h"

namespace ceems::store {

/// Adds rows of units or days up to groups (docs/api/endpoints.md, "usage/current"). Sums are
/// floating point; an average k of a group is Σ value·weight / Σ weight over the rows that have k,
/// and 0 without any weight. Not thread-safe.
class UsageGroups {
 public:
  using Maps = std::array<model::MetricMap, model::kMetricCount + 1>;

  explicit UsageGroups(const CurrentUsageQuery& query) : query_(&query) {}

  /// `row.maps` holds the row's maps: the times always, of the metrics those that are asked for.
  void add(UsageGroup row);
  /// The groups by cluster, user and project, with equal names in every map.
  std::vector<UsageGroup> finish() &&;

 private:
  struct Sums {
    UsageGroup first;
    std::array<std::map<std::string, double, std::less<>>, model::kMetricCount> weights;
  };
  using Key = std::array<std::string, 5>;

  const CurrentUsageQuery* query_;
  std::map<Key, Sums> groups_;
};

}  // namespace ceems::store
