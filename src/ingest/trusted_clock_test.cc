#include "ingest/trusted_clock.h"

#include <gtest/gtest.h>

#include "testing/fake_clock.h"

namespace ceems::ingest {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

class TrustedClockTest : public ::testing::Test {
 protected:
  void SetUp() override { start_ms_ = clock_.now_ms(); }
  /// Returns the trusted time in minutes since the start.
  std::int64_t now() { return (clock_.now_ms() - start_ms_) / 60'000; }
  void step(minutes by) { fake_.step_to(fake_.now() + by); }

  testing::FakeClock fake_;
  TrustedClock clock_{fake_, minutes(15)};
  std::int64_t start_ms_ = 0;
};

TEST_F(TrustedClockTest, FollowsTheClockAndSmallSteps) {
  fake_.advance(minutes(60));
  EXPECT_EQ(now(), 60);
  step(minutes(1));
  EXPECT_EQ(now(), 61);
}

TEST_F(TrustedClockTest, FollowsAStepBackAtOnce) {
  fake_.advance(minutes(60));
  EXPECT_EQ(now(), 60);
  step(-minutes(30));
  EXPECT_EQ(now(), 30);
}

TEST_F(TrustedClockTest, BelievesAStepAheadOnceItHasLasted) {
  step(minutes(100));
  EXPECT_EQ(now(), 0);
  fake_.advance(minutes(15) - seconds(1));
  EXPECT_EQ(now(), 14);
  fake_.advance(seconds(1));
  EXPECT_EQ(now(), 115);
}

TEST_F(TrustedClockTest, ForgetsAStepAheadThatIsTakenBack) {
  step(minutes(100));
  EXPECT_EQ(now(), 0);
  fake_.advance(minutes(10));
  step(-minutes(100));
  EXPECT_EQ(now(), 10);
  step(minutes(100));
  fake_.advance(minutes(10));
  EXPECT_EQ(now(), 20) << "the doubt begins anew";
}

TEST_F(TrustedClockTest, DoubtsAnotherStepAheadAnew) {
  step(minutes(100));
  EXPECT_EQ(now(), 0);
  fake_.advance(minutes(10));
  step(minutes(100));
  EXPECT_EQ(now(), 10);
  fake_.advance(minutes(10));
  EXPECT_EQ(now(), 20);
  fake_.advance(minutes(5));
  EXPECT_EQ(now(), 225);
}

}  // namespace
}  // namespace ceems::ingest
