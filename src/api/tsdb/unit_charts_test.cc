#include "api/tsdb/unit_charts.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "promql/parser.h"
#include "promql/selectors.h"

namespace ceems::api {
namespace {

using ::testing::HasSubstr;

const ChartScope kScope{.unit = R"(uuid="7",ceems_id="c")",
                        .cluster = R"(ceems_id="c")",
                        .devices = R"(gpuuuid=~"GPU-a|GPU-b")",
                        .range = "60s"};

TEST(UnitCharts, AreValidQueriesOfOneCluster) {
  for (const UnitChart& chart : unit_charts()) {
    for (const ChartBy by : {ChartBy::kSum, ChartBy::kNode, ChartBy::kGpu, ChartBy::kComponent}) {
      if (!has_lines(chart, by)) {
        continue;
      }
      for (const std::string& query :
           {chart_query(chart, by, kScope), limit_query(chart, by, kScope)}) {
        if (query.empty()) {
          continue;
        }
        auto parsed = promql::parse(query);
        ASSERT_TRUE(parsed) << chart.name << ": " << query << ": " << parsed.error().text();
        promql::for_each_selector(**parsed, [&](const promql::VectorSelector& selector) {
          EXPECT_TRUE(std::ranges::any_of(selector.matchers,
                                          [](const promql::Matcher& matcher) {
                                            return matcher.label == "ceems_id" &&
                                                   matcher.value == "c";
                                          }))
              << chart.name << ": " << query;
        });
      }
    }
  }
}

TEST(UnitCharts, HaveTheLinesThatTheyAreFor) {
  EXPECT_EQ(chart_query(*find_unit_chart("cpu"), ChartBy::kNode, kScope),
            "sum by (hostname) (rate(ceems_compute_unit_cpu_user_seconds_total{uuid=\"7\",ceems_id="
            "\"c\"}[60s]) + rate(ceems_compute_unit_cpu_system_seconds_total{uuid=\"7\",ceems_id="
            "\"c\"}[60s]))");
  EXPECT_THAT(
      chart_query(*find_unit_chart("gpu_power"), ChartBy::kGpu, kScope),
      HasSubstr("sum by (hostname, index, gpuuuid, gpuiid) (max by (hostname, index, "
                "gpuuuid, gpuiid) (ceems_compute_unit_gpu_index_flag{uuid=\"7\",ceems_id="
                "\"c\"} > 0) * 0 + on (gpuuuid, gpuiid) group_left () max by (gpuuuid, "
                "gpuiid) (ceems_gpu_power_watts{gpuuuid=~\"GPU-a|GPU-b\",ceems_id=\"c\"}))"));
  // The exporters of AMD name devices by their number only.
  EXPECT_THAT(chart_query(*find_unit_chart("gpu_power"), ChartBy::kSum, kScope),
              HasSubstr("on (hostname, index, gpuiid) group_left () max by (hostname, index, "
                        "gpuiid) (amd_gpu_power{ceems_id=\"c\"} / 1e6)"));
  EXPECT_THAT(chart_query(*find_unit_chart("power"), ChartBy::kComponent, kScope),
              ::testing::StartsWith("sum by (domain) (rate("));
  EXPECT_FALSE(has_lines(*find_unit_chart("cpu"), ChartBy::kGpu));
  EXPECT_FALSE(has_lines(*find_unit_chart("intensity"), ChartBy::kNode));
  EXPECT_EQ(limit_query(*find_unit_chart("power"), ChartBy::kSum, kScope), "");
  EXPECT_EQ(find_unit_chart("gpu"), nullptr);
  EXPECT_EQ(chart_by("gpu"), ChartBy::kGpu);
  EXPECT_EQ(chart_by("device"), std::nullopt);
}

}  // namespace
}  // namespace ceems::api
