#include "facility/meters.h"

#include <string>

#include <gtest/gtest.h>

#include "base/time/durations.h"

namespace ceems::facility {
namespace {

constexpr std::int64_t kStart = 1'767'225'600'000;  // 2026-01-01T00:00:00Z

std::string line_error(const std::string& lines, std::int64_t every_ms = kHourMs) {
  const auto hours = parse_meter_file("time,value\n" + lines, "m.csv", every_ms, TimeZone());
  return hours ? "" : hours.error().message;
}

TEST(Meters, HasHoursAndLeavesGapsOut) {
  const auto hours = parse_meter_file(
      "\xEF\xBB\xBFtime,value\r\n2026-01-01T00:00,10.5\r\n\r\n2026-01-01T03:00:00Z,0\r\n"
      "2026-01-01T05:00:00+01:00,7\n",
      "m.csv", kHourMs, TimeZone());
  ASSERT_TRUE(hours) << hours.error().message;
  EXPECT_EQ(*hours, (Hours{{kStart, 10.5}, {kStart + 3 * kHourMs, 0}, {kStart + 4 * kHourMs, 7}}));
}

TEST(Meters, AnHourNeedsAllItsParts) {
  const auto hours = parse_meter_file(
      "time,value\n2026-01-01T00:00,1\n2026-01-01T00:30,2\n2026-01-01T01:00,4\n"
      "2026-01-01T02:30,8\n2026-01-01T03:00,16\n2026-01-01T03:30,32\n",
      "m.csv", 30 * kMinuteMs, TimeZone());
  ASSERT_TRUE(hours) << hours.error().message;
  EXPECT_EQ(*hours, (Hours{{kStart, 3}, {kStart + 3 * kHourMs, 48}}));
}

TEST(Meters, DaysAreDividedBetweenTheirHours) {
  const auto zone = TimeZone::find("Europe/Paris");
  ASSERT_TRUE(zone);
  // The clock is set forward on that day, which has 23 hours.
  const auto hours =
      parse_meter_file("time,value\n2026-03-29,230\n2026-03-30,48\n", "m.csv", kDayMs, *zone);
  ASSERT_TRUE(hours) << hours.error().message;
  ASSERT_EQ(hours->size(), 23U + 24U);
  EXPECT_DOUBLE_EQ(hours->begin()->second, 10);
  EXPECT_DOUBLE_EQ(hours->rbegin()->second, 2);
}

TEST(Meters, DaysOfZonesWithHalfAnHourHaveWholeHours) {
  const auto zone = TimeZone::find("Asia/Kolkata");
  ASSERT_TRUE(zone);
  const auto hours =
      parse_meter_file("time,value\n2026-01-01,24\n2026-01-02,48\n", "m.csv", kDayMs, *zone);
  ASSERT_TRUE(hours) << hours.error().message;
  ASSERT_EQ(hours->size(), 48U);
  EXPECT_EQ(hours->begin()->first, kStart - 5 * kHourMs);  // midnight is 18:30 in UTC
  EXPECT_DOUBLE_EQ(hours->begin()->second, 1);
  EXPECT_DOUBLE_EQ(hours->rbegin()->second, 2);
}

TEST(Meters, RefusesWhatNoMeterSays) {
  const std::string first = "2026-01-01T05:00,1\n";
  const std::string order =
      "m.csv:3: expected a time after that of the line before: where clocks are set back, write "
      "times with their offset";
  EXPECT_EQ(line_error(first + "2026-01-01T04:00,1\n"), order);
  EXPECT_EQ(line_error(first + first), order);
  EXPECT_EQ(line_error(first + "2026-01-01T05:30,1\n"),
            "m.csv:3: expected a time at the beginning of an interval");
  for (const char* value : {"nan", "inf", "-1", "", "1e10", "12 kWh", "0x1p3"}) {
    EXPECT_EQ(line_error(first + "2026-01-01T06:00," + value),
              "m.csv:3: expected a value from 0 to 1e9, without unit")
        << value;
  }
  EXPECT_EQ(line_error("yesterday,1\n"),
            "m.csv:2: expected a time such as 2026-11-01T06:00 or 2026-11-01T06:00:00+01:00");
  EXPECT_EQ(line_error("2026-01-01T05:00,1,2\n"),
            "m.csv:2: expected a time and a value, got 3 cells");
  EXPECT_EQ(line_error("2026-01-01T05:00,1\n", kDayMs),
            "m.csv:2: expected a day, which begins at midnight");
  const auto empty = parse_meter_file("", "m.csv", kHourMs, TimeZone());
  EXPECT_FALSE(empty);
  const auto headless = parse_meter_file("2026-01-01,1\n", "m.csv", kHourMs, TimeZone());
  ASSERT_FALSE(headless);
  EXPECT_EQ(headless.error().message, "m.csv:1: expected the line 'time,value'");
}

TEST(Meters, TwoMetersHaveTheHoursOfBoth) {
  EXPECT_EQ(sum_of({{1, 2}, {2, 3}}, {{2, 4}, {3, 5}}), (Hours{{2, 7}}));
}

}  // namespace
}  // namespace ceems::facility
