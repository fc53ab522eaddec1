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

TEST(Merge, AveragesAreWeighted) {
  EXPECT_EQ(metric_map_text(average_maps({{"a", 10}}, {{"a", 20}}, 1000, 500)),
            R"({"a":13.333333333333334})");
  EXPECT_EQ(average_maps({{"a", 10}}, {{"b", 20}}, 1000, 0), (MetricMap{{"a", 10}, {"b", 0}}));
  EXPECT_EQ(average_maps({{"a", 1}, {"b", 3}}, {{"a", 4}}, 1, 2), (MetricMap{{"a", 3}, {"b", 3}}));
  EXPECT_EQ(average_maps({{"a", 10}}, {{"a", 25}}, 1000, 500), (MetricMap{{"a", 15}}));
  EXPECT_EQ(average_maps({{"a", 10}}, {{"a", 0}}, 1000, 1000), (MetricMap{{"a", 5}}));
  EXPECT_EQ(average_maps({{"a", 10}}, {{"a", 25}}, 1000, 0), (MetricMap{{"a", 10}}));
}

TEST(Merge, WithoutAnyWeightTheOldAverageStays) {
  EXPECT_EQ(average_maps({{"a", 10}}, {{"a", 20}}, 0, 0), (MetricMap{{"a", 10}}));
  EXPECT_EQ(average_maps({{"a", 10}}, {}, 0, 0), (MetricMap{{"a", 10}}));
}

TEST(Merge, AMissingWeightCountsAsZero) {
  const MetricMap times{{"alloc_cputime", 100}};
  EXPECT_EQ(merge_metric(model::Metric::kAvgCpuUsage, {{"g", 10}}, {{"g", 90}}, times, {}),
            (MetricMap{{"g", 10}}));
  EXPECT_EQ(merge_metric(model::Metric::kAvgCpuUsage, {{"g", 10}}, {{"g", 20}}, times, times),
            (MetricMap{{"g", 15}}));
  EXPECT_EQ(merge_metric(model::Metric::kTotalIoReadStats, {{"g", 10}}, {{"g", 20}}, {}, {}),
            (MetricMap{{"g", 30}}));
}

}  // namespace
}  // namespace ceems::store
