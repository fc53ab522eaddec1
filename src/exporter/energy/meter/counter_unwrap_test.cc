#include "exporter/energy/meter/counter_unwrap.h"

#include <limits>
#include <random>

#include <gtest/gtest.h>

namespace ceems::exporter::energy {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint64_t kJoule = 1'000'000;

/// A counter of a socket that may draw 200 W.
class CounterUnwrapTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kRange = 262'143 * kJoule;
  static Clock::SteadyTime at(int second) { return Clock::SteadyTime{seconds(second)}; }

  /// The next second, in which the counter moves by `joules`.
  double step(std::int64_t joules, std::chrono::nanoseconds suspended = {}) {
    raw_ += joules * static_cast<std::int64_t>(kJoule);
    suspended_ += suspended;
    return counter_.advance(static_cast<std::uint64_t>(raw_), at(++second_), suspended_);
  }
  void set(std::uint64_t joules) { raw_ = static_cast<std::int64_t>(joules * kJoule); }
  void expect_rejected(double joules, std::uint64_t steps) {
    EXPECT_DOUBLE_EQ(counter_.rejected().joules, joules);
    EXPECT_EQ(counter_.rejected().steps, steps);
  }

  CounterUnwrap counter_{kRange, power_bound(Domain::kPackage, 200.0)};
  std::int64_t raw_ = 0;
  int second_ = 0;
  std::chrono::nanoseconds suspended_{};
};

