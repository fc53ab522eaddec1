#include "os/suspend.h"

#include <chrono>
#include <thread>

#include <gtest/gtest.h>

#include "testing/eventually.h"

namespace ceems::os {
namespace {

TEST(SuspendedTime, StandsStillWhileTheMachineRuns) {
  const auto before = suspended_time();
  EXPECT_GE(before.count(), 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  // Two clocks are read one after the other, and a busy machine may do something else in between.
  EXPECT_TRUE(testing::eventually(
      [&] { return suspended_time() - before < std::chrono::milliseconds(20); }));
}

}  // namespace
}  // namespace ceems::os
