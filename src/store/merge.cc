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

model::MetricMap average_maps(const model::MetricMap& existing,
                              const model::MetricMap& window,
                              double existing_weight,
                              double window_weight) {
  model::MetricMap result;
  for (const auto& [name, value] : existing) {
    const auto other = window.find(name);
    const double weight = existing_weight + (other == window.end() ? 0 : window_weight);
    if (other == window.end() || weight <= 0) {
      result[name] = finite(value);
    } else {
      result[name] =
          (finite(value) * existing_weight + finite(other->second) * window_weight) / weight;
    }
  }
  for (const auto& [name, value] : window) {
    if (!existing.contains(name)) {
      result[name] = window_weight > 0 ? finite(value) : 0;
    }
  }
  return result;
}

model::MetricMap merge_metric(model::Metric metric,
                              const model::MetricMap& existing,
                              const model::MetricMap& window,
                              const model::MetricMap& existing_times,
                              const model::MetricMap& window_times) {
  const std::string_view weight = model::weight_key(metric);
  if (weight.empty()) {
    return add_maps(existing, window);
  }
  return average_maps(existing, window, value_or_zero(existing_times, weight),
                      value_or_zero(window_times, weight));
}

model::MetricMap merge_weighted(model::Metric metric,
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
