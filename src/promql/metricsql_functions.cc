#include <algorithm>
#include <array>
#include <string_view>

#include "promql/functions.h"

namespace ceems::promql {
namespace {

// https://docs.victoriametrics.com/victoriametrics/metricsql/, without what Prometheus has as well.
// All take any number of arguments: what is wrong with a call, the server says.

constexpr std::array<std::string_view, 117> kMetricsqlNames = {
    "aggr_over_time",
    "alias",
    "ascent_over_time",
    "bitmap_and",
    "bitmap_or",
    "bitmap_xor",
    "buckets_limit",
    "changes_prometheus",
    "count_eq_over_time",
    "count_gt_over_time",
    "count_le_over_time",
    "count_ne_over_time",
    "count_values_over_time",
    "decreases_over_time",
    "default_rollup",
    "delta_prometheus",
    "deriv_fast",
    "descent_over_time",
    "distinct_over_time",
    "drop_common_labels",
    "drop_empty_series",
    "duration_over_time",
    "geomean_over_time",
    "histogram_over_time",
    "histogram_share",
    "hoeffding_bound_lower",
    "hoeffding_bound_upper",
    "ideriv",
    "increase_prometheus",
    "increase_pure",
    "increases_over_time",
    "integrate",
    "interpolate",
    "iqr_over_time",
    "keep_last_value",
    "keep_next_value",
    "label_copy",
    "label_del",
    "label_graphite_group",
    "label_keep",
    "label_lowercase",
    "label_map",
    "label_match",
    "label_mismatch",
    "label_move",
    "label_set",
    "label_transform",
    "label_uppercase",
    "label_value",
    "labels_equal",
    "lag",
    "lifetime",
    "limit_offset",
    "median_over_time",
    "mode_over_time",
    "now",
    "outlier_iqr_over_time",
    "prometheus_buckets",
    "quantiles_over_time",
    "rand",
    "rand_exponential",
    "rand_normal",
    "range_avg",
    "range_first",
    "range_last",
    "range_linear_regression",
    "range_mad",
    "range_max",
    "range_median",
    "range_min",
    "range_normalize",
    "range_over_time",
    "range_quantile",
    "range_stddev",
    "range_stdvar",
    "range_sum",
    "range_trim_outliers",
    "range_trim_spikes",
    "range_trim_zscore",
    "range_zscore",
    "rate_over_sum",
    "rate_prometheus",
    "remove_resets",
    "rollup",
    "rollup_candlestick",
    "rollup_delta",
    "rollup_deriv",
    "rollup_increase",
    "rollup_rate",
    "rollup_scrape_interval",
    "ru",
    "running_avg",
    "running_max",
    "running_min",
    "running_sum",
    "scrape_interval",
    "share_eq_over_time",
    "share_gt_over_time",
    "share_le_over_time",
    "smooth_exponential",
    "sort_by_label_numeric",
    "sort_by_label_numeric_desc",
    "stale_samples_over_time",
    "sum2_over_time",
    "sum_eq_over_time",
    "sum_gt_over_time",
    "sum_le_over_time",
    "tfirst_over_time",
    "timestamp_with_name",
    "timezone_offset",
    "tlast_change_over_time",
    "tlast_over_time",
    "tmax_over_time",
    "tmin_over_time",
    "ttf",
    "union",
    "zscore_over_time",
};

/// These may have by(…) or without(…).
constexpr std::array<std::string_view, 25> kMetricsqlAggregates = {
    "any",         "bottomk_avg", "bottomk_last", "bottomk_max",  "bottomk_median",
    "bottomk_min", "distinct",    "geomean",      "histogram",    "iqr",
    "mad",         "median",      "mode",         "outliers_iqr", "outliers_mad",
    "outliersk",   "quantiles",   "share",        "sum2",         "topk_avg",
    "topk_last",   "topk_max",    "topk_median",  "topk_min",     "zscore",
};

template <std::size_t kCount>
constexpr std::array<Function, kCount> metricsql_made_of(
    const std::array<std::string_view, kCount>& names, bool aggregates) {
  std::array<Function, kCount> functions;
  std::ranges::transform(names, functions.begin(), [aggregates](std::string_view name) {
    return Function{
        .name = name, .at_most = kAnyNumber, .since = Since::kMetricsql, .aggregates = aggregates};
  });
  return functions;
}

constexpr auto kMetricsqlFunctions = metricsql_made_of(kMetricsqlNames, false);
constexpr auto kMetricsqlGrouping = metricsql_made_of(kMetricsqlAggregates, true);

static_assert(std::ranges::is_sorted(kMetricsqlNames) &&
              std::ranges::is_sorted(kMetricsqlAggregates));

template <std::size_t kCount>
const Function* find_metricsql_in(const std::array<Function, kCount>& functions,
                                  std::string_view name) {
  const auto* const found = std::ranges::lower_bound(functions, name, {}, &Function::name);
  return found != functions.end() && found->name == name ? found : nullptr;
}

}  // namespace

const Function* find_metricsql_function(std::string_view name) {
  const Function* const found = find_metricsql_in(kMetricsqlFunctions, name);
  return found == nullptr ? find_metricsql_in(kMetricsqlGrouping, name) : found;
}

}  // namespace ceems::promql
