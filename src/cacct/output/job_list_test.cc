#include "cacct/output/job_list.h"

#include <algorithm>
#include <cstdlib>
#include <ctime>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "cacct/output/box.h"

namespace ceems::cacct {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Le;
using ::testing::Not;

constexpr std::int64_t kNow = 1'794'970'436;  // 2026-11-18 02:53:56 UTC

class JobList : public ::testing::Test {
 protected:
  void SetUp() override {
    ::setenv("TZ", "UTC", 1);
    ::tzset();
  }
};

JobLine job(const std::string& id, const std::string& name) {
  return {.uuid = id,
          .id = id,
          .name = name,
          .user = "ada",
          .account = "fluids",
          .state = "COMPLETED",
          .elapsed = "08:49:00",
          .started_ms = (kNow - 3600) * 1000,
          .ended_ms = kNow * 1000,
          .cpu = 46.2,
          .mem = 30,
          .gpu = 45.9,
          .kwh = 4.951,
          .cost = 1.2378};
}

std::string drawn(const std::vector<JobLine>& jobs, std::size_t width) {
  return draw_job_list(jobs, {}, {.width = width, .now = kNow, .currency = "EUR"});
}

TEST_F(JobList, HasUnitsThatFit) {
  EXPECT_EQ(
      drawn({job("7496104", "train-language-model")}, 120),
      "JOB      NAME                  STATE      START   ELAPSED  CPU  MEM  GPU    ENERGY   EUR\n"
      "7496104  train-language-model  COMPLETED  01:53  08:49:00  46%  30%  46%  4.95 kWh  1.24\n");
}

TEST_F(JobList, IsNeverWiderThanTheTerminal) {
  const std::vector<JobLine> jobs{job("7496104", "train-language-model"),
                                  job("7100_4", "日本語の名前"), job("9", "")};
  for (std::size_t width = 30; width < 130; ++width) {
    const std::string text = drawn(jobs, width);
    std::vector<std::size_t> widths;
    for (const std::string_view line : split(text, '\n')) {
      widths.push_back(display_width(line));
    }
    EXPECT_THAT(widths, Each(Le(width))) << text;
    for (const char* whole : {"7496104", "7100_4", "COMPLETED", "STATE"}) {
      EXPECT_THAT(text, HasSubstr(whole)) << width;
    }
  }
  const std::string usual = drawn({job("7496104", "train-language-model")}, 80);
  for (const char* kept : {"ELAPSED", "4.95 kWh", "1.24", "46%", "train-langu…"}) {
    EXPECT_THAT(usual, HasSubstr(kept));
  }
  EXPECT_THAT(drawn(jobs, 50), Not(HasSubstr("START")));
}

TEST_F(JobList, LeavesOutWhatNoJobHas) {
  JobLine plain = job("1", "a");
  plain.gpu = plain.cost = std::nullopt;
  plain.started_ms = 0;
  const std::string text = drawn({plain}, 120);
  EXPECT_THAT(text, Not(HasSubstr("GPU")));
  EXPECT_THAT(text, Not(HasSubstr("EUR")));
  EXPECT_THAT(text, Not(HasSubstr("START")));
  EXPECT_THAT(text, Not(HasSubstr("USER")));
}

TEST_F(JobList, AddsUpAccountsAndUsers) {
  std::vector<JobLine> jobs{job("1", "a"), job("2", "b"), job("3", "c")};
  jobs[2].user = "bob";
  jobs[2].cost = std::nullopt;
  jobs[0].below = {"  strip"};
  Record usage;
  usage.texts = {{"username", "ada"}, {"project", "fluids"}, {"num_units", "2"}};
  usage.metrics = {{"total_cpu_energy_usage_kwh", {{"total", 1}}},
                   {"total_gpu_energy_usage_kwh", {{"total", 0.5}}},
                   {"total_time_seconds", {{"alloc_cputime", 9}, {"walltime", 3661}}}};
  const std::string text =
      draw_job_list(jobs, {sum_line(usage)}, {.width = 120, .totals = true, .now = kNow});
  EXPECT_THAT(text, HasSubstr("\n1       a       ada   COMPLETED"));
  EXPECT_THAT(text, HasSubstr(" 1.24\n  strip\n2 "));
  EXPECT_THAT(text, HasSubstr("\n\n2 jobs  fluids  ada"));
  EXPECT_THAT(text, HasSubstr("01:01:01"));
  EXPECT_THAT(text, HasSubstr("1.50 kWh  2.48\n"));
  // The cost of a job is not known, so there is none of all.
  EXPECT_THAT(text, HasSubstr("\n3 jobs  total"));
  EXPECT_THAT(text, HasSubstr("1.50 kWh\n"));
}

TEST_F(JobList, ReadsUnits) {
  Record unit;
  unit.texts = {{"uuid", "7"},
                {"slurm_id", "6_1"},
                {"state", "CANCELLED by 1000"},
                {"started_at_ts", "5"},
                {"name", "n"}};
  unit.metrics = {{"avg_cpu_usage", {{"global", 50}}}, {"allocation", {{"gpus", 4}, {"mem", 1}}}};
  const JobLine line = job_line(unit);
  EXPECT_EQ(line.id, "6_1");
  EXPECT_EQ(line.state, "CANCELLED");
  EXPECT_EQ(line.cpu, 50);
  EXPECT_EQ(line.gpus, 4);
  EXPECT_FALSE(line.kwh);
}

TEST_F(JobList, ReadsAnswersOfTheList) {
  const auto lines = parse_job_lines(
      R"({"data":{"columns":["uuid","array","name","started","cpu","cost","later"],"rows":[)"
      R"(["7",null,"a\u001b[31m",1000,97.1,null,{}],["8","7100_4",null,null,null,1.5,1]]}})");
  ASSERT_TRUE(lines);
  ASSERT_EQ(lines->size(), 2U);
  EXPECT_EQ(lines->at(0).id, "7");
  EXPECT_EQ(lines->at(0).name, "a\xEF\xBF\xBD[31m");
  EXPECT_EQ(lines->at(0).cpu, 97.1);
  EXPECT_FALSE(lines->at(0).cost);
  EXPECT_EQ(lines->at(1).id, "7100_4");
  EXPECT_EQ(lines->at(1).started_ms, 0);
  EXPECT_EQ(lines->at(1).cost, 1.5);
  for (const char* bad : {"", "{}", "[]", R"({"data":{"columns":["a"],"rows":[1]}})",
                          R"({"data":{"columns":["a"]}})"}) {
    EXPECT_FALSE(parse_job_lines(bad)) << bad;
  }
  EXPECT_EQ(parse_job_lines(R"({"data":{"columns":["uuid"],"rows":[["7",1,2]]}})")->at(0).uuid,
            "7");
  EXPECT_EQ(
      parse_job_lines(R"({"data":{"columns":["started"],"rows":[[1e300]]}})")->at(0).started_ms, 0);
}

TEST_F(JobList, ReadsPrices) {
  EXPECT_EQ(parse_prices(R"({"data":[{"priced":true,"currency":"EUR"}]})").currency, "EUR");
  EXPECT_FALSE(parse_prices(R"({"data":[{"priced":false,"currency":"EUR"}]})").known);
  EXPECT_FALSE(parse_prices(R"({"data":[]})").known);
  EXPECT_FALSE(parse_prices("").known);
}

TEST_F(JobList, WritesTimesAndMoney) {
  EXPECT_EQ(start_text((kNow - 60) * 1000, kNow, false), "02:52");
  EXPECT_EQ(start_text((kNow - 86400) * 1000, kNow, false), "17 Nov 02:53");
  EXPECT_EQ(start_text((kNow - 86400) * 1000, kNow, true), "17 Nov");
  EXPECT_EQ(start_text((kNow - 86400 * 400) * 1000, kNow, true), "2025-10-14");
  EXPECT_EQ(cost_text(0.001), "< 0.01");
  EXPECT_EQ(cost_text(0), "0.00");
}

}  // namespace
}  // namespace ceems::cacct
