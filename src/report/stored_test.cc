#include "report/stored.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "crypto/base64.h"

namespace ceems::report {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// A report in which every member has a value of its own.
Report full_report() {
  Report report{.cluster_id = "hpc-a",
                .uuid = "4711",
                .started_ms = 1'794'903'120'000,
                .ended_ms = 1'794'970'436'000,
                .started_text = "2026-11-17T09:12:00+0100",
                .state = State::kFinal,
                .coverage = 0.998};
  report.from_jobstats = true;
  report.job = {.name = "cp2k <water> \"x\" é",
                .user = "user1",
                .project = "fluids",
                .partition = "gpu",
                .qos = "long",
                .state = "COMPLETED",
                .manager = "slurm",
                .nodes = 2,
                .cpus = 64,
                .gpus = 8,
                .elapsed = 67316,
                .limit = 345600,
                .waited = 7800,
                .array = "4711_3"};
  report.use = {.cpu = 0.07,
                .mem = 0.5,
                .mem_peak_node = 8'482'560'000,
                .mem_alloc_node = 137'438'953'472,
                .gpu_busy = 0.53,
                .gpu_sm = 0.24,
                .gpu_mem = 0.51};
  report.nodes = {{.node = "g14",
                   .cpus = 32,
                   .cpu_seconds = 323000.5,
                   .mem_peak = 1.5e9,
                   .mem_alloc = 2e9,
                   .gpus = {{.index = "0",
                             .uuid = "GPU-0",
                             .busy = 0.66,
                             .sm = 0.33,
                             .mem_peak = 1e9,
                             .mem_total = 8e9},
                            {.index = "1", .uuid = "GPU-1", .busy = 0.0}}},
                  {.node = "g15"}};
  report.energy = {.kwh = 41.3,
                   .idle_kwh = 6.23,
                   .not_used_kwh = 2.08,
                   .domains = {{"gpu", 33}, {"dram", 0.9}},
                   .method = "measured"};
  report.co2 = {.grams = 1820, .provider = "rte_total"};
  report.cost = {.amount = 9.89, .currency = "EUR"};
  report.compared = {.runs = 20,
                     .median_kwh = 42.6,
                     .cpu_low = 0.12,
                     .cpu_high = 0.15,
                     .mem_median = 0.06,
                     .gpu_low = 0.5,
                     .gpu_high = 0.54,
                     .project_month_share = 0.014};
  report.phases = {{.region = "solve",
                    .count = 1250,
                    .nodes = 2,
                    .seconds = 58'822,
                    .share = 0.87,
                    .kwh = 36,
                    .self_kwh = 35.5,
                    .watts = 1100,
                    .slowest = "g15",
                    .longer = 0.09},
                   {.region = "<read>"}};
  report.results = {{.result = "step",
                     .unit = "ns",
                     .n = 1250,
                     .joules = 26'000,
                     .family_joules = 27'100,
                     .family = {{.uuid = "47 10", .started_ms = 7, .joules = 27'100}}}};
  report.merits = {{.fom = "speed", .unit = "ns/day", .last = 83.2, .mean = 81.4}};
  report.findings = {
      {.rule = "gpu-unused",
       .severity = advice::Severity::kImportant,
       .confidence = advice::Confidence::kSure,
       .runs = 8,
       .say = "gpu-unused",
       .values = {{"unused", 2}, {"of", 8}},
       .text = {{"en", "2 of 8 GPUs never ran a kernel."}, {"de", "2 von 8."}},
       .lines = {{.type = "#SBATCH --gres=gpu:3", .was = "--gres=gpu:4"}, {.type = "#BSUB -n 4"}},
       .saves_kwh = 2.6}};
  return report;
}

TEST(StoredReport, HasTheSameDigitsInEveryForm) {
  const Report report = full_report();
  const auto read = from_stored(to_stored(report));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->job.qos, "long");
  EXPECT_EQ(read->job.manager, "slurm");
  EXPECT_EQ(read->use.mem, 0.5);
  EXPECT_EQ(read->findings.at(0).say, "gpu-unused");
  EXPECT_EQ(read->nodes.at(1).cpus, std::nullopt);
  for (const std::string_view language : {"en", "de"}) {
    const View view{.language = language, .all_findings = true};
    EXPECT_EQ(to_json(*read, view), to_json(report, view));
    EXPECT_EQ(to_text(*read, view), to_text(report, view));
    EXPECT_EQ(to_markdown(*read, view), to_markdown(report, view));
    EXPECT_EQ(to_html(*read, view), to_html(report, view));
  }
  EXPECT_EQ(to_js1(*read), to_js1(report));
  // Also in another program.
  EXPECT_EQ(to_stored(*read), to_stored(report));
}

/// Two findings as reports kept them while SLURM was the only manager with lines: the options
/// "--gres=gpu:3" (was "--gres=gpu:4") and "--mem=3G" of the first, none of the second.
constexpr std::string_view kEarlierForm =
    "KLUv/SD+ZQUAsoslIUCJtg12G4d0AsPqIYLp/lctPkDPsrUC0ggco74ZyzDsXE960kJbkdUSdZCBK6Ms"
    "fNIRrBKO6YuD4qEPhI4/ZDeLgpUtCJ2RdyRNHfDxOQCjyxTh1K1ixzSie1xAsLjENSAX8PzqnXxT0HZM"
    "5HmbHa8o9zbqZnlemWZ3GHledim7GscbDAKI7uMVShrH88oyYNq4meROBgBTFIAN2f/RtcMUOlFUy6Sd"
    "Yw==";

TEST(StoredReport, IsReadInItsEarlierForm) {
  const auto read = from_stored(kEarlierForm);
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->findings.size(), 2U);
  EXPECT_THAT(read->findings[0].lines,
              ElementsAre(advice::Line{.type = "#SBATCH --gres=gpu:3", .was = "--gres=gpu:4"},
                          advice::Line{.type = "#SBATCH --mem=3G", .was = ""}));
  EXPECT_THAT(read->findings[1].lines, IsEmpty());
  const std::string json = to_json(*read, {});
  EXPECT_THAT(json, HasSubstr(R"("sbatch":["--gres=gpu:3","--mem=3G"],"was":["--gres=gpu:4"])"));
  // Written again, it has the new form, and says the same.
  const auto again = from_stored(to_stored(*read));
  ASSERT_TRUE(again);
  EXPECT_EQ(to_json(*again, {}), json);
}

TEST(StoredReport, OfNothingIsEmpty) {
  const auto read = from_stored(to_stored(Report{}));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(to_json(*read, {}), to_json(Report{}, {}));
  EXPECT_EQ(read->coverage, std::nullopt);
}

TEST(StoredReport, RefusesOtherTexts) {
  const std::string good = to_stored(full_report());
  for (const std::string& text :
       {std::string(), std::string("x"), std::string("QUJD"), good.substr(0, good.size() / 2),
        good.substr(0, 40), crypto::base64_encode("{\"uuid\":\"4711\"}"), good + good}) {
    const auto read = from_stored(text);
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().code, ErrorCode::kParse);
  }
}

}  // namespace
}  // namespace ceems::report
