#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "metrics/sink.h"

namespace ceems::metrics {
namespace {

std::string number(double value) {
  std::string text;
  append_number(text, value);
  return text;
}

TEST(AppendNumber, PrintsLikeTheReference) {
  EXPECT_EQ(number(732147), "732147");
  EXPECT_EQ(number(258218.293244), "258218.293244");
  EXPECT_EQ(number(999999), "999999");
  EXPECT_EQ(number(1e6), "1e+06");
  EXPECT_EQ(number(1036395), "1.036395e+06");
  EXPECT_EQ(number(16042172416.0), "1.6042172416e+10");
  EXPECT_EQ(number(0.0001), "0.0001");
  EXPECT_EQ(number(0.00001), "1e-05");
  EXPECT_EQ(number(18446744073709551615.0), "1.8446744073709552e+19");
}

TEST(AppendNumber, PrintsSpecialValues) {
  using Limits = std::numeric_limits<double>;
  EXPECT_EQ(number(Limits::quiet_NaN()), "NaN");
  EXPECT_EQ(number(Limits::infinity()), "+Inf");
  EXPECT_EQ(number(-Limits::infinity()), "-Inf");
  EXPECT_EQ(number(0), "0");
  EXPECT_EQ(number(-0.0), "-0");
  EXPECT_EQ(number(-12), "-12");
  EXPECT_EQ(number(-0.25), "-0.25");
  EXPECT_EQ(number(999999.5), "999999.5");
  EXPECT_EQ(number(0.000123), "0.000123");
  EXPECT_EQ(number(Limits::max()), "1.7976931348623157e+308");
  EXPECT_EQ(number(Limits::denorm_min()), "5e-324");
  EXPECT_EQ(number(1e100), "1e+100");
}

TEST(AppendNumber, RoundTrips) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> mantissa(-10, 10);
  std::uniform_int_distribution<int> exponent(-300, 300);
  for (int i = 0; i < 20000; ++i) {
    const double value =
        mantissa(random) * std::pow(10, i % 3 == 0 ? exponent(random) : i % 12 - 6);
    ASSERT_EQ(std::strtod(number(value).c_str(), nullptr), value);
  }
}

}  // namespace
}  // namespace ceems::metrics
