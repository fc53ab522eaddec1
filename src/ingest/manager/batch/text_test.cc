#include "ingest/manager/batch/text.h"

#include <gtest/gtest.h>

#include "base/time/durations.h"

namespace ceems::ingest {
namespace {

constexpr std::int64_t kTextNow = 1'767'225'600'000;  // 2026-01-01T00:00:00Z

std::string printed(std::string_view text,
                    const char* zone = "UTC",
                    std::int64_t now_ms = kTextNow) {
  const auto ms = parse_ctime(text, TimeZone::find(zone).value(), now_ms);
  return ms ? TimeZone().local(*ms) : "-";
}

TEST(Ctime, IsReadWithAndWithoutItsParts) {
  EXPECT_EQ(printed("Wed Apr 14 23:34:19 2021"), "2021-04-14T23:34:19");
  EXPECT_EQ(printed("Mon Oct  8 17:07:54 2025"), "2025-10-08T17:07:54");
  EXPECT_EQ(printed("Apr 12 18:10:00 2025"), "2025-04-12T18:10:00");
  EXPECT_EQ(printed("Apr 12 22:27:01 2025 L"), "2025-04-12T22:27:01");
  EXPECT_EQ(printed("Dec 20 16:25"), "2025-12-20T16:25:00");
  EXPECT_EQ(printed("Dec 20 16:25 L"), "2025-12-20T16:25:00");
}

TEST(Ctime, WithoutAYearIsTheLastSuchTime) {
  EXPECT_EQ(printed("Dec 31 23:59:00"), "2025-12-31T23:59:00");
  EXPECT_EQ(printed("Jan  1 00:10:00"), "2026-01-01T00:10:00");  // a clock that is ahead
  EXPECT_EQ(printed("Jan  3 00:00:00"), "2025-01-03T00:00:00");
  EXPECT_EQ(printed("Feb 29 12:00:00"), "2024-02-29T12:00:00");
  EXPECT_EQ(printed("Dec 31 23:59:00", "UTC", kTextNow - kDayMs), "2025-12-31T23:59:00");
}

TEST(Ctime, IsInItsZoneAlsoWhenTheClockChanges) {
  EXPECT_EQ(printed("Jul  1 12:00:00 2025", "Europe/Paris"), "2025-07-01T10:00:00");
  // 02:30 occurs twice; the later moment counts, so that nothing is counted twice.
  EXPECT_EQ(printed("Oct 26 02:30:00 2025", "Europe/Paris"), "2025-10-26T01:30:00");
  EXPECT_EQ(printed("Mar 30 02:30:00 2025", "Europe/Paris"), "2025-03-30T01:00:00");
}

TEST(Ctime, IsNothingElse) {
  for (const char* const text :
       {"", "-", "Unknown", "2026-01-01T00:00:00", "Apr 31 10:00:00 2025", "Apr 32 10:00:00 2025",
        "Xyz 1 10:00:00 2025", "Apr 1 25:00:00 2025", "Apr 1 10 2025", "Apr 1 10:00:00:00 2025",
        "Apr 1 10:00:00 99999", "Apr 1 10:00:00 2025 Q", "Apr 1 10:00:00 2025 L more", "Wed",
        "Apr -1 10:00:00 2025"}) {
    EXPECT_EQ(printed(text), "-") << text;
  }
}

}  // namespace
}  // namespace ceems::ingest
