#include "cacct/output/check_text.h"

#include <string>
#include <string_view>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ceems::cacct {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string answer(std::string_view row) {
  return fmt::format(R"({{"status":"success","data":[{}]}})", row);
}

constexpr std::string_view kAll = R"({
  "basis":{"kind":"family","name":"train-#","runs":12,"days":90},
  "expected":{"wait_s":{"mid":720,"low":180,"high":7200},
    "elapsed_s":{"mid":28620,"low":27000,"high":30000},
    "energy_kwh":{"mid":1.2,"low":0.9,"high":1.6},
    "cost":{"mid":0.38,"low":0.29,"high":0.51,"currency":"EUR"},
    "emissions_g":{"mid":749,"low":562,"high":999}},
  "held":{"share":0.81,"of":150},
  "unused":{"gpus":2,"cpus":17.3,"memory_bytes":96636764160,"time_limit_s":14580},
  "suggestions":[{"rule":"gpu-unused","text":"2 of 4 GPUs never ran a kernel. Asking for fewer starts sooner.",
    "lines":["--gres=gpu:2"],"was":["--gres=gpu:4"],"saves":{"kwh":0.63},"seen_in":8}],
  "elsewhere":[{"partition":"cpu","text":"The job fits into the partition cpu, where it costs about 0.12 EUR.","cost":0.12,"for":"all members","note":"No GPUs."}],
  "begin":{"start_ts":1794949200000,"g":505,"now_g":749,"band_g":[446,547],
    "lines":["--begin=22:00"],"basis":"forecast"}})";

TEST(CheckText, ShowsWhatIsExpectedAndWhatToChange) {
  ASSERT_EQ(::setenv("TZ", "UTC", 1), 0);
  const CheckLook look{.name = "train-7", .prefix = "#SBATCH ", .width = 80};
  const std::string text = check_text(answer(kAll), look).value();
  const std::string start = text.substr(text.find("Greenest start\n  ") + 17, 16);
  EXPECT_EQ(text, R"(Check of train-7

What such a job takes                       12 runs of train-# in 90 days
  Waits     12 min (3 min to 2 h)
  Runs      7 h 57 min (7 h 30 min to 8 h 20 min)
  Energy    1.20 kWh (900 Wh to 1.60 kWh)
  Cost      EUR 0.38 (0.29 to 0.51)
  CO2e      749 g (562 g to 999 g)
  Such ranges held for 81 % of 150 jobs.

What such runs left unused
  2 GPUs, 17.3 CPUs, 90.0 GiB of memory, 4 h 03 min of the time limit

Worth a change
  1. 2 of 4 GPUs never ran a kernel. Asking for fewer starts sooner. (in 8 runs;
     saves about 630 Wh a run)
       #SBATCH --gres=gpu:2          (was --gres=gpu:4)

Elsewhere
  The job fits into the partition cpu, where it costs about 0.12 EUR. (for all
  members) No GPUs.

Greenest start
  )" + start + R"(: about 505 g CO2e instead of 749 g, 33 % less (446 g to 547
  g), by the forecast of the grid
       #SBATCH --begin=22:00
)");
  EXPECT_THAT(start, ::testing::StartsWith("2026-11-1"));
  for (const std::size_t width : {60U, 240U}) {
    const std::string other = check_text(answer(kAll), {.name = "x", .width = width}).value();
    for (std::size_t at = 0; at < other.size();) {
      const std::size_t end = other.find('\n', at);
      EXPECT_LE(end - at, width) << other.substr(at, end - at);
      at = end + 1;
    }
  }
}

TEST(CheckText, SaysThatTheLimitWouldEndTheJob) {
  const std::string row = answer(
      R"({"basis":{"kind":"family","name":"x","runs":12},"expected":{"energy_kwh":{"mid":1}},"over_limit":9})");
  constexpr std::string_view kOver = "9 of 12 such runs took longer than the time limit.";
  EXPECT_THAT(check_text(row, {}).value(), HasSubstr("\n  " + std::string(kOver) + "\n"));
  EXPECT_EQ(check_line(row, {}).value(),
            "Expected: 1.00 kWh, by 12 runs of x. " + std::string(kOver) + "\n");
  EXPECT_THAT(check_text(answer(kAll), {}).value(), Not(HasSubstr("took longer")));
}

TEST(CheckText, LeavesOutWhatIsNotKnown) {
  EXPECT_EQ(check_text(answer(R"({"basis":{"kind":"none"}})"), {}).value(),
            "Check of a job\n\nNo earlier runs say what this job will take.\n");
  const std::string text =
      check_text(answer(R"({"basis":{"kind":"user","name":"ada","runs":1,"days":1},
        "expected":{"energy_kwh":{"mid":2}},"unused":{"gpus":0},"suggestions":[],"begin":{}})"),
                 {.name = "x"})
          .value();
  EXPECT_EQ(text,
            "Check of x\n\nWhat such a job takes                       "
            "1 run of your jobs in 1 day\n  Energy    2.00 kWh\n");
}

TEST(CheckText, IsSafeForTerminals) {
  const std::string text =
      check_text(answer(R"({"basis":{"kind":"family","name":"\u001b[31m\u202e","runs":2},
        "suggestions":[{"text":"a\u0007\nb","lines":["--x\u001b]0;owned\u0007"]}],
        "elsewhere":[{"partition":"x","text":"\u009b2J"}]})"),
                 {.name = "\x1b[2Jjob\nx", .prefix = "#SBATCH "})
          .value();
  for (const char c : text) {
    EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20) << text;
  }
  EXPECT_THAT(text, Not(HasSubstr("\xE2\x80\xAE")));
  EXPECT_THAT(text, HasSubstr("owned"));
}

TEST(CheckText, NeedsAnAnswer) {
  for (const char* const body : {"", "[]", "no JSON", R"({"data":null})", R"({"data":[]})",
                                 R"({"data":[1]})", R"({"data":[{},{}]})"}) {
    EXPECT_FALSE(check_text(body, {})) << body;
    EXPECT_FALSE(check_line(body, {})) << body;
  }
}

TEST(CheckLine, IsOneLine) {
  const CheckLook look{.name = "train-7", .prefix = "#SBATCH "};
  EXPECT_EQ(check_line(answer(kAll), look).value(),
            "Expected: 1.20 kWh (900 Wh to 1.60 kWh), EUR 0.38, 749 g CO2e, 7 h 57 min of time, "
            "by 12 runs of train-# in 90 days. Worth a change: #SBATCH --gres=gpu:2\n");
  EXPECT_EQ(check_line(answer(R"({"basis":{"kind":"none"}})"), look).value(), "");
  const std::string line =
      check_line(answer(fmt::format(R"({{"basis":{{"kind":"project","name":"{}","runs":2}},
        "expected":{{"energy_kwh":{{"mid":1}}}}}})",
                                    std::string(1000, 'x'))),
                 look)
          .value();
  EXPECT_EQ(line.size(), 401U);
  EXPECT_EQ(line.find('\n'), 400U);
}

}  // namespace
}  // namespace ceems::cacct
