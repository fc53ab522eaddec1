#include "store/merge.h"

#include <limits>

#include <gtest/gtest.h>

#include "store/json.h"

namespace ceems::store {
namespace {

using model::MetricMap;

TEST(Merge, TotalsAddUp) {
  EXPECT_EQ(metric_map_text(add_maps({{"a", 1}}, {{"b", 2.5}})), R"({"a":1,"b":2.5})");
  EXPECT_EQ(add_maps({}, {}), MetricMap{});
  EXPECT_EQ(add_maps({{"a", 0}}, {{"a", std::numeric_limits<double>::quiet_NaN()}}),
            (MetricMap{{"a", 0}}));
  EXPECT_DOUBLE_EQ(add_maps({{"a", 0.1}}, {{"a", 0.2}}).at("a"), 0.3);
}

/// Averages of CPU with weights before and in the window.
MetricMap average(const MetricMap& existing, const MetricMap& window, double before, double added) {
  AverageWeights weights;
  return merge_metric(model::Metric::kAvgCpuUsage, existing, {{"alloc_cputime", before}},
                      {.map = window, .times = {{"alloc_cputime", added}}, .times_counted = false},
                      weights);
}

TEST(Merge, AveragesAreWeighted) {
  EXPECT_EQ(metric_map_text(average({{"a", 10}}, {{"a", 20}}, 1000, 500)),
            R"({"a":13.333333333333334})");
  EXPECT_EQ(average({{"a", 10}}, {{"b", 20}}, 1000, 0), (MetricMap{{"a", 10}, {"b", 0}}));
  EXPECT_EQ(average({{"a", 1}, {"b", 3}}, {{"a", 4}}, 1, 2), (MetricMap{{"a", 3}, {"b", 3}}));
  EXPECT_EQ(average({{"a", 10}}, {{"a", 25}}, 1000, 500), (MetricMap{{"a", 15}}));
  EXPECT_EQ(average({{"a", 10}}, {{"a", 0}}, 1000, 1000), (MetricMap{{"a", 5}}));
  EXPECT_EQ(average({{"a", 10}}, {{"a", 25}}, 1000, 0), (MetricMap{{"a", 10}}));
}

TEST(Merge, LeastAndGreatestValuesAreKept) {
  AverageWeights weights;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const MetricMap window{{"a", 3}, {"b", -1}, {"c", 7}, {"d", nan}};
  const auto merged = [&](model::Metric metric) {
    return merge_metric(metric, {{"a", 2}, {"b", 0}}, {{"walltime", 5}},
                        {.map = window, .times = {{"walltime", 9}}, .times_counted = false},
                        weights);
  };
  EXPECT_EQ(merged(model::Metric::kMinCustomStats), (MetricMap{{"a", 2}, {"b", -1}, {"c", 7}}));
  EXPECT_EQ(merged(model::Metric::kMaxCustomStats), (MetricMap{{"a", 3}, {"b", 0}, {"c", 7}}));
  EXPECT_EQ(merged(model::Metric::kTotalCustomStats),
            (MetricMap{{"a", 5}, {"b", -1}, {"c", 7}, {"d", 0}}));
  EXPECT_TRUE(weights.empty());
  EXPECT_EQ(least_of({{"a", nan}}, {}), MetricMap{});
  EXPECT_EQ(greatest_of({}, {{"a", -2}}), (MetricMap{{"a", -2}}));
}

TEST(Merge, CustomAveragesAreWeightedByTheRunningTime) {
  AverageWeights weights;
  EXPECT_EQ(merge_metric(model::Metric::kAvgCustomStats, {{"x", 10}},
                         {{"walltime", 100}, {"alloc_cputime", 1}},
                         {.map = {{"x", 40}},
                          .times = {{"walltime", 200}, {"alloc_cputime", 1000}},
                          .times_counted = false},
                         weights),
            (MetricMap{{"x", 30}}));
}

TEST(Merge, WithoutAnyWeightTheOldAverageStays) {
  EXPECT_EQ(average({{"a", 10}}, {{"a", 20}}, 0, 0), (MetricMap{{"a", 10}}));
  EXPECT_EQ(average({{"a", 10}}, {}, 0, 0), (MetricMap{{"a", 10}}));
  EXPECT_EQ(average({}, {{"a", 90}}, 7, 0), (MetricMap{{"a", 0}}));
}

TEST(Merge, AveragesOfSeveralWithoutAnyWeightAreZero) {
  const auto zeroed = [](model::Metric metric, double cputime, const AverageWeights& weights) {
    return zero_without_weight(metric, {{"a", 10}, {"b", 20}}, {{"alloc_cputime", cputime}},
                               weights);
  };
  constexpr auto kUsage = model::Metric::kAvgCpuUsage;
  const MetricMap as_they_are{{"a", 10}, {"b", 20}};
  EXPECT_EQ(zeroed(kUsage, 0, {}), (MetricMap{{"a", 0}, {"b", 0}}));
  EXPECT_EQ(zeroed(kUsage, 5, {}), as_they_are);
  EXPECT_EQ(zeroed(kUsage, 5, {{"avg_cpu_usage.b", 0}}), (MetricMap{{"a", 10}, {"b", 0}}));
  EXPECT_EQ(zeroed(kUsage, 0, {{"avg_cpu_usage.b", 3}}), (MetricMap{{"a", 0}, {"b", 20}}));
  EXPECT_EQ(zeroed(model::Metric::kAvgGpuUsage, 5, {}), (MetricMap{{"a", 0}, {"b", 0}}));
  EXPECT_EQ(zeroed(model::Metric::kTotalIoReadStats, 0, {}), as_they_are);
}

TEST(Merge, AMissingWeightCountsAsZero) {
  AverageWeights weights;
  const MetricMap times{{"alloc_cputime", 100}};
  EXPECT_EQ(merge_metric(model::Metric::kAvgCpuUsage, {{"g", 10}}, times,
                         {.map = {{"g", 90}}, .times = {}}, weights),
            (MetricMap{{"g", 10}}));
  EXPECT_EQ(merge_metric(model::Metric::kTotalIoReadStats, {{"g", 10}}, {},
                         {.map = {{"g", 20}}, .times = {}}, weights),
            (MetricMap{{"g", 30}}));
  EXPECT_TRUE(weights.empty());
}

TEST(Merge, WindowsWithoutANameTakeNoPartInItsAverage) {
  constexpr auto kMetric = model::Metric::kAvgCpuUsage;
  AverageWeights weights;
  MetricMap times;
  MetricMap average;
  const auto window = [&](const MetricMap& map, double cputime) {
    const MetricMap added{{"alloc_cputime", cputime}};
    average = merge_metric(kMetric, average, times, {.map = map, .times = added}, weights);
    times = add_maps(times, added);
  };
  window({{"g", 10}}, 1000);
  EXPECT_TRUE(weights.empty());
  window({}, 3000);
  EXPECT_EQ(average, (MetricMap{{"g", 10}}));
  EXPECT_EQ(weights, (AverageWeights{{"avg_cpu_usage.g", 1000}}));
  window({{"g", 40}, {"h", 7}}, 500);
  EXPECT_DOUBLE_EQ(average.at("g"), 20);
  EXPECT_EQ(average.at("h"), 7);
  EXPECT_EQ(weights, (AverageWeights{{"avg_cpu_usage.g", 1500}, {"avg_cpu_usage.h", 500}}));
  // The second window is known after all: the result is that of complete windows.
  const MetricMap gap{{"alloc_cputime", 3000}};
  average = merge_metric(kMetric, average, times,
                         {.map = {{"g", 30}}, .times = gap, .times_counted = true}, weights);
  EXPECT_DOUBLE_EQ(average.at("g"), (10 * 1000 + 30 * 3000 + 40 * 500) / 4500.0);
  EXPECT_EQ(weights, (AverageWeights{{"avg_cpu_usage.h", 500}}));
}

TEST(Merge, CountsTheTimesWhoseEnergyIsKnown) {
  AverageWeights weights;
  MetricMap times;
  bool measured = false;
  const auto window = [&](double cputime, bool known) {
    const MetricMap added{{"alloc_cputime", cputime}};
    add_time_with_energy(measured, times, known, added, false, weights);
    times = add_maps(times, added);
    measured = measured || known;
    return time_with_energy("alloc_cputime", measured, times, weights);
  };
  EXPECT_EQ(window(1000, false), 0);
  EXPECT_TRUE(weights.empty()) << "no window has energy";
  EXPECT_EQ(window(200, true), 200);
  EXPECT_EQ(weights, (AverageWeights{{"energy.alloc_cputime", 200}}));
  EXPECT_EQ(window(30, false), 200);
  EXPECT_EQ(window(4, true), 204);
  EXPECT_EQ(time_with_energy("alloc_gputime", measured, times, weights), 0);
  // What was missing is known after all.
  add_time_with_energy(true, times, true, {{"alloc_cputime", 1000}}, true, weights);
  EXPECT_EQ(time_with_energy("alloc_cputime", measured, times, weights), 1204);
  add_time_with_energy(true, times, true, {{"alloc_cputime", 30}}, true, weights);
  EXPECT_TRUE(weights.empty()) << "all windows have energy";
  EXPECT_EQ(time_with_energy("alloc_cputime", measured, times, weights), 1234);
  // A row of an older version does not say that a window lacks energy.
  add_time_with_energy(true, times, true, {{"alloc_cputime", 30}}, true, weights);
  EXPECT_EQ(time_with_energy("alloc_cputime", measured, times, weights), 1234);
  add_time_with_energy(true, times, true, {{"alloc_cputime", 9999}}, true, weights);
  EXPECT_LE(time_with_energy("alloc_cputime", measured, times, weights), 9999) << "damaged";
}

TEST(Merge, AFilledGapOfARowWithoutWeightsCountsForItsOwnTime) {
  AverageWeights weights;
  const MetricMap gap{{"alloc_cputime", 500}};
  EXPECT_EQ(merge_metric(model::Metric::kAvgCpuUsage, {{"g", 10}}, {{"alloc_cputime", 1500}},
                         {.map = {{"g", 40}}, .times = gap, .times_counted = true}, weights),
            (MetricMap{{"g", 20}}));
  EXPECT_TRUE(weights.empty());
}

}  // namespace
}  // namespace ceems::store
