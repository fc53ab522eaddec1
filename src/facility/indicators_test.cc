#include "facility/indicators.h"

#include <gtest/gtest.h>

#include "base/time/durations.h"

namespace ceems::facility {
namespace {

constexpr std::int64_t kDays = 30;
constexpr HourSpan kMonth{.from_ms = 0, .to_ms = kDays * kDayMs};

Hours constant(double value, std::int64_t from_day = 0, std::int64_t to_day = kDays) {
  Hours hours;
  for (std::int64_t hour = from_day * kDayMs; hour < to_day * kDayMs; hour += kHourMs) {
    hours[hour] = value;
  }
  return hours;
}

TEST(Indicators, AreRatiosOfMeters) {
  const Hours it = constant(100);
  const Ratio pue = pue_of(constant(120), it, kMonth);
  EXPECT_DOUBLE_EQ(pue.value.value_or(0), 1.2);
  EXPECT_DOUBLE_EQ(pue.coverage, 1);
  EXPECT_DOUBLE_EQ(pue.numerator, 120.0 * 720);
  // 0.18 m³ for 100 kWh are 1.8 l/kWh.
  EXPECT_NEAR(wue_of(constant(0.18), it, kMonth).value.value_or(0), 1.8, 1e-12);
  EXPECT_DOUBLE_EQ(erf_of(constant(30), constant(120), kMonth).value.value_or(0), 0.25);
  EXPECT_DOUBLE_EQ(ref_of(constant(12), constant(120), kMonth).value.value_or(0), 0.1);
}

TEST(Indicators, AreOverTheHoursInWhichBothWereRead) {
  // The meter of the IT fails for a week in which twice as much is used.
  Hours total = constant(120);
  for (auto& [hour, value] : total) {
    value = hour >= 7 * kDayMs && hour < 14 * kDayMs ? 240 : value;
  }
  Hours it = constant(100, 0, 7);
  it.merge(constant(100, 14));
  const Ratio pue = pue_of(total, it, kMonth);
  EXPECT_DOUBLE_EQ(pue.value.value_or(0), 1.2);
  EXPECT_DOUBLE_EQ(pue.hours, 23.0 * 24);
  EXPECT_DOUBLE_EQ(pue.coverage, 23.0 / 30);
}

TEST(Indicators, AreRefusedWhereTheyWouldSayLittle) {
  const Ratio little = pue_of(constant(120), constant(100, 0, 22), kMonth);
  EXPECT_FALSE(little.value);
  EXPECT_EQ(little.missing, "both meters were read in 73.3 % of the hours, 75 % are needed");
  EXPECT_EQ(pue_of(constant(120), {}, kMonth).missing, "a meter is missing");
  EXPECT_EQ(pue_of(constant(120), constant(0), kMonth).missing,
            "the meter that is divided by counted nothing");
  const Ratio wrong = pue_of(constant(90), constant(100), kMonth);
  EXPECT_FALSE(wrong.value);
  EXPECT_EQ(wrong.missing, "the meter of the IT counted more than that of the whole data centre");
}

TEST(Indicators, CountNoHourOutsideThePeriod) {
  const Ratio ratio = ratio_of(constant(2, 0, 60), constant(1, 0, 60),
                               {.from_ms = 10 * kDayMs, .to_ms = 11 * kDayMs});
  EXPECT_DOUBLE_EQ(ratio.hours, 24);
  EXPECT_DOUBLE_EQ(ratio.numerator, 48);
}

}  // namespace
}  // namespace ceems::facility
