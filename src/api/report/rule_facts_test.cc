#include <optional>

#include <gtest/gtest.h>

#include "api/report/facts.h"

namespace ceems::api {
namespace {

/// The fact of a job on 2 nodes with 16 CPUs in all, or nothing where it is unknown.
std::optional<double> placement_fact(const char* name, const std::vector<NodeMeasurements>& nodes) {
  StoredUnit unit;
  unit.unit.resource_manager = "slurm";
  unit.unit.allocation = R"({"cpus":16,"nodes":2})";
  const UnitMeasurements measured{.nodes = nodes};
  const std::vector<store::FamilyRun> none;
  const UnitRun run{.started_ms = 1, .ended_ms = 600'001};
  const Evidence evidence{.unit = unit, .run = run, .measured = &measured, .earlier = none};
  const report::Report report = report_of(evidence);
  const advice::Facts facts = facts_of(evidence, report, {});
  const advice::Value value = facts.value_of(name);
  const double* number = std::get_if<double>(&value);
  return number == nullptr ? std::nullopt : std::optional(*number);
}

TEST(PlacementFacts, AreThoseOfTheTightestNode) {
  const std::vector<NodeMeasurements> nodes{
      {.node = "n1", .cpus = 8, .busy_threads = 8, .far_gpus = 1.5, .thread_cpus = 8},
      {.node = "n2", .cpus = 8, .busy_threads = 5.5, .far_gpus = 2, .thread_cpus = 2},
      {.node = "n3", .cpus = 8, .busy_threads = 50},
      {.node = "n4", .cpus = 8, .busy_threads = 50, .thread_cpus = 0}};
  EXPECT_EQ(placement_fact("threads.busy", nodes), 5);
  EXPECT_EQ(placement_fact("threads.cpus", nodes), 2);
  EXPECT_EQ(placement_fact("threads.reserved", nodes), 8);
  EXPECT_EQ(placement_fact("gpu.far", nodes), 3) << "of all nodes";
}

TEST(PlacementFacts, DoNotTakeTheCpusOfTheMachineForThoseOfTheJob) {
  const std::vector<NodeMeasurements> nodes{
      {.node = "n1", .cpus = 50, .busy_threads = 8, .thread_cpus = 8}};
  EXPECT_EQ(placement_fact("threads.reserved", nodes), 16) << "its cgroup has no cpuset";
}

TEST(PlacementFacts, AreUnknownWithoutTheCollector) {
  for (const char* name : {"threads.busy", "threads.cpus", "threads.reserved", "gpu.far"}) {
    EXPECT_EQ(placement_fact(name, {{.node = "n1", .cpus = 8}}), std::nullopt) << name;
  }
}

}  // namespace
}  // namespace ceems::api
