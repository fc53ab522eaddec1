#include "exporter/run/report/report.h"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json_reader.h"
#include "exporter/run/directory.h"
#include "exporter/run/job_file.h"
#include "testing/temp_dir.h"

namespace ceems::exporter::run {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr std::int64_t kBegin = 1'794'903'120'000;  // 2026-11-17T08:12:00Z

NodeSummary summary_of(const std::string& node, double gpu_joules, double rest_joules) {
  return {.job = "4711",
          .name = "water",
          .cluster = "hpc-a",
          .node = node,
          .unit = "cgroup",
          .begin_ms = kBegin,
          .end_ms = kBegin + 3'600'000,
          .ended = true,
          .seconds = 3600,
          .cpus = 10,
          .cpu_seconds = 18'000,
          .cpu_max = 9.5,
          .memory_peak_bytes = 7.9e9,
          .energy_joules = {{"gpu", gpu_joules}, {"other", rest_joules}},
          .method = {{"gpu", "measured"}, {"other", "modelled"}},
          .gpus = {{.uuid = "GPU-" + node, .index = "0", .busy_seconds = 1800}},
          .samples = 3601};
}

class RunReport : public ::testing::Test {
 protected:
  void put(const NodeSummary& summary) const {
    EXPECT_TRUE(directory_.replace(file_name(summary) + ".sum", to_json(summary)));
  }
  static std::string file_name(const NodeSummary& summary) { return summary.node; }
  [[nodiscard]] Report read() const { return read_report(directory_).value(); }

