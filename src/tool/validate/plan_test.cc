#include "tool/validate/plan.h"

#include <gtest/gtest.h>

namespace ceems::tool::validate {
namespace {

TEST(PlanLoads, RunsAloneWhatRunsTogether) {
  const auto plan = plan_loads({{0, 4}, {1, 5}, {2, 6}, {3, 7}});
  ASSERT_EQ(plan.size(), 8U);
  EXPECT_EQ(plan[0], (Loads{{LoadClass::kScalar, {0}}}));
  EXPECT_EQ(plan[1], (Loads{{LoadClass::kCompute, {0, 4}}}));
  EXPECT_EQ(plan[2], (Loads{{LoadClass::kCompute, {0, 4, 1, 5, 2, 6, 3, 7}}}));
  EXPECT_EQ(plan[6], (Loads{{LoadClass::kMemory, {1, 5}}}));
  EXPECT_EQ(plan[7], (Loads{{LoadClass::kCompute, {0, 4}}, {LoadClass::kMemory, {1, 5}}}));
}

TEST(PlanLoads, WorksOnOneCore) {
  const auto plan = plan_loads({{0}});
  ASSERT_EQ(plan.size(), 3U);
  for (const Loads& loads : plan) {
    EXPECT_EQ(loads.size(), 1U);
    EXPECT_EQ(loads.front().cpus, (std::vector<int>{0}));
  }
}

TEST(Divide, FillsTheDuration) {
  const Times times = divide(1200, 9, -1).value();
  EXPECT_NEAR(times.total(9), 1200, 1e-6);
  EXPECT_NEAR(times.settle_seconds, times.load_seconds / 5, 1e-9);
  EXPECT_NEAR(times.load_seconds, 67, 1);
  const Times slow = divide(3600, 9, 60).value();
  EXPECT_NEAR(slow.total(9), 3600, 1e-6);
  EXPECT_DOUBLE_EQ(slow.settle_seconds, 60);
}

TEST(Divide, NamesTheShortestDuration) {
  EXPECT_EQ(divide(30, 9, -1).error().message,
            "9 loads need 107 s or more with this time to settle");
  EXPECT_TRUE(divide(108, 9, -1));
  EXPECT_EQ(divide(600, 9, 60).error().message,
            "9 loads need 1224 s or more with this time to settle");
  EXPECT_TRUE(divide(1225, 9, 60));
}

}  // namespace
}  // namespace ceems::tool::validate