TEST_F(CounterUnwrapTest, StartsAtZeroWhateverTheCounterShows) {
  set(200'000);
  EXPECT_DOUBLE_EQ(step(0), 0);
  EXPECT_DOUBLE_EQ(step(50), 50);
  expect_rejected(0, 0);
}

TEST_F(CounterUnwrapTest, CountsThroughAWrap) {
  set(262'133);
  step(0);
  set(15);
  EXPECT_DOUBLE_EQ(step(0), 25);
  expect_rejected(0, 0);
}

TEST_F(CounterUnwrapTest, TakesAnImpossibleStepDownAsAReset) {
  set(200'000);
  step(0);
  EXPECT_DOUBLE_EQ(step(100), 100);
  set(0);  // as a wrap it would mean 62 kJ in a second
  EXPECT_DOUBLE_EQ(step(40), 0);
  EXPECT_DOUBLE_EQ(step(100), 100);
  expect_rejected(0, 0);
}

TEST_F(CounterUnwrapTest, CountsModuloTheRangeWhenSamplesWereMissed) {
  CounterUnwrap counter(1000 * kJoule, power_bound(Domain::kPackage));
  counter.advance(0, at(1));
  // 2500 J passed in one interval: the two whole ranges are lost, and no energy is invented.
  EXPECT_DOUBLE_EQ(counter.advance(500 * kJoule, at(1000)), 500);
}

TEST_F(CounterUnwrapTest, CountsAJumpAsTheIntervalBeforeIt) {
  step(0);
  step(150);
  EXPECT_DOUBLE_EQ(step(8'000), 150);
  EXPECT_DOUBLE_EQ(counter_.held_back_joules(), 7'850);
  EXPECT_DOUBLE_EQ(step(160), 160);
  EXPECT_DOUBLE_EQ(counter_.held_back_joules(), 0);
  expect_rejected(7'850, 1);
  EXPECT_DOUBLE_EQ(counter_.expected_watts(), 200);
}

TEST_F(CounterUnwrapTest, RejectsAtOnceWhatNoHardwareDraws) {
  step(0);
  step(150);
  EXPECT_DOUBLE_EQ(step(20'000), 150);
  expect_rejected(19'850, 1);
  EXPECT_DOUBLE_EQ(step(150), 150);
}

TEST_F(CounterUnwrapTest, LeavesAJumpInTheFirstIntervalOut) {
  step(0);
  EXPECT_DOUBLE_EQ(step(20'000), 0);
  EXPECT_DOUBLE_EQ(step(150), 150);
  expect_rejected(20'000, 1);
}

TEST_F(CounterUnwrapTest, BelievesJustTheMarginAboveThePowerLimit) {
  step(0);
  EXPECT_DOUBLE_EQ(step(450), 450);  // 200 W * (1.25 * 1 s + 1 s)
  EXPECT_DOUBLE_EQ(step(451), 200);  // never more than the limit
  EXPECT_DOUBLE_EQ(step(0), 0);
  expect_rejected(251, 1);
  // After half a minute without reads, 200 W * (1.25 * 30 s + 1 s).
  counter_.miss();
  second_ += 29;
  EXPECT_DOUBLE_EQ(step(7'700), 7'700);
  counter_.miss();
  second_ += 29;
  EXPECT_DOUBLE_EQ(step(7'701), 30 * 200);
}

TEST_F(CounterUnwrapTest, BelievesAPowerAboveTheLimitThatStays) {
  step(0);
  step(150);
  EXPECT_DOUBLE_EQ(step(600), 150);
  EXPECT_DOUBLE_EQ(step(700), 150);
  EXPECT_DOUBLE_EQ(step(650), 150 + 450 + 550 + 500);  // no part of it is lost
  EXPECT_DOUBLE_EQ(counter_.expected_watts(), 650);
  EXPECT_DOUBLE_EQ(step(1'400), 1'400);
  expect_rejected(0, 0);
}

TEST_F(CounterUnwrapTest, DoesNotTakeAJumpAndABurstForAPowerThatStays) {
  step(0);
  step(150);
  EXPECT_DOUBLE_EQ(step(5'000), 150);
  EXPECT_DOUBLE_EQ(step(600), 150);
  EXPECT_DOUBLE_EQ(step(600), 150);
  expect_rejected(4'850, 1);
  EXPECT_DOUBLE_EQ(step(100), 100);
  expect_rejected(4'850 + 2 * 450, 3);
}

TEST_F(CounterUnwrapTest, DoesNotTakeAJumpInNoTimeForAPowerThatStays) {
  step(0);
  step(100);
  step(500);
  step(500);
  raw_ += 1'000 * static_cast<std::int64_t>(kJoule);
  EXPECT_DOUBLE_EQ(counter_.advance(static_cast<std::uint64_t>(raw_), at(second_)), 0);
  expect_rejected(2 * 400, 2);
  step(500);  // does not agree with it
  expect_rejected(2 * 400 + 1'000, 3);
  step(500);
  EXPECT_DOUBLE_EQ(step(500), 500 + 2 * 400);
  expect_rejected(2 * 400 + 1'000, 3);
}

TEST_F(CounterUnwrapTest, NeverBelievesMoreThanTheCeiling) {
  step(0);
  step(150);
  for (int i = 0; i < 10; ++i) {
    EXPECT_DOUBLE_EQ(step(8'000), 150) << i;
  }
  step(150);
  expect_rejected(10 * 7'850, 10);
  EXPECT_DOUBLE_EQ(counter_.expected_watts(), 200);
}

TEST_F(CounterUnwrapTest, CountsOnlyTheRunningTimeOfAnIntervalWithASuspend) {
  step(0);
  step(150);
  // An hour at 5 W, which the steady clock does not see.
  EXPECT_DOUBLE_EQ(step(18'000 + 120, seconds(3600)), 150);
  expect_rejected(18'120 - 150, 1);
  EXPECT_DOUBLE_EQ(step(150), 150);
  // Little energy, but of a minute.
  EXPECT_DOUBLE_EQ(step(300, seconds(60)), 150);
  expect_rejected(18'120 - 150 + 150, 2);
  // The counter stood still.
  EXPECT_DOUBLE_EQ(step(100, seconds(60)), 100);
  expect_rejected(18'120, 2);
  // It started again, close to a wrap.
  set(262'142);
  step(0);
  EXPECT_DOUBLE_EQ(step(0), 0);
  set(5);
  EXPECT_DOUBLE_EQ(step(0, seconds(60)), 0);
  EXPECT_DOUBLE_EQ(step(150), 150);
}

TEST_F(CounterUnwrapTest, TakesTimeBetweenTwoClocksForNoSuspend) {
  step(0);
  step(150);
  EXPECT_DOUBLE_EQ(step(200, milliseconds(499)), 200);
  EXPECT_DOUBLE_EQ(step(200, milliseconds(-499)), 200);
  expect_rejected(0, 0);
}

TEST_F(CounterUnwrapTest, ForgetsWhatItHeldBackWhenTheCounterIsGone) {
  step(0);
  step(150);
  step(600);
  counter_.miss();
  expect_rejected(450, 1);
  EXPECT_DOUBLE_EQ(step(150), 150);
}

TEST_F(CounterUnwrapTest, CatchesUpAfterAShortGap) {
  step(0);
  counter_.miss();
  second_ += 19;
  EXPECT_DOUBLE_EQ(step(3'000), 3'000);
}

TEST_F(CounterUnwrapTest, CountsAJumpInAShortGapAsTheIntervalBeforeIt) {
  step(0);
  step(100);
  counter_.miss();  // the module is reloaded, and the counter of the socket has jumped
  second_ += 9;
  EXPECT_DOUBLE_EQ(step(30'000), 1'000);
  step(100);
  expect_rejected(29'000, 1);
  counter_.miss();  // or it starts at 0
  second_ += 9;
  set(0);
  EXPECT_DOUBLE_EQ(step(900), 0);
  EXPECT_DOUBLE_EQ(step(100), 100);
}

TEST_F(CounterUnwrapTest, StartsAnewAfterALongGap) {
  step(0);
  counter_.miss();
  second_ += 99;
  EXPECT_DOUBLE_EQ(step(1'000), 0);
  EXPECT_DOUBLE_EQ(step(100), 100);
  expect_rejected(0, 0);
}

TEST_F(CounterUnwrapTest, SurvivesOneWrongValue) {
  set(1'000);
  step(0);
  step(150);
  for (const std::uint64_t glitch : {std::uint64_t{0}, std::uint64_t{60'000}}) {
    const std::int64_t before = raw_;
    set(glitch);
    EXPECT_LE(step(0), 150);
    raw_ = before + 300 * static_cast<std::int64_t>(kJoule);
    EXPECT_LE(step(0), 150);
    EXPECT_DOUBLE_EQ(step(150), 150);
  }
}

TEST_F(CounterUnwrapTest, SurvivesACounterAboveItsOwnRange) {
  CounterUnwrap counter(1000, power_bound(Domain::kPackage));
  counter.advance(5000, at(1));
  EXPECT_DOUBLE_EQ(counter.advance(10, at(2)), 0);
  CounterUnwrap zero(0, power_bound(Domain::kPackage));
  zero.advance(std::numeric_limits<std::uint64_t>::max(), at(1));
  EXPECT_DOUBLE_EQ(zero.advance(0, at(2)), 0);
  EXPECT_DOUBLE_EQ(zero.advance(std::numeric_limits<std::uint64_t>::max(), at(3)), 0);
}

TEST_F(CounterUnwrapTest, AccountsForEveryStepUp) {
  std::mt19937_64 random(7);
  double shown = 0;
  double counted = 0;
  step(0);
  for (int i = 0; i < 100'000; ++i) {
    const auto joules = static_cast<std::int64_t>(
        random() % 50 == 0 ? random() % 100'000 : (random() % 500 < 490 ? 150 : 2'000));
    if (raw_ > static_cast<std::int64_t>(kRange / 2)) {
      set(0);  // a reset, which counts nothing
      const double held = counter_.held_back_joules();
      EXPECT_DOUBLE_EQ(step(0), 0);
      EXPECT_EQ(counter_.held_back_joules(), 0) << held;
    }
    shown += static_cast<double>(joules);
    counted += step(joules, random() % 100 == 0 ? seconds(10) : seconds(0));
    ASSERT_NEAR(counted + counter_.held_back_joules() + counter_.rejected().joules, shown,
                1e-9 * shown);
  }
  EXPECT_GT(counted, 0.9 * 150 * 100'000);
  EXPECT_GT(counter_.rejected().steps, 1'000U);
}

TEST(PowerBound, IsThePowerLimitWhereThatCanBeOne) {
  EXPECT_EQ(power_bound(Domain::kPackage, 205.0).expected, 205);
  EXPECT_EQ(power_bound(Domain::kPackage, 0.0).expected, 500);
  EXPECT_EQ(power_bound(Domain::kPackage, 4095.875).expected, 500);  // "unlimited"
  EXPECT_EQ(power_bound(Domain::kPackage).expected, 500);
  EXPECT_EQ(power_bound(Domain::kDram).expected, 200);
  EXPECT_EQ(power_bound(Domain::kDram, 30.0).expected, 30);
  EXPECT_EQ(power_bound(Domain::kNode).expected, 2'000);
}

}  // namespace
}  // namespace ceems::exporter::energy
