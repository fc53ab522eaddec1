#include "api/report/month.h"

#include <gtest/gtest.h>

#include "base/time/time_text.h"

namespace ceems::api {
namespace {

std::int64_t ms(const std::string& text) {
  return parse_localz(text).value_or(0);
}

bool has(const store::TimeRange& range, const std::string& day) {
  return ms(day) >= range.from_ms && ms(day) <= range.to_ms;
}

TEST(Month, HasTheMidnightsOfItsDaysAndNoOther) {
  // Started on the last day of October, ended in November, in a zone with summer time.
  const auto november = month_days("2026-10-31T23:00:00+0100", ms("2026-11-01T00:30:00+0100"));
  ASSERT_TRUE(november);
  EXPECT_FALSE(has(*november, "2026-10-31T00:00:00+0100"));
  EXPECT_TRUE(has(*november, "2026-11-01T00:00:00+0100"));
  EXPECT_TRUE(has(*november, "2026-11-30T00:00:00+0100"));
  EXPECT_FALSE(has(*november, "2026-12-01T00:00:00+0100"));
  const auto october = month_days("2026-10-05T12:00:00+0200", ms("2026-10-06T12:00:00+0200"));
  ASSERT_TRUE(october);
  EXPECT_TRUE(has(*october, "2026-10-01T00:00:00+0200"));
  EXPECT_TRUE(has(*october, "2026-10-31T00:00:00+0100"));  // after the change of the clock
  EXPECT_FALSE(has(*october, "2026-11-01T00:00:00+0100"));
  const auto february = month_days("2028-02-29T12:00:00-0800", ms("2028-02-29T23:59:59-0800"));
  ASSERT_TRUE(february);
  EXPECT_TRUE(has(*february, "2028-02-29T00:00:00-0800"));
  EXPECT_FALSE(has(*february, "2028-03-01T00:00:00-0800"));
}

TEST(Month, NeedsAZone) {
  for (const char* text : {"", "Unknown", "2026-10-05T12:00:00", "1767225600000"}) {
    EXPECT_FALSE(month_days(text, 0)) << text;
  }
}

}  // namespace
}  // namespace ceems::api
