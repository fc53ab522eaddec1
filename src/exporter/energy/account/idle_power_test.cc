#include "exporter/energy/account/idle_power.h"

#include <limits>

#include <gtest/gtest.h>

namespace ceems::exporter::energy {
namespace {

void observe(IdlePower& idle, double watts, double utilisation, int seconds) {
  for (int i = 0; i < seconds; ++i) {
    idle.observe(watts, 1, utilisation);
  }
}

TEST(IdlePower, IsUnknownBeforeTheFirstInterval) {
  IdlePower idle;
  EXPECT_EQ(idle.watts(), std::nullopt);
  idle.observe(0, 1, 0);  // a meter that has not moved shows nothing
  EXPECT_EQ(idle.watts(), std::nullopt);
}

TEST(IdlePower, TakesThePowerOfAnIdleNodeAtOnce) {
  IdlePower idle;
  idle.observe(80, 1, 0.0);
  EXPECT_DOUBLE_EQ(idle.watts().value_or(-1), 80);
}

TEST(IdlePower, IsConservativeOnANodeThatIsFullFromTheStart) {
  IdlePower idle;
  observe(idle, 400, 1.0, 100);
  EXPECT_DOUBLE_EQ(idle.watts().value_or(-1), 200);
  observe(idle, 100, 0.01, 20);  // then the job ends
  EXPECT_DOUBLE_EQ(idle.watts().value_or(-1), 100);
}

TEST(IdlePower, LearnsAnIdlePowerAboveTheInferredOne) {
  IdlePower idle;
  observe(idle, 400, 1.0, 100);
  observe(idle, 320, 0.02, 20);
  EXPECT_DOUBLE_EQ(idle.watts().value_or(-1), 320);
}

TEST(IdlePower, FollowsTheLowerEnvelopeAndNotOneBrokenReading) {
  IdlePower idle;
  observe(idle, 100, 0.0, 10);
  observe(idle, 1, 0.0, 10);  // one broken window
  EXPECT_NEAR(idle.watts().value_or(-1), 100, 2.5);
  observe(idle, 60, 0.0, 3600);
  EXPECT_NEAR(idle.watts().value_or(-1), 60, 0.01);
  observe(idle, 90, 0.0, 10);
  EXPECT_LT(idle.watts().value_or(-1), 61);
  observe(idle, 90, 0.0,
          6 * 3600);  // the level rose permanently: the old one is forgotten in hours
  EXPECT_NEAR(idle.watts().value_or(-1), 90, 0.01);
}

TEST(IdlePower, IgnoresBusyWindowsOnceItHasSeenQuietOnes) {
  IdlePower idle;
  observe(idle, 100, 0.0, 20);
  observe(idle, 150, 0.9, 1000);
  EXPECT_DOUBLE_EQ(idle.watts().value_or(-1), 100);
}

TEST(IdlePower, TakesAnUnknownUtilisationAsQuiet) {
  IdlePower idle;
  observe(idle, 50, std::numeric_limits<double>::quiet_NaN(), 20);
  EXPECT_DOUBLE_EQ(idle.watts().value_or(-1), 50);
}

TEST(IdlePower, LearnsNothingWhereAValueIsConfigured) {
  IdlePower idle;
  idle.configure(33);
  observe(idle, 100, 0.0, 100);
  EXPECT_DOUBLE_EQ(idle.watts().value_or(-1), 33);
}

}  // namespace
}  // namespace ceems::exporter::energy
