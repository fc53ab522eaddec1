#include "cacct/time_words.h"

#include <cstdlib>
#include <ctime>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ceems::cacct {
namespace {

using ::testing::StartsWith;

/// Tests in the zone of Paris, at 2026-03-10 15:30:20 there (UTC+1).
class TimeWords : public ::testing::Test {
 protected:
  TimeWords() { set_zone("Europe/Paris"); }
  ~TimeWords() override { set_zone("UTC"); }
  TimeWords(const TimeWords&) = delete;
  TimeWords& operator=(const TimeWords&) = delete;

  static void set_zone(const char* zone) {
    ::setenv("TZ", zone, 1);
    ::tzset();
  }
  static std::int64_t at(std::string_view text) { return parse_time(text, kNow).value_or(-1); }

  static constexpr std::int64_t kNow = 1773153020;
  static constexpr std::int64_t kMidnight = 1773097200;
};

TEST_F(TimeWords, ReadTheFormsOfTheReferenceInTheLocalZone) {
  EXPECT_EQ(at("2022-02-20"), 1645311600);
  EXPECT_EQ(at("2022-02-20T10:11"), 1645311600 + 10 * 3600 + 11 * 60);
  EXPECT_EQ(at("2022-02-20T10:11:12"), 1645311600 + 10 * 3600 + 11 * 60 + 12);
  EXPECT_EQ(at(" 2022-02-20 10:11 "), at("2022-02-20T10:11"));
  set_zone("UTC");
  EXPECT_EQ(at("2022-02-20"), 1645315200);
}

TEST_F(TimeWords, ReadTheFormsOfSacct) {
  EXPECT_EQ(day_start(kNow), kMidnight);
  EXPECT_EQ(at("today"), kMidnight);
  EXPECT_EQ(at("midnight"), kMidnight);
  EXPECT_EQ(at("Yesterday"), kMidnight - 86400);
  EXPECT_EQ(at("tomorrow"), kMidnight + 86400);
  EXPECT_EQ(at("noon"), kMidnight + 12 * 3600);
  EXPECT_EQ(at("teatime"), kMidnight + 16 * 3600);
  EXPECT_EQ(at("now"), kNow);
  EXPECT_EQ(at("now-90"), kNow - 90);
  EXPECT_EQ(at("now-2hours"), kNow - 7200);
  EXPECT_EQ(at("now+1minute"), kNow + 60);
  EXPECT_EQ(at("now-3days"), kNow - 3 * 86400);
  EXPECT_EQ(at("now-1week"), kNow - 7 * 86400);
  EXPECT_EQ(at("08:15"), kMidnight + 8 * 3600 + 15 * 60);
  EXPECT_EQ(at("08:15:30"), kMidnight + 8 * 3600 + 15 * 60 + 30);
  EXPECT_EQ(at("0310"), kMidnight);
  EXPECT_EQ(at("03/10"), kMidnight);
  EXPECT_EQ(at("03.10.26"), kMidnight);
  EXPECT_EQ(at("022022-10:11"), at("2022-02-20T10:11"));
  EXPECT_EQ(at("02/20/22-10:11:12"), at("2022-02-20T10:11:12"));
}

TEST_F(TimeWords, FollowSummerTime) {
  // On 2026-03-29 the clocks go from 02:00 to 03:00, on 2026-10-25 from 03:00 to 02:00.
  EXPECT_EQ(at("2026-03-29T03:00") - at("2026-03-29T01:59"), 60);
  EXPECT_EQ(at("2026-03-30") - at("2026-03-29"), 23 * 3600);
  EXPECT_EQ(at("2026-10-26") - at("2026-10-25"), 25 * 3600);
  const std::int64_t monday = at("2026-03-30T00:30");
  EXPECT_EQ(parse_time("yesterday", monday).value_or(-1), at("2026-03-29"));
  EXPECT_EQ(parse_time("tomorrow", at("2026-10-25T00:10")).value_or(-1), at("2026-10-26"));
}

TEST_F(TimeWords, RefuseAnythingElse) {
  for (const char* text : {"",
                           "x",
                           "2022",
                           "2022-2-20",
                           "2022-02-30",
                           "2022-13-01",
                           "2022-00-01",
                           "2022-02-20T",
                           "2022-02-20T25:00",
                           "2022-02-20T10",
                           "2022-02-20T10:60",
                           "2022-02-20T10:11:12.5",
                           "2022-02-20T10:11Z",
                           "now-",
                           "now2hours",
                           "now-2fortnights",
                           "now-99999999999",
                           "24:00",
                           "0230",
                           "02/30",
                           "02/20.22",
                           "1969-12-31",
                           "99999-01-01",
                           "\x1b[2J"}) {
    const auto parsed = parse_time(text, kNow);
    ASSERT_FALSE(parsed) << text;
    EXPECT_THAT(parsed.error().message, StartsWith("invalid time format '")) << text;
  }
}

}  // namespace
}  // namespace ceems::cacct
