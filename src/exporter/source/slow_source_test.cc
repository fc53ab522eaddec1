#include "exporter/source/slow_source.h"

#include <atomic>
#include <latch>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include "base/mutex.h"
#include "testing/eventually.h"
#include "testing/fake_clock.h"

namespace ceems::exporter {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using testing::eventually;
using testing::kPatience;
using Source = SlowSource<int>;

/// A source that hangs in read number `hangs_at` and all later ones, until a stop is requested.
class Hanging {
 public:
  explicit Hanging(int hangs_at) : hangs_at_(hangs_at) {}
  Result<int> operator()(const std::stop_token& stop) {
    const int read = ++reads_;
    if (read >= hangs_at_) {
      hangs_ = true;
      Mutex mutex;
      MutexLock lock(mutex);
      Condition forever;
      forever.wait(lock, stop, [] { return false; });
      return fail(ErrorCode::kUnavailable, "stopped");
    }
    return read;
  }
  [[nodiscard]] bool hangs() const { return hangs_; }

 private:
  const int hangs_at_;
  std::atomic<int> reads_ = 0;
  std::atomic<bool> hangs_ = false;
};

/// Starts the source as the program does, but waits longer for it.
void start(Source& source) {
  source.start();
  source.wait_first(steady_clock::now() + std::chrono::minutes(10));
}

TEST(SlowSource, ServesTheFirstValueFromTheStart) {
  const testing::FakeClock clock;
  Source source({.collector = "test", .source = "s"}, clock,
                [](const std::stop_token&) { return Result<int>(7); });
  EXPECT_FALSE(source.value());
  EXPECT_FALSE(source.last_good());
  start(source);
  const auto value = source.value();
  ASSERT_TRUE(value);
  EXPECT_EQ(value->value, 7);
  EXPECT_EQ(value->read, clock.steady_now());
  EXPECT_EQ(source.last_good(), clock.steady_now());
  EXPECT_EQ(source.last_error(), "");
}

TEST(SlowSource, AQuickSourceIsFreshAtEachScrape) {
  const testing::FakeClock clock;
  std::atomic<int> reads = 0;
  Source source(
      {.collector = "test", .source = "s", .period = std::chrono::hours(1), .patience = kPatience},
      clock, [&](const std::stop_token&) { return Result<int>(++reads); });
  start(source);
  for (int scrape = 2; scrape < 6; ++scrape) {
    const auto value = source.value();
    ASSERT_TRUE(value);
    EXPECT_EQ(value->value, scrape);
  }
  EXPECT_EQ(reads, 5);
}

TEST(SlowSource, DoesNotReadMoreOftenThanAllowed) {
  const testing::FakeClock clock;
  std::atomic<int> reads = 0;
  Source source({.collector = "test",
                 .source = "s",
                 .period = std::chrono::hours(1),
                 .fresh_enough = std::chrono::minutes(1)},
                clock, [&](const std::stop_token&) { return Result<int>(++reads); });
  start(source);
  for (int scrape = 0; scrape < 100; ++scrape) {
    EXPECT_EQ(source.value()->value, 1);
  }
  EXPECT_EQ(reads, 1);
}

TEST(SlowSource, ReadsPeriodicallyWithoutScrapes) {
  const testing::FakeClock clock;
  std::atomic<int> reads = 0;
  Source source({.collector = "test", .source = "s", .period = milliseconds(5)}, clock,
                [&](const std::stop_token&) { return Result<int>(++reads); });
  start(source);
  EXPECT_TRUE(eventually([&] { return reads >= 4; }));
}

TEST(SlowSource, AHangNeverStallsScrapesAndTheValueAgesUntilItIsDropped) {
  testing::FakeClock clock;
  Hanging hanging(2);
  constexpr milliseconds kWait{200};
  Source source({.collector = "test",
                 .source = "bmc",
                 .period = milliseconds(1),
                 .max_age = std::chrono::minutes(5),
                 .patience = kWait},
                clock, std::ref(hanging));
  const auto read_at = clock.steady_now();
  start(source);
  ASSERT_TRUE(eventually([&] { return hanging.hangs(); }));
  clock.advance(std::chrono::seconds(10));
  const auto begin = steady_clock::now();
  for (auto waits = milliseconds(0); waits < kPatience; waits += kWait) {
    const auto value = source.value();
    ASSERT_TRUE(value);
    EXPECT_EQ(value->value, 1);
    EXPECT_EQ(value->read, read_at);
  }
  EXPECT_LT(steady_clock::now() - begin, kPatience) << "only the first scrape may wait";
  clock.advance(std::chrono::minutes(5) - std::chrono::seconds(10));
  EXPECT_TRUE(source.value()) << "exactly at the maximum age";
  clock.advance(milliseconds(1));
  EXPECT_FALSE(source.value());
  EXPECT_EQ(source.last_good(), read_at);
}

TEST(SlowSource, AHangAtTheStartDelaysItNoLongerThanTheLimit) {
  const testing::FakeClock clock;
  Hanging hanging(1);
  const auto begin = steady_clock::now();
  {
    Source source({.collector = "test", .source = "bmc", .first_wait = milliseconds(50)}, clock,
                  std::ref(hanging));
    start(source);
    EXPECT_FALSE(source.value());
  }
  EXPECT_LT(steady_clock::now() - begin, kPatience) << "stopped during the hang";
}

TEST(SlowSource, HangingSourcesTogetherDelayTheStartNoLongerThanOne) {
  const testing::FakeClock clock;
  Hanging hanging(1);
  Hanging other(1);
  const SlowSourceOptions options{
      .collector = "test", .source = "bmc", .first_wait = std::chrono::minutes(10)};
  Source first(options, clock, std::ref(hanging));
  Source second(options, clock, std::ref(other));
  Source quick(options, clock, [](const std::stop_token&) { return Result<int>(7); });
  const auto begin = steady_clock::now();
  const auto deadline = begin + milliseconds(60);
  for (Source* source : {&first, &second, &quick}) {
    source->start();
  }
  for (Source* source : {&first, &second, &quick}) {
    source->wait_first(deadline);
  }
  EXPECT_LT(steady_clock::now() - begin, kPatience);
  EXPECT_TRUE(quick.value());
}

TEST(SlowSource, KeepsTheValueDuringFailuresAndRecovers) {
  const testing::FakeClock clock;
  std::atomic<int> next = 1;
  Source source(
      {.collector = "test", .source = "s", .period = std::chrono::hours(1), .patience = kPatience},
      clock, [&](const std::stop_token&) -> Result<int> {
        if (next < 0) {
          return fail(ErrorCode::kUnavailable, "failure {}", next.load());
        }
        if (next == 0) {
          throw std::runtime_error("thrown");
        }
        return next.load();
      });
  start(source);
  next = -1;
  EXPECT_EQ(source.value()->value, 1);
  EXPECT_EQ(source.last_error(), "failure -1");
  next = 0;
  EXPECT_EQ(source.value()->value, 1);
  EXPECT_EQ(source.last_error(), "exception: thrown");
  next = 5;
  EXPECT_EQ(source.value()->value, 5);
  EXPECT_EQ(source.last_error(), "");
}

TEST(SlowSource, AReadInProgressServesTheScrape) {
  const testing::FakeClock clock;
  std::atomic<int> reads = 0;
  std::latch may_end(1);
  std::atomic<bool> second_began = false;
  Source source(
      {.collector = "test", .source = "s", .period = milliseconds(1), .patience = kPatience}, clock,
      [&](const std::stop_token&) -> Result<int> {
        const int read = ++reads;
        if (read == 2) {
          second_began = true;
          may_end.wait();
        }
        return read;
      });
  start(source);
  ASSERT_TRUE(eventually([&] { return second_began.load(); }));
  const std::jthread ender([&] {
    std::this_thread::sleep_for(milliseconds(20));
    may_end.count_down();
  });
  EXPECT_GE(source.value()->value, 2);
}

}  // namespace
}  // namespace ceems::exporter
