#include "store/merge.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "store/schema/tables.h"

namespace ceems::store {
namespace {

double finite(double value) {
  return std::isfinite(value) ? value : 0;
}

/// The times that energy is set against.
constexpr std::array<std::string_view, 2> kTimesOfEnergy{"alloc_cputime", "alloc_gputime"};

/// The key of a time with energy in AverageWeights.
std::string energy_entry(std::string_view time) {
  return fmt::format("energy.{}", time);
}

/// The key of an average in AverageWeights.
std::string weight_entry(model::Metric metric, std::string_view name) {
  return fmt::format("{}.{}", column_name(metric), name);
}

}  // namespace

std::string_view first_source(const model::MetricMap& emissions) {
  constexpr std::array<std::string_view, 4> kKnown{"rte_total", "emaps_total", "owid_total",
                                                   "global_total"};
  std::string_view best;
  std::size_t best_rank = kKnown.size() + 1;
  for (const auto& [name, value] : emissions) {
    const auto known = std::ranges::find(kKnown, name);
    const std::size_t rank =
        known == kKnown.end() ? 0 : static_cast<std::size_t>(known - kKnown.begin()) + 1;
    if (best.empty() || rank < best_rank) {
      best = name;
      best_rank = rank;
    }
  }
  return best;
}

bool is_extreme(model::Metric metric) {
  const Update update = column_of(metric).update;
  return update == Update::kLeast || update == Update::kGreatest;
}

double value_or_zero(const model::MetricMap& map, std::string_view name) {
  const auto found = map.find(name);
  return found == map.end() ? 0 : finite(found->second);
}

model::MetricMap add_maps(model::MetricMap existing, const model::MetricMap& window) {
  for (auto& [name, value] : existing) {
    value = finite(value);
  }
  for (const auto& [name, value] : window) {
    double& sum = existing[name];
    sum = finite(sum + finite(value));
  }
  return existing;
}

namespace {

template <typename Better>
model::MetricMap best_of(model::MetricMap existing, const model::MetricMap& window, Better better) {
  std::erase_if(existing, [](const auto& entry) { return !std::isfinite(entry.second); });
  for (const auto& [name, value] : window) {
    if (!std::isfinite(value)) {
      continue;
    }
    const auto [stored, fresh] = existing.try_emplace(name, value);
    if (!fresh && better(value, stored->second)) {
      stored->second = value;
    }
  }
  return existing;
}

}  // namespace

model::MetricMap least_of(model::MetricMap existing, const model::MetricMap& window) {
  return best_of(std::move(existing), window, std::less<>());
}

model::MetricMap greatest_of(model::MetricMap existing, const model::MetricMap& window) {
  return best_of(std::move(existing), window, std::greater<>());
}

model::MetricMap merge_metric(model::Metric metric,
                              model::MetricMap existing,
                              const model::MetricMap& existing_times,
                              const Joining& window,
                              AverageWeights& weights) {
  switch (column_of(metric).update) {
    case Update::kLeast:
      return least_of(std::move(existing), window.map);
    case Update::kGreatest:
      return greatest_of(std::move(existing), window.map);
    case Update::kMean:
      break;
    default:
      return add_maps(std::move(existing), window.map);
  }
  const std::string_view weighted_by = weight_name(metric);
  const double before = value_or_zero(existing_times, weighted_by);
  const double added = value_or_zero(window.times, weighted_by);
  const double after = window.times_counted ? before : before + added;
  // If a gap of a row without weights is filled, its average so far covers all other windows.
  const double usual = window.times_counted ? std::max(before - added, 0.0) : before;
  const auto join = [&](std::string_view name, double& value, double weight) {
    // Most rows have no weights, so the key is built only if there is something to look up.
    std::string key;
    const auto key_of = [&] { return key.empty() ? key = weight_entry(metric, name) : key; };
    const auto known = weights.empty() ? weights.end() : weights.find(key_of());
    if (known != weights.end()) {
      weight = known->second;
    }
    const auto joining = window.map.find(name);
    if (joining != window.map.end() && weight + added > 0) {
      value = (value * weight + finite(joining->second) * added) / (weight + added);
      weight += added;
    }
    if (weight != after) {
      weights[key_of()] = weight;
    } else if (known != weights.end()) {
      weights.erase(known);
    }
  };
  for (auto& [name, value] : existing) {
    value = finite(value);
    join(name, value, usual);
  }
  for (const auto& [name, figure] : window.map) {
    if (const auto [value, fresh] = existing.try_emplace(name, 0.0); fresh) {
      join(name, value->second, 0);
    }
  }
  return existing;
}

double time_with_energy(std::string_view time,
                        bool measured,
                        const model::MetricMap& times,
                        const AverageWeights& weights) {
  if (!measured) {
    return 0;
  }
  const auto part = weights.empty() ? weights.end() : weights.find(energy_entry(time));
  return part == weights.end() ? value_or_zero(times, time) : finite(part->second);
}

void add_time_with_energy(bool measured,
                          const model::MetricMap& existing_times,
                          bool window_measured,
                          const model::MetricMap& window_times,
                          bool times_counted,
                          AverageWeights& weights) {
  for (const std::string_view time : kTimesOfEnergy) {
    const double before = value_or_zero(existing_times, time);
    const double added = value_or_zero(window_times, time);
    const double after = times_counted ? before : before + added;
    double part = time_with_energy(time, measured, existing_times, weights);
    if (times_counted) {
      part = std::min(part, std::max(before - added, 0.0));  // the gap is not in it
    }
    part += window_measured ? added : 0;
    if (part < after && (measured || window_measured)) {
      weights[energy_entry(time)] = part;
    } else if (!weights.empty()) {
      weights.erase(energy_entry(time));
    }
  }
}

model::MetricMap zero_without_weight(model::Metric metric,
                                     model::MetricMap averages,
                                     const model::MetricMap& times,
                                     const AverageWeights& weights) {
  const std::string_view weighted_by = weight_name(metric);
  if (weighted_by.empty()) {
    return averages;
  }
  const double usual = value_or_zero(times, weighted_by);
  for (auto& [name, value] : averages) {
    const auto known = weights.empty() ? weights.end() : weights.find(weight_entry(metric, name));
    if ((known == weights.end() ? usual : known->second) <= 0) {
      value = 0;
    }
  }
  return averages;
}

}  // namespace ceems::store
