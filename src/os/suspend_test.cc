#include "os/suspend.h"

#include <chrono>

#include <gtest/gtest.h>

namespace ceems::os {
namespace {

TEST(SuspendedTime, StandsStillWhileTheMachineRuns) {
  const auto before = suspended_time();
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
  auto least = std::chrono::nanoseconds::max();
  while (std::chrono::steady_clock::now() < until) {
    least = std::min(least, suspended_time());
  }
  EXPECT_GE(least.count(), 0);
  EXPECT_LT(least - before, std::chrono::milliseconds(20));
}

}  // namespace
}  // namespace ceems::os
