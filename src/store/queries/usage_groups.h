#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "store/reader.h"
#include "store/sums/usage_sums.h"

namespace ceems::store {

/// Adds up rows of units or days by group (docs/api/endpoints.md, "usage/current"). An average k of
/// a group is Σ value·weight / Σ weight over the rows that have k, and 0 if they have no weight.
/// Not thread-safe.
class UsageGroups {
 public:
  explicit UsageGroups(const CurrentUsageQuery& query) : query_(&query) {}

  /// `names` are the texts of the row with this id. The group gets the texts of the smallest id.
  void add(const UsageGroup& names, std::int64_t id, const UsageSums& sums);
  /// The same for a stored row.
  void add_row(const UsageGroup& names,
               std::int64_t id,
               std::int64_t num_units,
               const UsageMaps& maps);
  /// The groups, ordered by cluster, user and project. A map has the same names in all groups.
  std::vector<UsageGroup> finish() &&;

 private:
  struct Group {
    std::int64_t first_id = std::numeric_limits<std::int64_t>::max();
    UsageGroup names;
    UsageSums sums;
  };
  using Key = std::array<std::string, 5>;

  UsageSums& sums_of(const UsageGroup& names, std::int64_t id);

  const CurrentUsageQuery* query_;
  std::map<Key, Group> groups_;
};

}  // namespace ceems::store
