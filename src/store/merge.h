#pragma once

#include "model/unit.h"

namespace ceems::store {

// How a window's figures join those of earlier windows (docs/api/database.md, "Sums and averages").
// Nothing is rounded. Pure functions; those that change a map take it over, so that sums over many
// units are made in place.

/// Per-name sum; names of either side are kept.
model::MetricMap add_maps(model::MetricMap existing, const model::MetricMap& window);

/// Weights of averages by "avg_cpu_usage.global", where some windows lacked the name: the sum of
/// those that had it. A name that is not in here was in every window and has the weight that the
/// time map holds.
using AverageWeights = model::MetricMap;

/// What joins the figures of earlier windows.
struct Joining {
  const model::MetricMap& map;
  const model::MetricMap& times;
  bool times_counted = false;  ///< they are in the existing times already: a gap is filled
};

/// One of the twelve metrics: add_maps() for totals. Averages are per-name means of `existing` and
/// the window weighted with what weight_name() names in the time maps, where a missing weight is 0:
/// S/W over the windows that hold the name. With no weight at all an existing value stays as it is,
/// and a name that is new is 0.
model::MetricMap merge_metric(model::Metric metric,
                              model::MetricMap existing,
                              const model::MetricMap& existing_times,
                              const Joining& window,
                              AverageWeights& weights);

/// `averages` with 0 where a name has no weight at all, as in answers of usage/current: what one
/// window found in no time stands for that window only. Totals come back as they are.
model::MetricMap zero_without_weight(model::Metric metric,
                                     model::MetricMap averages,
                                     const model::MetricMap& times,
                                     const AverageWeights& weights);

/// The value of a name, or 0; NaN and infinities are 0.
double value_or_zero(const model::MetricMap& map, std::string_view name);

}  // namespace ceems::store
