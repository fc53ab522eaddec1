#include "exporter/energy/account/idle_power.h"

#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace ceems::exporter::energy {
namespace {

void observe(IdlePower& idle, double watts, double utilisation, int seconds) {
  for (int i = 0; i < seconds; ++i) {
    idle.observe(watts, 1, utilisation);
  }
}

TEST(PowerEstimate, IsCombinedByVariance) {
  const PowerEstimate both =
      combine({.watts = 100, .deviation = 3}, {.watts = 110, .deviation = 4});
  EXPECT_DOUBLE_EQ(both.watts, 100 + 10 * 9.0 / 25);
  EXPECT_DOUBLE_EQ(both.deviation, 2.4);
  const PowerEstimate sure{.watts = 100, .deviation = 0};
  EXPECT_EQ(combine(sure, {.watts = 110, .deviation = 4}), sure);
  EXPECT_EQ(combine({.watts = 110, .deviation = 4}, sure), sure);
  EXPECT_EQ(combine(sure, {.watts = 110, .deviation = 0}), sure);
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
  EXPECT_NEAR(idle.watts().value_or(-1), 200, 1e-9);
  observe(idle, 100, 0.01, 60);  // then the job ends
  EXPECT_NEAR(idle.watts().value_or(-1), 98, 1.5);
}

TEST(IdlePower, LearnsAnIdlePowerAboveTheAssumedOne) {
  IdlePower idle;
  observe(idle, 400, 1.0, 100);
  observe(idle, 320, 0.02, 60);
  EXPECT_NEAR(idle.watts().value_or(-1), 316, 3);
}

TEST(IdlePower, OfANodeThatIsNeverIdleIsExtrapolated) {
  IdlePower idle;
  for (int round = 0; round < 20; ++round) {
    for (const double use : {0.3, 0.5, 0.7, 0.9}) {
      observe(idle, 160 + 250 * use, use, 30);
    }
  }
  EXPECT_NEAR(idle.watts().value_or(-1), 160, 0.05 * 160);
}

TEST(IdlePower, IsNotRaisedByASteadySmallLoad) {
  IdlePower idle;
  observe(idle, 160, 0.0, 300);
  observe(idle, 196, 0.09, 24 * 3600);
  EXPECT_NEAR(idle.watts().value_or(-1), 160, 0.5);
}

TEST(IdlePower, IsNotTakenFromASmallLoadThatNeverChanges) {
  IdlePower idle;
  observe(idle, 196, 0.09, 600);
  EXPECT_NEAR(idle.watts().value_or(-1), 196 / 1.09, 1e-9);
  observe(idle, 160, 0.0, 60);
  EXPECT_NEAR(idle.watts().value_or(-1), 160, 0.01 * 160);
}

TEST(IdlePower, FollowsALevelWithinHoursAndNotOneBrokenReading) {
  IdlePower idle;
  observe(idle, 100, 0.0, 10);
  observe(idle, 1, 0.0, 10);  // one broken window
  EXPECT_NEAR(idle.watts().value_or(-1), 100, 2.5);
  observe(idle, 60, 0.0, 3600);
  EXPECT_NEAR(idle.watts().value_or(-1), 60, 1);
  observe(idle, 90, 0.0, 10);
  EXPECT_LT(idle.watts().value_or(-1), 61);
  observe(idle, 90, 0.0, 6 * 3600);
  EXPECT_NEAR(idle.watts().value_or(-1), 90, 1);
  observe(idle, 5000, 0.0, 10);
  EXPECT_LT(idle.watts().value_or(-1), 106);
}

TEST(IdlePower, IsNeverAboveWhatWasSeen) {
  IdlePower idle;
  // Power that falls with use, as when only the memory-bound jobs use many CPUs.
  observe(idle, 150, 0.2, 100);
  observe(idle, 120, 0.8, 100);
  EXPECT_LE(idle.watts().value_or(-1), 120);
  EXPECT_GE(idle.watts().value_or(-1), 40);
}

TEST(IdlePower, IgnoresBusyWindowsOnceItHasSeenQuietOnes) {
  IdlePower idle;
  observe(idle, 100, 0.0, 20);
  observe(idle, 150, 0.9, 1000);
  EXPECT_NEAR(idle.watts().value_or(-1), 100, 1);
}

TEST(IdlePower, TakesAnUnknownUtilisationAsQuiet) {
  IdlePower idle;
  observe(idle, 50, std::numeric_limits<double>::quiet_NaN(), 20);
  EXPECT_DOUBLE_EQ(idle.watts().value_or(-1), 50);
}

TEST(IdlePower, ContinuesWithTheStateOfAnother) {
  IdlePower before;
  EXPECT_TRUE(before.state().empty());
  for (int round = 0; round < 20; ++round) {
    for (const double use : {0.3, 0.5, 0.7, 0.9}) {
      observe(before, 160 + 250 * use, use, 30);
    }
  }
  ASSERT_EQ(before.state().size(), 4U);
  IdlePower after;
  after.restore(before.state());
  EXPECT_EQ(after.state(), before.state());
  EXPECT_DOUBLE_EQ(after.watts().value_or(-1), before.watts().value_or(-2));
  // Under a load that stays the same the estimate would be 215 W without the state.
  observe(after, 160 + 250 * 0.9, 0.9, 24 * 3600);
  EXPECT_NEAR(after.watts().value_or(-1), before.watts().value_or(-2), 1.6);
}

TEST(IdlePower, KeepsWhatItSawItselfOverAState) {
  IdlePower idle;
  observe(idle, 100, 0.0, 60);
  idle.restore(std::vector<IdlePower::Bin>{{.use = 0.0, .watts = 50, .windows = 90},
                                           {.use = 1, .watts = 300, .windows = 90}});
  EXPECT_EQ(idle.state(), (std::vector<IdlePower::Bin>{{.use = 0, .watts = 100, .windows = 6},
                                                       {.use = 1, .watts = 300, .windows = 90}}));
}

TEST(IdlePower, RestoresNothingImplausible) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::vector<IdlePower::Bin> good{{.use = 0.5, .watts = 100, .windows = 6}};
  for (const double bad : {-0.1, 1e7, kNan, kInfinity}) {
    IdlePower idle;
    idle.restore(std::vector<IdlePower::Bin>{{.use = bad, .watts = 100, .windows = 6},
                                             {.use = 0.1, .watts = bad, .windows = 6},
                                             {.use = 0.2, .watts = 100, .windows = bad},
                                             {.use = 0.3, .watts = 0, .windows = 6},
                                             {.use = 0.4, .watts = 100, .windows = 0},
                                             good.front()});
    EXPECT_EQ(idle.state(), good) << bad;
  }
}

