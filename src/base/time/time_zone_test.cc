#include "base/time/time_zone.h"

#include <gtest/gtest.h>

namespace ceems {
namespace {

constexpr std::int64_t kHour = 3600'000;
constexpr std::int64_t kSpring = 1'774'746'000'000;  // 2026-03-29T01:00:00Z: Paris springs forward
constexpr std::int64_t kAutumn = 1'792'890'000'000;  // 2026-10-25T01:00:00Z: Paris falls back

TEST(TimeZone, PrintsWallClocks) {
  const auto paris = TimeZone::find("Europe/Paris").value();
  EXPECT_EQ(paris.local(1'933'128'428'000), "2031-04-05T06:07:08");
  EXPECT_EQ(paris.local_with_offset(1'933'128'428'999), "2031-04-05T06:07:08+0200");
  EXPECT_EQ(TimeZone().local_with_offset(0), "1970-01-01T00:00:00+0000");
  EXPECT_EQ(TimeZone::find("America/New_York")->local_with_offset(0), "1969-12-31T19:00:00-0500");
  EXPECT_EQ(TimeZone::find("Asia/Kolkata")->local_with_offset(-1), "1970-01-01T05:29:59+0530");
}

TEST(TimeZone, UnknownNamesAreRefused) {
  EXPECT_EQ(TimeZone::find("Mars/Base").error().message, "unknown time zone Mars/Base");
  EXPECT_FALSE(TimeZone::find("../../etc/passwd"));
  EXPECT_FALSE(TimeZone::find(std::string("a\0b", 3)));
  EXPECT_TRUE(TimeZone::find("Local"));
}

TEST(TimeZone, ReadsBackWhatItPrints) {
  for (const char* name : {"UTC", "Europe/Paris", "America/New_York", "Asia/Kolkata"}) {
    const auto zone = TimeZone::find(name).value();
    for (std::int64_t ms = kSpring - 30 * kHour; ms < kSpring + 30 * kHour; ms += kHour / 2) {
      EXPECT_EQ(zone.parse_local(zone.local(ms)), ms) << name;
    }
  }
}

TEST(TimeZone, ATimeThatOccursTwiceIsTheLaterMoment) {
  const auto paris = TimeZone::find("Europe/Paris").value();
  EXPECT_EQ(paris.local(kAutumn - kHour / 2), "2026-10-25T02:30:00");
  EXPECT_EQ(paris.local(kAutumn + kHour / 2), "2026-10-25T02:30:00");
  EXPECT_EQ(paris.parse_local("2026-10-25T02:30:00"), kAutumn + kHour / 2);
  EXPECT_EQ(paris.parse_local("2026-03-29T02:30:00"), kSpring);  // this time was skipped
}

TEST(TimeZone, RefusesOtherTexts) {
  const TimeZone utc;
  for (const char* text :
       {"", "2026-01-01", "2026-01-01T00:00:00+0100", "2026-13-01T00:00:00", "2026-02-30T00:00:00",
        "2026-01-01T24:00:00", "2026-01-01 00:00:00", "20a6-01-01T00:00:00"}) {
    EXPECT_FALSE(utc.parse_local(text)) << text;
  }
}

TEST(TimeZone, DaysBeginAtLocalMidnight) {
  const auto new_york = TimeZone::find("America/New_York").value();
  const std::int64_t evening = new_york.parse_local("2026-11-20T22:00:00").value();
  EXPECT_EQ(new_york.day(evening), "2026-11-20T00:00:00");
  EXPECT_EQ(new_york.day_start(evening), evening - 22 * kHour);
  const auto paris = TimeZone::find("Europe/Paris").value();
  // The day of the change has 23 hours.
  EXPECT_EQ(paris.day_start(kSpring + 20 * kHour), kSpring - 2 * kHour);
  EXPECT_EQ(paris.day(kSpring + 20 * kHour), "2026-03-29T00:00:00");
  // Midnight was skipped there.
  const auto beirut = TimeZone::find("Asia/Beirut").value();
  const std::int64_t noon = beirut.parse_local("2026-03-29T12:00:00").value();
  EXPECT_EQ(beirut.day(noon), "2026-03-29T00:00:00");
  EXPECT_EQ(beirut.local(beirut.day_start(noon)), "2026-03-29T01:00:00");
}

}  // namespace
}  // namespace ceems
