#include "store/queries/usage_groups.h"

#include <set>
#include <utility>

#include "store/merge.h"

namespace ceems::store {

UsageSums& UsageGroups::sums_of(const UsageGroup& names, std::int64_t id) {
  Key key{names.cluster_id, names.username, names.project,
          query_->by_groupname ? names.groupname : std::string(),
          query_->by_resource_manager ? names.resource_manager : std::string()};
  Group& group = groups_[std::move(key)];
  if (id < group.first_id) {
    group.first_id = id;
    group.names = names;
  }
  return group.sums;
}

void UsageGroups::add(const UsageGroup& names, std::int64_t id, const UsageSums& sums) {
  sums_of(names, id).add(sums);
}

void UsageGroups::add_row(const UsageGroup& names,
                          std::int64_t id,
                          std::int64_t num_units,
                          const UsageMaps& maps) {
  UsageSums& sums = sums_of(names, id);
  sums.num_units += num_units;
  sums.add_row(maps, query_->maps);
}

std::vector<UsageGroup> UsageGroups::finish() && {
  std::array<std::set<std::string, std::less<>>, model::kMetricCount + 1> names;
  for (const auto& [key, group] : groups_) {
    for (std::size_t map = 0; map < names.size(); ++map) {
      for (const auto& [name, value] : group.sums.maps[map]) {
        names[map].insert(name);
      }
    }
  }
  std::vector<UsageGroup> result;
  result.reserve(groups_.size());
  for (auto& [key, group] : groups_) {
    UsageGroup& answer = result.emplace_back(std::move(group.names));
    answer.num_units = group.sums.num_units;
    answer.maps = std::move(group.sums.maps);
    for (std::size_t map = 0; map < names.size(); ++map) {
      if (map > 0 && is_extreme(static_cast<model::Metric>(map - 1))) {
        continue;  // 0 would be a value
      }
      for (const std::string& name : names[map]) {
        double& value = answer.maps[map][name];  // 0 where the group has none
        if (map > 0 && is_average(map - 1)) {
          const double weight = value_or_zero(group.sums.weights[map - 1], name);
          value = weight > 0 ? value / weight : 0;
        }
      }
    }
  }
  return result;
}

}  // namespace ceems::store