TEST(IdlePower, KnowsHowMuchIsAssumed) {
  IdlePower idle(0.25);
  observe(idle, 400, 1.0, 5);  // before the first window is full
  EXPECT_EQ(idle.estimate(), (PowerEstimate{.watts = 100, .deviation = 150}));
  observe(idle, 400, 1.0, 600);
  EXPECT_NEAR(idle.watts().value_or(-1), 100, 1e-9);
  EXPECT_NEAR(idle.estimate().value_or(PowerEstimate{}).deviation, 150, 1e-9);
  EXPECT_FALSE(idle.estimate().value_or(PowerEstimate{}).learned());
  EXPECT_EQ(idle.lowest(), 400);
  for (int round = 0; round < 20; ++round) {
    observe(idle, 200, 0.2, 30);
    observe(idle, 300, 0.6, 30);
  }
  EXPECT_TRUE(idle.estimate().value_or(PowerEstimate{}).learned());
  EXPECT_EQ(idle.lowest(), 200);
  IdlePower quiet;
  observe(quiet, 80, 0, 60);
  EXPECT_EQ(quiet.estimate(), (PowerEstimate{.watts = 80, .deviation = 0}));
}

TEST(IdlePower, LearnsNothingWhereAValueIsConfigured) {
  IdlePower idle;
  idle.configure(33);
  observe(idle, 100, 0.0, 100);
  idle.restore(std::vector<IdlePower::Bin>{{.use = 0, .watts = 100, .windows = 6}});
  EXPECT_DOUBLE_EQ(idle.watts().value_or(-1), 33);
  EXPECT_TRUE(idle.state().empty());
}

}  // namespace
}  // namespace ceems::exporter::energy
