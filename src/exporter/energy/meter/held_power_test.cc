#include "exporter/energy/meter/held_power.h"

#include <limits>
#include <thread>

#include <gtest/gtest.h>

namespace ceems::exporter::energy {
namespace {

Clock::SteadyTime at(double second) {
  return Clock::SteadyTime{std::chrono::duration_cast<Clock::SteadyTime::duration>(
      std::chrono::duration<double>(second))};
}

TEST(HeldPower, HoldsAPowerUntilTheNextOne) {
  HeldPower power;
  EXPECT_EQ(power.advance(at(1)), std::nullopt);
  power.set({.watts = 100, .time = at(1)});
  EXPECT_DOUBLE_EQ(power.advance(at(2)).value_or(-1), 0);
  EXPECT_DOUBLE_EQ(power.advance(at(4)).value_or(-1), 200);
  power.set({.watts = 300, .time = at(5)});
  EXPECT_DOUBLE_EQ(power.advance(at(6)).value_or(-1), 100 + 300);
}

TEST(HeldPower, SwitchesAtOnceWhereAReadingComesLate) {
  HeldPower power;
  power.set({.watts = 100, .time = at(1)});
  power.advance(at(2));
  power.advance(at(10));
  power.set({.watts = 50, .time = at(4)});  // measured six seconds ago, published now
  EXPECT_DOUBLE_EQ(power.advance(at(11)).value_or(-1), 50);
}

TEST(HeldPower, StopsWhenTheMeterIsSilentForLong) {
  HeldPower power;
  power.set({.watts = 100, .time = at(0)});
  power.advance(at(0));
  EXPECT_DOUBLE_EQ(power.advance(at(120)).value_or(-1), 12000);
  EXPECT_EQ(power.advance(at(121)), std::nullopt);
  power.set({.watts = 10, .time = at(200)});
  EXPECT_DOUBLE_EQ(power.advance(at(201)).value_or(-1), 0);  // the gap is not filled
  EXPECT_DOUBLE_EQ(power.advance(at(202)).value_or(-1), 10);
}

TEST(HeldPower, DropsInvalidReadings) {
  HeldPower power;
  power.set({.watts = -1, .time = at(0)});
  power.set({.watts = std::numeric_limits<double>::quiet_NaN(), .time = at(0)});
  EXPECT_EQ(power.advance(at(1)), std::nullopt);
}

TEST(PublishedPowerMeter, IntegratesWhatAnotherThreadPublishes) {
  PublishedPowerMeter meter({.name = "ipmi", .domain = Domain::kNode});
  EXPECT_FALSE(meter.read({.now = at(1), .utilisation = {}}));
  std::jthread([&meter] { meter.publish({.watts = 500, .time = at(1)}); }).join();
  ASSERT_TRUE(meter.read({.now = at(2), .utilisation = {}}));
  const auto reading = meter.read({.now = at(4), .utilisation = {}});
  ASSERT_TRUE(reading);
  EXPECT_DOUBLE_EQ(reading->joules, 1000);
  EXPECT_EQ(reading->fresh, at(1));
}

}  // namespace
}  // namespace ceems::exporter::energy