  testing::TempDir root_;
  DataDirectory directory_ = DataDirectory::create((root_.path() / "run").string()).value();
};

TEST_F(RunReport, SaysWhereMostRanksWere) {
  Report report;
  report.nodes = {summary_of("n1", 1, 1), summary_of("n2", 1, 1), summary_of("n3", 1, 1)};
  EXPECT_EQ(placement_line(report), "");
  report.nodes[0].placement = report.nodes[2].placement = "4 ranks, each on 1 CPU (1 a core)";
  report.nodes[1].placement = "3 ranks\x1b";
  report.nodes[1].placement_faults = {"3 ranks share 2 CPUs (0-1): 0, 1, 2"};
  EXPECT_EQ(placement_line(report), "Placement on 2 of 3 nodes: 4 ranks, each on 1 CPU (1 a core)");
  EXPECT_THAT(remarks(report), Contains("On n2, 3 ranks share 2 CPUs (0-1): 0, 1, 2."));
  EXPECT_THAT(to_text(report), HasSubstr("\nPlacement on 2 of 3 nodes: 4 ranks"));
  EXPECT_THAT(to_html(report), HasSubstr("<p>Placement on 2 of 3 nodes: 4 ranks"));
  report.nodes.resize(1);
  EXPECT_EQ(placement_line(report), "Placement: 4 ranks, each on 1 CPU (1 a core)");
}

TEST_F(RunReport, AddsNodes) {
  NodeSummary first = summary_of("n07", 5'400'000, 1'800'000);
  first.exit_status = 3;
  put(first);
  put(summary_of("n08", 9'000'000, 1'800'000));
  const Report report = read();
  EXPECT_EQ(report.total_joules(), 18'000'000);
  EXPECT_EQ(report.cpu_seconds(), 36'000);
  EXPECT_EQ(report.elapsed_seconds(), 3600);
  EXPECT_EQ(report.cpu_use(), 0.5);
  EXPECT_EQ(report.gpu_use(), 0.5);
  EXPECT_EQ(report.exit_status(), 3);
  EXPECT_EQ(report.memory_peak_bytes(), 7.9e9);
  EXPECT_THAT(report.faults, IsEmpty());
  EXPECT_EQ(energy_text(report), "5.00 kWh (GPUs 4.00 measured, rest 1.00 modelled ±50 %)");
  EXPECT_THAT(summary_lines(report),
              ElementsAre("01:00:00 · 5.00 kWh (GPUs 4.00 measured, rest 1.00 modelled ±50 %) · "
                          "CPUs 50 % busy · GPUs 50 % busy · at most 7.9 GB of memory on a node"));
}

TEST_F(RunReport, HasTextsOfAllSizes) {
  NodeSummary summary = summary_of("n1", 0, 0);
  summary.energy_joules = {{"other", 7.25}};
  summary.gpus.clear();
  put(summary);
  EXPECT_EQ(energy_text(read()), "7.25 J (modelled ±50 %)");
  summary.energy_joules = {{"other", 36'000}};
  put(summary);
  EXPECT_EQ(energy_text(read()), "10.0 Wh (modelled ±50 %)");
  summary.energy_joules.clear();
  put(summary);
  EXPECT_EQ(energy_text(read()), "energy unknown");
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(bytes_text(999), "999 B");
  EXPECT_EQ(bytes_text(1500), "1.5 kB");
  EXPECT_EQ(bytes_text(128e9), "128 GB");
  EXPECT_EQ(time_text(kBegin), "2026-11-17 08:12:00 UTC");
}

TEST_F(RunReport, RemarksOnWhatIsWorthALook) {
  NodeSummary first = summary_of("n1", 1, 1);
  first.gpus.push_back({.uuid = "GPU-x", .index = "3", .busy_seconds = 0});
  put(first);
  NodeSummary second = summary_of("n2", 1, 1);
  second.gpus.clear();
  second.cpu_max = 1.01;
  second.ended = false;
  put(second);
  ASSERT_TRUE(directory_.replace(
      "run.json", to_json(RunFacts{.job = "4711", .nodes = {"n1", "n2", "n3", "n4"}})));
  EXPECT_THAT(remarks(read()),
              ElementsAre("2 of 4 nodes sent no data: n3, n4.", "GPU 3 of n1 was never used.",
                          "The end of the run was not recorded on n2; up to 10 s may be missing.",
                          "Of the 10 CPUs of n2, no more than one was busy at a time."));
}

TEST_F(RunReport, NamesFilesThatItCannotRead) {
  put(summary_of("n1", 1, 1));
  ASSERT_TRUE(directory_.replace("n2.sum", "{"));
  ASSERT_TRUE(directory_.replace("n1.cjf", "not zstd, but something else"));
  ASSERT_TRUE(directory_.replace("other", "x"));
  const Report report = read();
  EXPECT_EQ(report.nodes.size(), 1U);
  ASSERT_EQ(report.faults.size(), 2U);
  EXPECT_THAT(report.faults[0], HasSubstr("n1.cjf: damaged"));
  EXPECT_EQ(report.faults[1], "n2.sum: not a summary of a node");
  EXPECT_THAT(remarks(report), Contains(report.faults[1]));
}

TEST_F(RunReport, NeedsData) {
  const auto report = read_report(directory_);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, ErrorCode::kNoData);
}

TEST_F(RunReport, HasChartsOfItsSamples) {
  put(summary_of("n1", 1, 1));
  auto file = JobFileWriter::create(directory_, "n1.cjf", "{}").value();
  for (int second = 0; second <= 3600; second += 10) {
    const auto line = [&](std::string_view name, double value) {
      EXPECT_TRUE(file.append(fmt::format("ceems_compute_unit_{}{{uuid=\"4711\"}} {} {}\n", name,
                                          value, kBegin + second * 1000)));
    };
    line("energy_joules_total", 250.0 * second);
    line("cpu_user_seconds_total", 5.0 * second);
  }
  const Report report = read();
  ASSERT_EQ(report.course.watts.size(), 240U);
  EXPECT_NEAR(report.course.watts[100].value(), 250, 1e-6);
  const std::string html = to_html(report);
  EXPECT_THAT(html, HasSubstr("aria-label=\"Power: mean 250 W, highest 250 W\""));
  EXPECT_THAT(html, HasSubstr("Mean 5, highest 5."));
}

TEST_F(RunReport, EscapesEverything) {
  NodeSummary hostile = summary_of("n1", 1, 1);
  hostile.job = "<script>alert(1)</script>";
  hostile.name = "\"><img src=x onerror=alert(2)>\x1b[31m\n&";
  hostile.cluster = "</title><script>";
  hostile.node = "<b>n1";
  hostile.method = {{"gpu", "<i>measured"}, {"other", "\x1b]0;x\x07"}};
  hostile.energy_joules["<u>"] = 5;
  hostile.gpus[0].index = "<s>0";
  EXPECT_TRUE(directory_.replace("n1.sum", to_json(hostile)));
  const Report report = read();
  const std::string html = to_html(report);
  for (const char* text : {"<script", "<img", "<b>", "<i>", "<u>", "<s>", "\x1b", "http:"}) {
    EXPECT_THAT(html, Not(HasSubstr(text)));
  }
  EXPECT_THAT(html, HasSubstr("&lt;script&gt;"));
  EXPECT_THAT(to_text(report), Not(HasSubstr("\x1b")));
  for (const std::string& line : summary_lines(report)) {
    EXPECT_THAT(line, Not(HasSubstr("\x1b")));
  }
  std::string json;
  EXPECT_TRUE(append_json_object(json, to_json(report)));
}

TEST_F(RunReport, WritesItsFiles) {
  put(summary_of("n1", 3600, 3600));
  const Report report = read();
  ASSERT_TRUE(write_reports(directory_, report));
  EXPECT_EQ(directory_.read("report.json", 1 << 20).value(), to_json(report));
  EXPECT_EQ(directory_.read("report.html", 1 << 20).value(), to_html(report));
  const std::string text = directory_.read("report.txt", 1 << 20).value();
  EXPECT_THAT(text, HasSubstr("Job 4711 · water · hpc-a\nStarted 2026-11-17 08:12:00 UTC\n"));
  EXPECT_THAT(text, HasSubstr("n1"));
  EXPECT_TRUE(write_reports(directory_, read()));  // again, beside the files of the first time
}

TEST(RunFacts, AreReadBack) {
  const RunFacts facts =
      parse_facts(to_json(RunFacts{.job = "1", .name = "a\"", .nodes = {"x", "y"}})).value();
  EXPECT_EQ(facts.name, "a\"");
  EXPECT_THAT(facts.nodes, ElementsAre("x", "y"));
  EXPECT_FALSE(parse_facts("{\"nodes\":[1]}"));
  EXPECT_FALSE(parse_facts("["));
}

}  // namespace
}  // namespace ceems::exporter::run
