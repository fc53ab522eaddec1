#include "exporter/energy/account/window.h"

#include <gtest/gtest.h>

namespace ceems::exporter::energy {
namespace {

using Next = Window::Next;

TEST(Window, EndsAfterItsTime) {
  Window window(10);
  EXPECT_EQ(window.add(9.9, {}), Next::kSame);
  EXPECT_EQ(window.add(0.1, {}), Next::kNew);
  EXPECT_DOUBLE_EQ(window.seconds(), 10);
  window.restart();
  EXPECT_EQ(window.seconds(), 0);
  EXPECT_EQ(window.add(1, {}), Next::kSame);
}

TEST(Window, GoesOnUntilTheCountersAreInTime) {
  Window window(2);
  EXPECT_EQ(window.add(1, {.slip = 0.5}), Next::kSame);
  EXPECT_EQ(window.add(1, {.slip = 0.1}), Next::kSame);
  EXPECT_EQ(window.add(1, {.slip = -0.59}), Next::kNew);  // 1 % of three seconds are 0.03
  EXPECT_DOUBLE_EQ(window.seconds(), 3);
}

TEST(Window, DoesNotEndWhereEnergyMayHaveBeenReadLate) {
  Window window(2);
  EXPECT_EQ(window.add(2, {.late = 0.1}), Next::kSame);
  EXPECT_EQ(window.add(2, {.late = 0.02}), Next::kNew);
}

TEST(Window, DoesNotEndWhereCpuTimesMayHaveBeenReadEarly) {
  Window window(2);
  EXPECT_EQ(window.add(2, {.late = 0.01, .early = 0.1}), Next::kSame);
  EXPECT_EQ(window.add(2, {.late = 0.01, .early = 0.02}), Next::kNew);
  window.restart();
  EXPECT_EQ(window.add(2, {.late = 0.02, .early = 0.01}), Next::kNew);  // as far apart as before
}

TEST(Window, EndsWhereEnergyIsAlwaysReadLate) {
  Window window(2);
  for (int i = 0; i < 11; ++i) {
    ASSERT_EQ(window.add(1, {.late = 0.3}), Next::kSame) << i;
  }
  EXPECT_EQ(window.add(1, {.late = 0.3}), Next::kGivenUp);
  window.restart();
  EXPECT_EQ(window.add(2, {.late = 0.31}), Next::kNew);
  window.restart();
  EXPECT_EQ(window.add(2, {.late = 0}), Next::kSame);
}

TEST(Window, IsGivenUpWhereNothingIsInTime) {
  Window window(2);
  for (int i = 0; i < 11; ++i) {
    ASSERT_EQ(window.add(1, {.slip = 0.3}), Next::kSame) << i;
  }
  EXPECT_EQ(window.add(1, {.slip = 0.3}), Next::kGivenUp);
  window.restart();
  EXPECT_EQ(window.add(2, {}), Next::kNew);
}

TEST(Window, EndsWhereCpuTimesAlwaysRunSlowly) {
  Window window(2);
  const auto give_up = [&window](double slip) {
    for (int i = 0; i < 11; ++i) {
      ASSERT_EQ(window.add(1, {.slip = slip}), Next::kSame) << i;
    }
    EXPECT_EQ(window.add(1, {.slip = slip}), Next::kGivenUp);
    window.restart();
  };
  give_up(-0.1);
  EXPECT_EQ(window.add(2, {.slip = -0.2}), Next::kSame);  // once may be chance
  EXPECT_EQ(window.add(2, {.slip = 0.2}), Next::kNew);
  window.restart();
  give_up(-0.11);
  EXPECT_EQ(window.add(2, {.slip = -0.22}), Next::kNew);
  window.restart();
  EXPECT_EQ(window.add(2, {.slip = -0.3}), Next::kSame);  // more than usual
  window.restart();
  give_up(0);  // that has passed
  EXPECT_EQ(window.add(2, {}), Next::kNew);
}

}  // namespace
}  // namespace ceems::exporter::energy
