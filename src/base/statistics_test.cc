#include "base/statistics.h"

#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace ceems {
namespace {

TEST(Statistics, AreThoseOfTheBook) {
  const std::vector<double> values{5, 1, 4, 2, 3};
  const auto odd = statistics_of(values);
  ASSERT_TRUE(odd);
  EXPECT_EQ(odd->n, 5U);
  EXPECT_DOUBLE_EQ(odd->median, 3);
  EXPECT_DOUBLE_EQ(odd->mad, 1);
  EXPECT_DOUBLE_EQ(odd->p95, 5);
  EXPECT_DOUBLE_EQ(odd->max, 5);
  EXPECT_DOUBLE_EQ(odd->min, 1);
  const std::vector<double> even{1, 2, 3, 100};
  EXPECT_DOUBLE_EQ(statistics_of(even)->median, 2.5);
  EXPECT_DOUBLE_EQ(statistics_of(even)->mad, 1);
  std::vector<double> twenty;
  for (int i = 1; i <= 20; ++i) {
    twenty.push_back(i);
  }
  EXPECT_DOUBLE_EQ(statistics_of(twenty)->p95, 19);
}

TEST(Statistics, OfNothingAreNothing) {
  EXPECT_FALSE(statistics_of({}));
  const std::vector<double> odd{std::numeric_limits<double>::quiet_NaN()};
  EXPECT_FALSE(statistics_of(odd));
}

}  // namespace
}  // namespace ceems
