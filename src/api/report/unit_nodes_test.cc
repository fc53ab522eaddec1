#include "api/report/unit_nodes.h"

#include <cmath>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/time/durations.h"

namespace ceems::api {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::int64_t kNodesLife = 20 * kMinuteMs;

UnitRun life_for(std::int64_t life_ms) {
  UnitRun run;
  run.started_ms = kDayMs;
  run.ended_ms = kDayMs + life_ms;
  return run;
}

/// Nodes a, b, c, … that drew so many watts for the run.
UnitMeasurements nodes_that_drew(const std::vector<double>& watts,
                                 std::int64_t life_ms = kNodesLife) {
  UnitMeasurements unit{.method = "measured"};
  const double seconds = static_cast<double>(life_ms) / 1000;
  for (std::size_t i = 0; i < watts.size(); ++i) {
    unit.nodes.push_back({.node = std::string(1, static_cast<char>('a' + i)),
                          .cpus = 64,
                          .joules = {{"node", watts[i] * seconds}, {"cpu", 1}},
                          .node_cpus = 64,
                          .covered_seconds = 0.95 * seconds});
  }
  return unit;
}

StoredUnit unit_that_ended(const std::string& state, std::int64_t life_ms = kNodesLife) {
  StoredUnit unit;
  unit.unit.username = "ada";
  unit.unit.name = "train-12";
  unit.unit.state = state;
  unit.unit.started_at_ts = kDayMs;
  unit.unit.ended_at_ts = kDayMs + life_ms;
  unit.unit.tags = R"({"nodelistexp":"n08|n09"})";
  return unit;
}

TEST(NodeLoads, AreMeanPowersOfWholeNodesThatWereMeasured) {
  auto unit = nodes_that_drew({100, 200, 300, 400, 500});
  unit.nodes[1].cpus = 63;  // shared
  unit.nodes[2].covered_seconds = 0.89 * 1200;
  unit.nodes[3].joules.erase("node");
  unit.nodes[4].node = "";
  const auto loads = node_loads(unit, life_for(kNodesLife));
  ASSERT_THAT(loads, SizeIs(4));
  EXPECT_EQ(loads[0].node, "a");
  EXPECT_DOUBLE_EQ(loads[0].watts.value(), 100);
  EXPECT_FALSE(loads[1].watts);
  EXPECT_FALSE(loads[2].watts);
  EXPECT_FALSE(loads[3].watts);
  unit.method = "modelled";
  EXPECT_FALSE(node_loads(unit, life_for(kNodesLife)).front().watts);
  EXPECT_FALSE(node_loads(nodes_that_drew({100}, 599'999), life_for(599'999)).front().watts);
  EXPECT_TRUE(node_loads(nodes_that_drew({100}, 600'000), life_for(600'000)).front().watts);
}

TEST(OnNodes, ComparesNodesOfAClass) {
  const auto loads = node_loads(nodes_that_drew({100, 100, 110, 90, 500}), life_for(kNodesLife));
  const auto on = on_nodes(unit_that_ended("COMPLETED"), loads, {{"e", "big"}});
  EXPECT_EQ(on.username, "ada");
  EXPECT_EQ(on.family, "train-#");
  EXPECT_EQ(on.outcome, store::NodeOutcome::kEnded);
  ASSERT_THAT(on.nodes, SizeIs(5));
  EXPECT_DOUBLE_EQ(on.nodes[2].effect.value(), std::log(1.1));
  EXPECT_DOUBLE_EQ(on.nodes[3].effect.value(), std::log(0.9));
  EXPECT_FALSE(on.nodes[4].effect);  // alone in its class
}

TEST(OnNodes, KnowsHowUnitsEnded) {
  using enum store::NodeOutcome;
  const auto loads = node_loads(nodes_that_drew({100}), life_for(kNodesLife));
  for (const auto& [state, outcome] :
       {std::pair("NODE_FAIL", kNodeFailed), std::pair("BOOT_FAIL", kNodeFailed),
        std::pair("FAILED", kFailed), std::pair("TIMEOUT", kEnded),
        std::pair("CANCELLED by 1000", kEnded), std::pair("OUT_OF_MEMORY", kEnded)}) {
    EXPECT_EQ(on_nodes(unit_that_ended(state), loads, {}).outcome, outcome) << state;
  }
  EXPECT_THAT(on_nodes(unit_that_ended("COMPLETED", 599'999), loads, {}).nodes, IsEmpty());
  EXPECT_THAT(on_nodes(unit_that_ended("FAILED", 1), loads, {}).nodes, SizeIs(1));
  // It failed before it was measured.
  const auto on = on_nodes(unit_that_ended("FAILED", 1), {}, {});
  ASSERT_THAT(on.nodes, SizeIs(2));
  EXPECT_EQ(on.nodes[1].node, "n09");
  EXPECT_FALSE(on.nodes[1].effect);
}

TEST(ClassOf, IsTheModelsOrTheNumbers) {
  EXPECT_EQ(class_of({.node_class = "EPYC, H100"}), "EPYC, H100");
  EXPECT_EQ(class_of({.cpus = 64, .gpus = 4}), "64 CPUs, 4 GPUs");
}

}  // namespace
}  // namespace ceems::api
