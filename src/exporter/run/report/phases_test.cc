#include "exporter/run/report/phases.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ceems::exporter::run {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

/// Two nodes for an hour: 2 MJ and 1 MJ.
Report two_nodes() {
  Report report;
  report.nodes = {
      {.job = "4711",
       .node = "n1",
       .end_ms = 3'600'000,
       .energy_joules = {{"other", 2e6}},
       .regions = {{.name = "read", .seconds = 0.5, .count = 1},
                   {.name = "solve",
                    .seconds = 3000,
                    .count = 1250,
                    .joules = 1.5e6,
                    .self_joules = 1.4e6}},
       .results = {{.name = "step", .total = 1000}},
       .foms = {{.name = "speed", .measure = "ns/day", .last = -1, .mean = 3, .seconds = 10}}},
      {.job = "4711",
       .node = "n2",
       .end_ms = 3'600'000,
       .energy_joules = {{"other", 1e6}},
       .regions = {{.name = "solve",
                    .seconds = 2000,
                    .count = 1200,
                    .joules = 0.5e6,
                    .self_joules = 0.5e6}},
       .results = {{.name = "step", .total = 250},
                   {.name = "simulated", .measure = "ns", .total = 0.5}},
       .foms = {{.name = "speed", .measure = "ns/day", .last = 3, .mean = 5, .seconds = 30}}}};
  return report;
}

TEST(RunPhases, SumsUpNodes) {
  const auto phases = phases_of(two_nodes());
  ASSERT_EQ(phases.size(), 2U);
  const Phase& solve = phases.front();
  EXPECT_EQ(solve.region, "solve");
  EXPECT_EQ(solve.count, 1250U);
  EXPECT_EQ(solve.nodes, 2U);
  EXPECT_DOUBLE_EQ(solve.seconds, 3000);
  EXPECT_DOUBLE_EQ(solve.share, 3000.0 / 3600);
  EXPECT_DOUBLE_EQ(solve.joules.value(), 2e6);
  EXPECT_DOUBLE_EQ(solve.self_joules.value(), 1.9e6);
  EXPECT_DOUBLE_EQ(solve.watts.value(), 400);
  EXPECT_EQ(solve.slowest, "n1");
  EXPECT_DOUBLE_EQ(solve.longer, 0.2);
  EXPECT_FALSE(phases.back().joules);
  EXPECT_EQ(phases.back().slowest, "");
}

TEST(RunPhases, ResultsHaveTheEnergyOfTheWholeRun) {
  const auto results = results_of(two_nodes());
  ASSERT_EQ(results.size(), 2U);
  EXPECT_EQ(results[0].name, "simulated");
  EXPECT_DOUBLE_EQ(results[0].joules_per.value(), 6e6);
  EXPECT_DOUBLE_EQ(results[1].n, 1250);
  EXPECT_DOUBLE_EQ(results[1].joules_per.value(), 2400);
  EXPECT_THAT(result_lines(two_nodes()),
              ElementsAre("simulated 0.5 ns · 6 MJ per ns", "step 1250 · 2.4 kJ each",
                          "speed 1 ns/day · 4.5 ns/day on average"));
}

TEST(RunPhases, ResultsWithoutACountOrAnEnergyHaveNoJoules) {
  Report report = two_nodes();
  report.nodes.pop_back();
  report.nodes[0].results[0].total = 0;
  EXPECT_EQ(result_lines(report).front(), "step 0");
  report.nodes[0].results[0].total = 7;
  report.nodes[0].energy_joules.clear();
  EXPECT_EQ(result_lines(report).front(), "step 7");
}

TEST(RunPhases, AreTables) {
  const std::string text = phases_text(two_nodes());
  EXPECT_THAT(text, HasSubstr("Phase"));
  EXPECT_THAT(text, HasSubstr("solve × 1250"));
  EXPECT_THAT(text, HasSubstr("0.556 kWh"));
  EXPECT_THAT(text, HasSubstr("n1 +20 %"));
  const std::string html = phases_html(two_nodes());
  EXPECT_THAT(html, HasSubstr("<tr><td>solve × 1250</td><td>n1 +20 %</td>"
                              "<td class=\"n\">00:50:00</td><td class=\"n\">83 %</td>"));
  Report none;
  none.nodes.resize(1);
  EXPECT_THAT(phases_text(none), IsEmpty());
  EXPECT_THAT(phases_html(none), IsEmpty());
}

TEST(RunPhases, NamesAreData) {
  Report report = two_nodes();
  report.nodes[0].regions[1].name = "<b>\x1b[31m";
  EXPECT_THAT(phases_html(report), Not(HasSubstr("<b>")));
  EXPECT_THAT(phases_text(report), Not(HasSubstr("\x1b")));
}

TEST(RunPhases, JsonHasTheNamesOfASitesReport) {
  std::string text;
  JsonWriter json(text, JsonEscape::kPlain);
  json.begin_object();
  write_marks(json, two_nodes());
  json.end_object();
  EXPECT_THAT(text,
              HasSubstr(R"("phases":[{"region":"solve","count":1250,"nodes":2,"seconds":3000,)"));
  EXPECT_THAT(text, HasSubstr(R"({"result":"step","unit":"","n":1250,"joules_per":2400})"));
  EXPECT_THAT(text, HasSubstr(R"("fom":[{"fom":"speed","unit":"ns/day","last":1,"mean":4.5}])"));
}

}  // namespace
}  // namespace ceems::exporter::run
