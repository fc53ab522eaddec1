#pragma once

#include "model/unit.h"

namespace ceems::store {

// How the values of a window are merged with the values of earlier windows (docs/api/database.md,
// "Sums and averages"). Nothing is rounded. Pure functions. Functions that change a map take it by
// value, so that callers can move it in and out.

/// The sum for each name of either map. NaN and infinities count as 0.
model::MetricMap add_maps(model::MetricMap existing, const model::MetricMap& window);

/// The weights of averages that some windows lacked, by "avg_cpu_usage.global": the sum over the
/// windows that had the average. An average that is not listed was in every window, so its weight
/// is that of the time map.
using AverageWeights = model::MetricMap;

/// The values of a window for one metric.
struct Joining {
  const model::MetricMap& map;
  const model::MetricMap& times;  ///< total_time_seconds of the window
  bool times_counted = false;     ///< `existing_times` includes them already: a gap is filled
};

/// The least or the greatest number of each name of either map. NaN and infinities count as
/// missing.
model::MetricMap least_of(model::MetricMap existing, const model::MetricMap& window);
model::MetricMap greatest_of(model::MetricMap existing, const model::MetricMap& window);

/// Merges one of the metrics. Totals are added up with add_maps(), least and greatest values with
/// least_of() and greatest_of(). Averages are the means of
/// `existing` and the window for each name, weighted with the entry weight_name() of their times; a
/// missing entry counts as 0. If both weights are 0, an existing value stays and a new name gets 0.
/// Updates `weights`.
model::MetricMap merge_metric(model::Metric metric,
                              model::MetricMap existing,
                              const model::MetricMap& existing_times,
                              const Joining& window,
                              AverageWeights& weights);

/// The part of one of the times ("alloc_cputime", "alloc_gputime") in which energy was measured.
/// `measured`: it was in any of the windows. Like the weight of an average, `weights` has it where
/// some windows lacked energy ("energy.alloc_cputime").
double time_with_energy(std::string_view time,
                        bool measured,
                        const model::MetricMap& times,
                        const AverageWeights& weights);

/// Counts the times of a window whose energy is known, or not. `measured` and `existing_times` are
/// of the row without the window, except that `existing_times` include the times of a filled gap.
void add_time_with_energy(bool measured,
                          const model::MetricMap& existing_times,
                          bool window_measured,
                          const model::MetricMap& window_times,
                          bool times_counted,
                          AverageWeights& weights);

/// Returns `averages` with 0 for every name without weight, as answers of usage/current have it: an
/// average over no time says nothing about other windows. Other metrics are returned unchanged.
model::MetricMap zero_without_weight(model::Metric metric,
                                     model::MetricMap averages,
                                     const model::MetricMap& times,
                                     const AverageWeights& weights);

/// Which of several sources of emissions counts where one number is shown, as on the web page: a
/// site's own query before RTE, Electricity Maps, the average of the country and that of the world.
/// Empty if there is none. Valid as long as the map.
std::string_view first_source(const model::MetricMap& emissions);

/// Whether the metric holds least or greatest values, for which 0 must not stand for a missing one.
bool is_extreme(model::Metric metric);

/// The value of a name; 0 if it is missing, NaN or infinite.
double value_or_zero(const model::MetricMap& map, std::string_view name);

}  // namespace ceems::store
