#include "store/merge.h"

#include <cmath>

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

}  // namespace ceems::store
