#include "store/usage_groups.h"

#include <set>
#include <utility>

#include "store/merge.h"

namespace ceems::store {
namespace {

bool is_average(std::size_t metric) {
  return !model::weight_key(static_cast<model::Metric>(metric)).empty();
}

}  // namespace

void UsageGroups::add(UsageGroup row) {
  Key key{row.cluster_id, row.username, row.project,
          query_->by_groupname ? row.groupname : std::string(),
          query_->by_resource_manager ? row.resource_manager : std::string()};
  auto [found, fresh] = groups_.try_emplace(std::move(key));
  Sums& sums = found->second;
  UsageGroup& group = sums.first;
  Maps maps = std::exchange(row.maps, {});
  if (fresh) {
    group = std::move(row);
  } else {
    group.num_units += row.num_units;
  }
  if (query_->maps[0]) {
    for (const auto& [name, value] : maps[0]) {
      group.maps[0][name] += value;
    }
  }
  for (std::size_t metric = 0; metric < model::kMetricCount; ++metric) {
    if (!query_->maps[metric + 1]) {
      continue;
    }
    const bool average = is_average(metric);
    const double weight =
        average ? value_or_zero(maps[0], model::weight_key(static_cast<model::Metric>(metric))) : 1;
    for (const auto& [name, value] : maps[metric + 1]) {
      group.maps[metric + 1][name] += value * weight;
      if (average) {
        sums.weights[metric][name] += weight;
      }
    }
  }
}

std::vector<UsageGroup> UsageGroups::finish() && {
  std::array<std::set<std::string, std::less<>>, model::kMetricCount + 1> names;
  for (const auto& [key, sums] : groups_) {
    for (std::size_t map = 0; map < names.size(); ++map) {
      for (const auto& [name, value] : sums.first.maps[map]) {
        names[map].insert(name);
      }
    }
  }
  std::vector<UsageGroup> result;
  result.reserve(groups_.size());
  for (auto& [key, sums] : groups_) {
    UsageGroup& group = sums.first;
    for (std::size_t map = 0; map < names.size(); ++map) {
      for (const std::string& name : names[map]) {
        double& value = group.maps[map][name];  // 0 where the group has none
        if (map > 0 && is_average(map - 1)) {
          const double weight = value_or_zero(sums.weights[map - 1], name);
          value = weight > 0 ? value / weight : 0;
        }
      }
    }
    result.push_back(std::move(group));
  }
  return result;
}

}  // namespace ceems::store
