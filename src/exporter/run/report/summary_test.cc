#include "exporter/run/report/summary.h"

#include <string>

#include <gtest/gtest.h>

namespace ceems::exporter::run {
namespace {

NodeSummary example() {
  return {.job = "4711",
          .name = "a \"b\" </script>\n\xff",
          .cluster = "hpc-a",
          .node = "n07",
          .unit = "cgroup",
          .begin_ms = 1'794'903'120'000,
          .end_ms = 1'794'903'130'500,
          .ended = true,
          .exit_status = 137,
          .seconds = 10.25,
          .cpus = 64,
          .cpu_seconds = 123.456,
          .cpu_max = 60.5,
          .memory_peak_bytes = 8e9,
          .energy_joules = {{"gpu", 1000.5}, {"other", 250}},
          .idle_energy_joules = {{"gpu", 100}},
          .method = {{"gpu", "measured"}, {"other", "modelled"}},
          .gpus = {{.uuid = "GPU-1", .index = "0", .busy_seconds = 9.5},
                   {.uuid = "GPU-2", .index = "1", .memory_peak_bytes = 1e9}},
          .regions = {{.name = "solve", .seconds = 4.5, .count = 3, .joules = 9, .self_joules = 8},
                      {.name = "read", .seconds = 0.5}},
          .results = {{.name = "step", .measure = "ns", .total = 0.25}},
          .foms = {{.name = "gain", .measure = "dB", .last = -3, .mean = -2.5, .seconds = 4}},
          .placement = "2 ranks",
          .placement_faults = {"a", "b\""},
          .samples = 11,
          .gaps = 1};
}

TEST(NodeSummary, ReadsBackWhatWasWritten) {
  const NodeSummary before = example();
  const NodeSummary after = parse_summary(to_json(before)).value();
  EXPECT_EQ(after.name, "a \"b\" </script>\n\xef\xbf\xbd");  // what is not UTF-8 is replaced
  EXPECT_EQ(after.begin_ms, before.begin_ms);
  EXPECT_EQ(after.exit_status, 137);
  EXPECT_TRUE(after.ended);
  EXPECT_EQ(after.cpu_seconds, 123.456);
  EXPECT_EQ(after.memory_limit_bytes, std::nullopt);
  EXPECT_EQ(after.energy_joules, before.energy_joules);
  EXPECT_EQ(after.method, before.method);
  ASSERT_EQ(after.gpus.size(), 2U);
  EXPECT_EQ(after.gpus[0].busy_seconds, 9.5);
  EXPECT_EQ(after.gpus[1].busy_seconds, std::nullopt);
  ASSERT_EQ(after.regions.size(), 2U);
  EXPECT_EQ(after.regions[0].self_joules, 8);
  EXPECT_EQ(after.regions[1].joules, std::nullopt);
  EXPECT_EQ(after.results.at(0).measure, "ns");
  EXPECT_EQ(after.foms.at(0).last, -3);
  EXPECT_EQ(after.placement, "2 ranks");
  EXPECT_EQ(after.placement_faults, before.placement_faults);
  EXPECT_EQ(after.total_joules(), 1250.5);
  EXPECT_EQ(after.joules("gpu"), 1000.5);
  EXPECT_EQ(after.joules("dram"), 0);
  EXPECT_EQ(after.elapsed_seconds(), 10.5);
  NodeSummary replaced = before;
  replaced.name = after.name;
  EXPECT_EQ(to_json(after), to_json(replaced));
}

TEST(NodeSummary, IgnoresMembersThatItDoesNotKnow) {
  const auto summary =
      parse_summary(R"({"phases":[{"a":1}],"regions":[{"later":[1]}],"v":1,"job":"7","hist":{}})");
  ASSERT_TRUE(summary);
  EXPECT_EQ(summary->job, "7");
  EXPECT_EQ(summary->exit_status, std::nullopt);
}

TEST(NodeSummary, RefusesWhatIsNone) {
  for (const char* text :
       {"", "{", "[]", "{}", R"({"v":2})", R"({"v":1} x)", R"({"v":1,"seconds":-1})",
        R"({"v":1,"seconds":"1"})", R"({"v":1,"energy_j":{"gpu":-5}})", R"({"v":1,"t0":-1})",
        R"({"v":1,"energy_j":{"gpu":1e999}})", R"({"v":1,"ended":1})", R"({"v":1,"gpus":[1]})",
        R"({"v":1,"t1":99999999999999999999})", R"({"v":1,"job":7})"}) {
    EXPECT_FALSE(parse_summary(text)) << text;
  }
  EXPECT_EQ(parse_summary(R"({"v":2})").error().message, "version 2 of a summary; expected 1");
}

}  // namespace
}  // namespace ceems::exporter::run
