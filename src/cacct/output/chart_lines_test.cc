#include "cacct/output/chart_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ceems::cacct {
namespace {

using ::testing::ElementsAre;

ChartLine line(const std::string& device, std::vector<std::pair<std::int64_t, double>> points) {
  return {.chart = "gpu_use", .host = "g1", .device = device, .points = std::move(points)};
}

TEST(ChartLines, AreReadFromAnswers) {
  const auto lines = parse_chart_lines(
      R"({"data":[{"name":"gpu_use","unit":"percent","labels":{"hostname":"g\u001b1","index":"0",)"
      R"("gpuiid":"7"},"limit":100,"points":[[2000,50],[1000,97.2],[3000],"x",[-1,1]]},)"
      R"({"name":"ipc","none":"not_collected","collector":"perf","points":[]}]})");
  ASSERT_TRUE(lines);
  ASSERT_EQ(lines->size(), 2U);
  EXPECT_EQ(lines->at(0).host,
            "g\xEF\xBF\xBD"
            "1");
  EXPECT_EQ(lines->at(0).device, "0/7");
  EXPECT_EQ(lines->at(0).limit, 100);
  EXPECT_THAT(lines->at(0).points, ElementsAre(std::pair(1000, 97.2), std::pair(2000, 50.0)));
  EXPECT_EQ(lines->at(1).collector, "perf");
  const auto last =
      parse_chart_lines(R"({"data":[{"points":[[253402300799999,1],[253402300800000,1],[0,2]]}]})");
  ASSERT_TRUE(last);
  EXPECT_THAT(last->at(0).points, ElementsAre(std::pair(0, 2.0), std::pair(253402300799999, 1.0)));
  for (const char* bad : {"", "{}", R"({"data":1})", R"({"data":[1]})"}) {
    EXPECT_FALSE(parse_chart_lines(bad)) << bad;
  }
}

TEST(Strip, HasAHeightForEachCell) {
  const auto full = line("0", {{500, 0}, {1500, 1}, {2500, 50}, {3500, 100}, {4500, 250}});
  const StripLook look{.from_ms = 0, .to_ms = 5000, .cells = 5};
  EXPECT_EQ(strip_text(full, look), "_▁▄██");
  EXPECT_EQ(strip_text(full, {.from_ms = 0, .to_ms = 5000, .cells = 5, .ascii = true}), "_.=@@");
}

TEST(Strip, IsBlankWhereNothingWasMeasured) {
  const auto part = line("0", {{500, 100}, {1500, 100}, {8500, 100}});
  EXPECT_EQ(strip_text(part, {.from_ms = 0, .to_ms = 10000, .cells = 10}), "██      █ ");
  EXPECT_EQ(strip_text(line("0", {}), {.from_ms = 0, .to_ms = 1000}), "");
  EXPECT_EQ(strip_text(part, {.from_ms = 1000, .to_ms = 1000}), "");
  // Samples that are further apart than the cells reach over several of them.
  EXPECT_EQ(
      strip_text(line("0", {{1000, 100}, {3000, 0}}), {.from_ms = 0, .to_ms = 4000, .cells = 8}),
      "████____");
}

TEST(Strips, BeginWithTheLeastUsedGpu) {
  const StripLook look{.from_ms = 0, .to_ms = 2000, .cells = 60};
  const auto strips = gpu_strips(
      {line("0", {{500, 90}, {1500, 98}}), line("10", {{500, 0}, {1500, 0}}), line("2", {})},
      {.from_ms = 0, .to_ms = 2000, .cells = 2}, 80);
  EXPECT_THAT(strips, ElementsAre("  g1 GPU 10  __   0%", "  g1 GPU 0   ▇█  94%"));
  const auto narrow = gpu_strips({line("0", {{500, 90}, {1500, 98}})}, look, 30);
  EXPECT_EQ(narrow.front(), "  g1 GPU 0  ▇▇▇▇▇▇██████  94%");
  ChartLine middle = line("", {{500, 10}});
  middle.quantile = "0.5";
  EXPECT_EQ(gpu_strips({middle}, {.from_ms = 0, .to_ms = 1000, .cells = 1}, 80).front(),
            "  quantile 0.5 of the GPUs  ▁  10%");
}

}  // namespace
}  // namespace ceems::cacct
