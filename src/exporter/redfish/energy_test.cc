#include <cmath>

#include <gtest/gtest.h>

#include "exporter/redfish/documents.h"

namespace ceems::exporter::redfish {
namespace {

/// A BMC that is read every 5 s and shows `shown` W, with a counter that counts `counted` W in
/// steps of `step` J from 7 MJ on.
struct Bmc {
  EnergyScale scale;
  Clock::SteadyTime now{};
  double joules = 7e6;
  double corrected = 0;

  void run(int seconds, double shown, double counted, double step = 1) {
    for (int passed = 0; passed < seconds; passed += 5) {
      const EnergyCounter counter{.joules = std::floor(joules / step) * step, .step = step};
      corrected = scale.correct(shown, counter, now);
      joules += 5 * counted;
      now += std::chrono::seconds(5);
    }
  }
};

TEST(RedfishEnergyScale, TheCounterGivesTheEnergy) {
  Bmc bmc;
  bmc.run(60, 400, 440);
  EXPECT_DOUBLE_EQ(bmc.corrected, 400) << "before the first window";
  bmc.run(10, 400, 440);
  EXPECT_DOUBLE_EQ(bmc.corrected, 440);
  bmc.run(5, 600, 660);
  EXPECT_DOUBLE_EQ(bmc.corrected, 660) << "the power gives the course in time at once";
}

TEST(RedfishEnergyScale, CoarseStepsTakeLongerAndAreAsExact) {
  Bmc bmc;
  bmc.run(600, 400, 440, 36'000);
  EXPECT_DOUBLE_EQ(bmc.corrected, 400);
  bmc.run(1800, 400, 440, 36'000);
  EXPECT_NEAR(bmc.corrected, 440, 440 * 0.05);
}

TEST(RedfishEnergyScale, ACounterThatLiesChangesNothing) {
  for (const double counted : {0.0, 0.4, 190.0, 810.0, 400'000.0}) {
    Bmc bmc;
    bmc.run(8000, 400, counted);
    EXPECT_DOUBLE_EQ(bmc.corrected, 400) << counted;
  }
  Bmc bmc;
  bmc.run(200, 400, 440);
  bmc.joules += 1e9;
  bmc.run(60, 400, 440);
  EXPECT_DOUBLE_EQ(bmc.corrected, 400) << "it jumped";
  bmc.run(120, 400, 440);
  EXPECT_DOUBLE_EQ(bmc.corrected, 440);
  bmc.joules = 0;
  bmc.run(65, 400, 440);
  EXPECT_DOUBLE_EQ(bmc.corrected, 440) << "it began again";
}

TEST(RedfishEnergyScale, AStoppedCounterIsForgottenAfterAnHour) {
  Bmc bmc;
  bmc.run(300, 400, 440);
  bmc.run(3000, 400, 0);
  EXPECT_NEAR(bmc.corrected, 440, 44) << "in its last window it moved for a part of the time";
  bmc.run(1500, 400, 0);
  EXPECT_DOUBLE_EQ(bmc.corrected, 400);
}

TEST(RedfishEnergyScale, AGapIsNotHeldPower) {
  Bmc bmc;
  bmc.run(35, 400, 440);
  bmc.now += std::chrono::minutes(10);
  bmc.joules += 100 * 600;  // the node was off
  bmc.run(45, 400, 440);
  EXPECT_DOUBLE_EQ(bmc.corrected, 400);
  bmc.run(30, 400, 440);
  EXPECT_DOUBLE_EQ(bmc.corrected, 440);
}

}  // namespace
}  // namespace ceems::exporter::redfish
