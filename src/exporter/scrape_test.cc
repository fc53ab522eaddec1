#include "exporter/scrape.h"

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "testing/fake_clock.h"

namespace ceems::exporter {
namespace {

using ::testing::ElementsAre;

/// Records when it is started and waited for, and runs a function as collector.
class Noting final : public Collector {
 public:
  using Function = std::function<Result<>()>;
  Noting(std::string name, std::vector<std::string>& notes, Function function = {})
      : name_(std::move(name)), notes_(notes), function_(std::move(function)) {}

  Result<> collect(metrics::Sink&) override { return function_(); }
  void start() override { notes_.push_back("start " + name_); }
  void wait_first(std::chrono::steady_clock::time_point) override {
    notes_.push_back("wait " + name_);
  }

 private:
  std::string name_;
  std::vector<std::string>& notes_;
  Function function_;
};

TEST(Scraper, StartsEnergyAfterTheOthersHaveTheirFirstValues) {
  std::vector<std::string> notes;
  std::vector<NamedCollector> collectors;
  for (const auto& [name, stage] : std::vector<std::pair<std::string, Stage>>{
           {"sums", Stage::kEnergy}, {"bmc", Stage::kNode}, {"gpu", Stage::kDevices}}) {
    collectors.push_back({name, stage, std::make_unique<Noting>(name, notes)});
  }
  const testing::FakeClock clock;
  Scraper scraper(std::move(collectors), clock);
  scraper.start(std::chrono::steady_clock::now());
  EXPECT_THAT(notes, ElementsAre("start bmc", "start gpu", "wait bmc", "wait gpu", "start sums",
                                 "wait sums"));
}

TEST(Scraper, LogsAFailureOnceThoughItsMessagesDiffer) {
  int scrapes = 0;
  std::vector<std::string> notes;
  std::vector<NamedCollector> collectors;
  collectors.push_back(
      {.name = "odd", .collector = std::make_unique<Noting>("odd", notes, [&]() -> Result<> {
                        ++scrapes;
                        if (scrapes == 10) {
                          return {};
                        }
                        return fail(scrapes == 1 ? ErrorCode::kNoData : ErrorCode::kParse,
                                    "bad text {}", scrapes);
                      })});
  const testing::FakeClock clock;
  Scraper scraper(std::move(collectors), clock);
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 12; ++i) {
    metrics::Sink sink;
    scraper.run(sink, clock.steady_now() + std::chrono::seconds(1));
  }
  const std::string text = ::testing::internal::GetCapturedStderr();
  std::vector<std::string_view> lines;
  for (const std::string_view line : split(text, '\n')) {
    if (line.find("level=ERROR") != line.npos || line.find("level=INFO") != line.npos) {
      lines.push_back(line.substr(line.find("msg=")));
    }
  }
  EXPECT_THAT(lines, ElementsAre(R"(msg="collector failed" collector=odd err="bad text 2")",
                                 R"(msg="collector succeeds again" collector=odd)",
                                 R"(msg="collector failed" collector=odd err="bad text 11")"));
}

}  // namespace
}  // namespace ceems::exporter
