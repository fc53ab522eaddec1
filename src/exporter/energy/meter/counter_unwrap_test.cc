#include "exporter/energy/meter/counter_unwrap.h"

#include <limits>

#include <gtest/gtest.h>

namespace ceems::exporter::energy {
namespace {

using std::chrono::seconds;

class CounterUnwrapTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kRange = 1'000'000'000;  // 1000 J
  static Clock::SteadyTime at(int second) { return Clock::SteadyTime{seconds(second)}; }
  CounterUnwrap counter_{kRange};
};

TEST_F(CounterUnwrapTest, StartsAtZeroWhateverTheCounterShows) {
  EXPECT_DOUBLE_EQ(counter_.advance(999'000'000, at(1)), 0);
  EXPECT_DOUBLE_EQ(counter_.advance(999'500'000, at(2)), 0.5);
}

TEST_F(CounterUnwrapTest, CountsThroughAWrap) {
  counter_.advance(990'000'000, at(1));
  EXPECT_DOUBLE_EQ(counter_.advance(15'000'000, at(2)), 25);
}

TEST_F(CounterUnwrapTest, TakesAnImpossibleStepDownAsAReset) {
  counter_.advance(900'000'000, at(1));
  counter_.advance(900'000'000, at(2));
  // As a wrap this would be 100 J + 899 J... in 0.1 s: more than any socket draws.
  EXPECT_DOUBLE_EQ(counter_.advance(899'000'000, at(2) + std::chrono::milliseconds(100)), 0);
  EXPECT_DOUBLE_EQ(counter_.advance(899'000'500, at(3)), 0.0005);
}

TEST_F(CounterUnwrapTest, CountsNothingForAnImpossibleStepUp) {
  counter_.advance(1'000'000, at(1));
  EXPECT_DOUBLE_EQ(counter_.advance(std::numeric_limits<std::uint64_t>::max(), at(2)), 0);
  EXPECT_DOUBLE_EQ(counter_.advance(5'000'000, at(3)), 0);
  EXPECT_DOUBLE_EQ(counter_.advance(7'000'000, at(4)), 2);
}

TEST_F(CounterUnwrapTest, CountsModuloTheRangeWhenSamplesWereMissed) {
  counter_.advance(0, at(1));
  // 2500 J passed in one interval: the two whole ranges are lost, and no energy is invented.
  EXPECT_DOUBLE_EQ(counter_.advance(500'000'000, at(1000)), 500);
}

TEST_F(CounterUnwrapTest, CatchesUpAfterAShortGap) {
  counter_.advance(0, at(1));
  counter_.miss();
  EXPECT_DOUBLE_EQ(counter_.advance(100'000'000, at(20)), 100);
}

TEST_F(CounterUnwrapTest, StartsAnewAfterALongGap) {
  counter_.advance(0, at(1));
  counter_.miss();
  EXPECT_DOUBLE_EQ(counter_.advance(100'000'000, at(100)), 0);
  EXPECT_DOUBLE_EQ(counter_.advance(101'000'000, at(101)), 1);
}

TEST_F(CounterUnwrapTest, SurvivesACounterAboveItsOwnRange) {
  CounterUnwrap counter(1000);
  counter.advance(5000, at(1));
  EXPECT_DOUBLE_EQ(counter.advance(10, at(2)), 0);
  CounterUnwrap zero(0);
  zero.advance(std::numeric_limits<std::uint64_t>::max(), at(1));
  EXPECT_DOUBLE_EQ(zero.advance(0, at(2)), 0);
}

}  // namespace
}  // namespace ceems::exporter::energy
