#include "api/report/marks.h"

#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ceems::api {
namespace {

using ::testing::ElementsAre;

/// Two nodes that solve; one of them reads before.
UnitMarks two_nodes_of_marks() {
  UnitMarks marks;
  marks.nodes = {{.name = "n1",
                  .regions = {{"read", {.seconds = 20, .count = 1, .self_joules = 1000}},
                              {"solve",
                               {.seconds = 90,
                                .count = 10,
                                .joules = {{"node", 9000}, {"package", 7000}, {"dram", 2000}},
                                .self_joules = 8500}}},
                  .joules = {{"node", 12'000}, {"package", 9000}}},
                 {.name = "n2",
                  .regions = {{"solve",
                               {.seconds = 110,
                                .count = 11,
                                .joules = {{"package", 10'000}, {"dram", 1000}},
                                .self_joules = 11'000}}},
                  .joules = {{"package", 13'000}, {"dram", 2000}}}};
  marks.results = {{.name = "step", .unit = "", .n = 100}, {.name = "none", .unit = "", .n = 0}};
  marks.merits = {{.name = "speed", .unit = "ns/day", .nodes = 1, .last = 83.2, .mean = 81.44}};
  return marks;
}

TEST(Marks, OfARegionAreSumsOverItsNodes) {
  const auto regions = regions_of(two_nodes_of_marks());
  ASSERT_EQ(regions.size(), 2U);
  const RegionSum& solve = regions[0];  // the longest
  EXPECT_EQ(solve.name, "solve");
  EXPECT_EQ(solve.count, 11);
  EXPECT_EQ(solve.seconds, 110);
  EXPECT_EQ(solve.mean_seconds, 100);
  EXPECT_NEAR(solve.longer().value_or(0), 0.1, 1e-12);
  EXPECT_EQ(solve.joules, 20'000);  // "node" has the others in it
  EXPECT_EQ(solve.self_joules, 19'500);
  EXPECT_EQ(solve.domains.size(), 2U);
  EXPECT_EQ(solve.domains.at("package"), 17'000);
  EXPECT_EQ(solve.domains.at("dram"), 3000);
  EXPECT_EQ(solve.watts, 100);
  EXPECT_THAT(solve.nodes, ElementsAre(1U, 0U));
  const RegionSum& read = regions[1];
  EXPECT_EQ(read.joules, std::nullopt);  // too short a pass
  EXPECT_EQ(read.watts, std::nullopt);
  EXPECT_EQ(read.longer(), std::nullopt);
  EXPECT_EQ(joules_of_unit(two_nodes_of_marks()), 27'000);
  EXPECT_TRUE(regions_of({}).empty());
  EXPECT_EQ(joules_of_unit({}), std::nullopt);
}

TEST(Marks, OfAReportAreSharesOfTheRun) {
  report::Report report;
  report.job.elapsed = 220;
  report.energy.kwh = 0.01;
  add_marks(two_nodes_of_marks(), report);
  ASSERT_EQ(report.phases.size(), 2U);
  EXPECT_EQ(report.phases[0].region, "solve");
  EXPECT_EQ(report.phases[0].nodes, 2);
  EXPECT_EQ(report.phases[0].share, 0.5);
  EXPECT_DOUBLE_EQ(report.phases[0].kwh.value_or(0), 20'000 / 3.6e6);
  EXPECT_EQ(report.phases[0].slowest, "n2");
  EXPECT_EQ(report.phases[1].slowest, "");
  EXPECT_EQ(report.phases[1].kwh, std::nullopt);
  ASSERT_EQ(report.results.size(), 2U);
  EXPECT_DOUBLE_EQ(report.results[0].joules.value_or(0), 360);
  EXPECT_EQ(report.results[1].joules, std::nullopt);
  ASSERT_EQ(report.merits.size(), 1U);
  EXPECT_EQ(report.merits[0].unit, "ns/day");
  EXPECT_EQ(report.merits[0].mean, 81.44);
}

TEST(Marks, OfAReportAreNotMoreThanItCanShow) {
  UnitMarks marks;
  auto& node = marks.nodes.emplace_back();
  for (int i = 0; i < 100; ++i) {
    node.regions[std::to_string(i)].seconds = i;
    marks.results.push_back({.name = std::to_string(i), .unit = "", .n = 1});
    marks.merits.push_back({.name = std::to_string(i), .unit = ""});
  }
  report::Report report;
  add_marks(marks, report);
  EXPECT_EQ(report.phases.size(), kMaxShownMarks);
  EXPECT_EQ(report.phases.front().region, "99");
  EXPECT_EQ(report.phases.front().share, std::nullopt);
  EXPECT_EQ(report.results.size(), kMaxShownMarks);
  EXPECT_EQ(report.results.front().joules, std::nullopt);
  EXPECT_EQ(report.merits.size(), kMaxShownMarks);
}

}  // namespace
}  // namespace ceems::api
