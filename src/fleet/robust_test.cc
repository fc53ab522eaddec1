#include "fleet/robust.h"

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace ceems::fleet {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

TEST(Robust, MedianOfNothingIsZero) {
  EXPECT_DOUBLE_EQ(median_of(std::vector<double>{5, 1, 2}), 2);
  EXPECT_DOUBLE_EQ(median_of({}), 0);
}

TEST(Robust, EqualPeersStillAllowTwoPercent) {
  const Statistics peers{.median = 100, .mad = 0};
  EXPECT_DOUBLE_EQ(modified_z(90, peers), -0.6745 * 10 / 2);
  EXPECT_DOUBLE_EQ(modified_z(90, {.median = 100, .mad = 4}), -0.6745 * 10 / 4);
  EXPECT_DOUBLE_EQ(modified_z(0, {}), 0);
  EXPECT_DOUBLE_EQ(modified_z(-1, {}), -kInfinite);
}

TEST(Robust, SignTestCountsBothTails) {
  EXPECT_DOUBLE_EQ(sign_test(0, 0), 1);
  EXPECT_DOUBLE_EQ(sign_test(5, 10), 1);
  EXPECT_NEAR(sign_test(10, 10), 2.0 / 1024, 1e-12);
  EXPECT_NEAR(sign_test(1, 10), 22.0 / 1024, 1e-12);
  EXPECT_NEAR(sign_test(9, 10), 22.0 / 1024, 1e-12);
}

}  // namespace
}  // namespace ceems::fleet
