#include "tool/validate/run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tool/validate/outcomes.h"
#include "tool/validate/simulated_node.h"

namespace ceems::tool::validate {
namespace {

using ::testing::HasSubstr;

std::string run_error(SimulatedNode& node, double seconds = 40) {
  const auto record = simulated_record(node, seconds);
  EXPECT_EQ(node.running(), 0U) << "all loads are stopped";
  return record ? "" : record.error().message;
}

TEST(RunLoads, FindsTheErrorsOfTheExporter) {
  SimulatedNode node;
  const Record record = simulated_record(node).value();
  const auto outcomes = outcomes_of(record).value();
  // compute is charged 10 % too much, memory-bound 5 % too little
  std::vector<std::string> loads;
  for (const Outcome& outcome : outcomes) {
    if (outcome.load == LoadClass::kIdle) {
      EXPECT_NEAR(outcome.percent(), 0, 0.2);
      continue;
    }
    loads.push_back(outcome.name);
    const double expected = outcome.name.starts_with("compute")        ? 10
                            : outcome.name.starts_with("memory-bound") ? -5
                                                                       : 0;
    EXPECT_NEAR(outcome.percent(), expected, 1.5) << outcome.name;
    EXPECT_NEAR(outcome.share_percent(), expected, 1.5) << outcome.name;
    EXPECT_NEAR(outcome.seen, 1, 0.01);
    EXPECT_LT(outcome.uncertainty, 0.2);
  }
  EXPECT_EQ(loads, (std::vector<std::string>{
                       "scalar, 1 CPU", "compute, 2 CPUs", "compute, 16 CPUs", "compute, 64 CPUs",
                       "scalar, 16 CPUs", "scalar, 64 CPUs", "memory-bound, 32 CPUs",
                       "memory-bound, 16 CPUs", "compute, 16 CPUs beside memory-bound, 16 CPUs",
                       "memory-bound, 16 CPUs beside compute, 16 CPUs"}));
  const Outcome& eight = outcomes.at(5);
  EXPECT_EQ(eight.name, "compute, 16 CPUs");
  EXPECT_NEAR(eight.idle, 200, 0.3);
  EXPECT_NEAR(eight.added, (9 + 8 * 4 * 1.25) / 0.93, 0.4);
  EXPECT_NEAR(eight.due, 200 * 16.0 / 64 + 52.7, 0.5);
  const Outcome& left = outcomes.at(outcomes.size() - 3);
  const Outcome& right = outcomes.at(outcomes.size() - 2);
  // The first busy core wakes the package once.
  EXPECT_NEAR(left.added + right.added, (9 + 8 * 1.25 * (4 + 3)) / 0.93, 0.5);
  EXPECT_GT(left.added, right.added);
}

TEST(RunLoads, HasStepsOfAMinute) {
  SimulatedNode node;
  const Record record = simulated_record(node, 150).value();
  ASSERT_EQ(record.windows.size(), 19U);
  EXPECT_EQ(record.windows[0].steps.size(), 2U);
  EXPECT_EQ(record.windows[1].steps.size(), 3U);
  EXPECT_DOUBLE_EQ(record.windows[1].steps[2].seconds, 50);
  EXPECT_NEAR(record.windows[1].steps[2].readings, 50, 1);
}

TEST(RunLoads, RefusesABusyNode) {
  SimulatedNode node;
  node.other_load = 0.3;
  EXPECT_THAT(run_error(node),
              HasSubstr("30 % of the CPU time is used without a load (80 % of a CPU "
                        "by backup (process 7)): validate on a drained node"));
  SimulatedNode quiet;
  quiet.other_load = 0.04;
  EXPECT_EQ(run_error(quiet), "");
}

TEST(RunLoads, SaysWhatIsMissing) {
  SimulatedNode blind;
  blind.shows_loads = false;
  EXPECT_THAT(run_error(blind),
              HasSubstr("does not show the cgroup /ceems_validate/load-1: start one "
                        "with --collector.energy --collector.cgroup"));
  SimulatedNode slow;
  slow.meter_period = 20;
  EXPECT_THAT(run_error(slow), HasSubstr("idle: the meter gave 1 readings in 20 s, expected 3"));
  SimulatedNode weak;
  weak.loads_die = true;
  EXPECT_EQ(run_error(weak), "ended early");
}

TEST(RunLoads, StopsItsLoadsAfterASignal) {
  SimulatedNode node;
  node.seconds_until_signal = 50;  // a load runs
  EXPECT_EQ(run_error(node), "interrupted");
}

TEST(RunLoads, TellsWhatRuns) {
  SimulatedNode node;
  std::vector<std::string> names;
  RunOptions options;
  options.times = {.load_seconds = 10, .idle_seconds = 5, .settle_seconds = 1};
  options.progress = [&](std::size_t window, const std::string& name) {
    names.push_back(fmt::format("{} {}", window, name));
  };
  const std::vector<Loads> plan{
      {{.load = LoadClass::kCompute, .cpus = {0}}, {.load = LoadClass::kMemory, .cpus = {1, 33}}}};
  ASSERT_TRUE(run_loads(node, plan, SimulatedNode::kCpus, options));
  EXPECT_EQ(names, (std::vector<std::string>{"0 idle", "1 compute, 1 CPU and memory-bound, 2 CPUs",
                                             "2 idle"}));
}

}  // namespace
}  // namespace ceems::tool::validate
