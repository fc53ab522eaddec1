#include "store/merge.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace ceems::store {
namespace {

double finite(double value) {
  return std::isfinite(value) ? value : 0;
}

}  // namespace

double value_or_zero(const model::MetricMap& map, std::string_view name) {
  const auto found = map.find(name);
  return found == map.end() ? 0 : finite(found->second);
}

model::MetricMap add_maps(const model::MetricMap& existing, const model::MetricMap& window) {
  model::MetricMap result = existing;
  for (const auto& [name, value] : window) {
    result[name] += finite(value);
  }
  for (auto& [name, value] : result) {
    value = finite(value);
  }
  return result;
}

model::MetricMap merge_metric(model::Metric metric,
                              const model::MetricMap& existing,
                              const model::MetricMap& existing_times,
                              const Joining& window,
                              AverageWeights& weights) {
  const std::string_view weight_name = model::weight_key(metric);
  if (weight_name.empty()) {
    return add_maps(existing, window.map);
  }
  const double before = value_or_zero(existing_times, weight_name);
  const double added = value_or_zero(window.times, weight_name);
  const double after = window.times_counted ? before : before + added;
  model::MetricMap result = add_maps(existing, {});
  for (const auto& [name, value] : window.map) {
    result.try_emplace(name, 0.0);
  }
  for (auto& [name, value] : result) {
    const std::string key = std::string(model::column_name(metric)) + "." + name;
    const auto known = weights.find(key);
    double weight = 0;
    if (known != weights.end()) {
      weight = known->second;
    } else if (existing.contains(name)) {
      // A gap is filled in a row that was written before weights were kept: the average stands for
      // the rest.
      weight = window.times_counted ? std::max(before - added, 0.0) : before;
    }
    const auto joining = window.map.find(name);
    if (joining != window.map.end() && weight + added > 0) {
      value = (value * weight + finite(joining->second) * added) / (weight + added);
      weight += added;
    }
    if (weight == after) {
      weights.erase(key);
    } else {
      weights[key] = weight;
    }
  }
  return result;
}

}  // namespace ceems::store
