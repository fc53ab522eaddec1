#include "api/request/months.h"

#include <gtest/gtest.h>

namespace ceems::api {
namespace {

TEST(Months, BeginAndEndAtLocalMidnight) {
  const TimeZone paris = TimeZone::find("Europe/Paris").value();
  const auto month = month_named("2026-03", paris);
  ASSERT_TRUE(month);
  EXPECT_EQ(paris.local(month->from_ms), "2026-03-01T00:00:00");
  EXPECT_EQ(paris.local(month->to_ms), "2026-04-01T00:00:00");
  EXPECT_EQ(month->to_ms - month->from_ms, (31 * 24 - 1) * 3'600'000LL) << "summer time begins";
  const Month december = month_named("2026-12", paris).value();
  EXPECT_EQ(paris.local(december.to_ms), "2027-01-01T00:00:00");
  EXPECT_EQ(month_before(month_named("2026-01", paris).value(), paris).name, "2025-12");
  EXPECT_EQ(month_at(december.to_ms, paris).name, "2027-01");
  EXPECT_EQ(month_at(december.to_ms - 1, paris).name, "2026-12");
  EXPECT_EQ(month_at(december.to_ms - 1, TimeZone()).name, "2026-12");
}

TEST(Months, RefuseWhatIsNone) {
  for (const char* bad : {"", "2026", "2026-1", "2026-00", "2026-13", "1970-01", "9999-01",
                          "2026/01", "+026-01", "2026-+1", "2026-01-01", "2026- 1"}) {
    const auto month = month_named(bad, TimeZone());
    ASSERT_FALSE(month) << bad;
    EXPECT_EQ(month.error().message, "query parameter 'month': expected a month such as 2026-11");
  }
}

}  // namespace
}  // namespace ceems::api
