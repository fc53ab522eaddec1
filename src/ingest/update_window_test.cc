#include "ingest/update_window.h"

#include <chrono>
#include <string_view>

#include <gtest/gtest.h>

namespace ceems::ingest {
namespace {

using std::chrono::milliseconds;

constexpr std::int64_t kNewYear = 1'767'225'600'000;  // 2026-01-01T00:00:00Z

TEST(ParseUpdateFrom, ReadsDaysAndTimesInTheZone) {
  const Clock::SystemTime now{milliseconds(kNewYear + 5 * 3'600'000)};
  const auto from = [now](std::string_view text, std::string_view zone) {
    return parse_update_from(text, zone, now);
  };
  EXPECT_EQ(from("", "UTC"), kNewYear);
  EXPECT_EQ(from("today", "Europe/Paris"), kNewYear - 3'600'000);
  EXPECT_EQ(from("2026-01-01T01:00", "Europe/Paris"), kNewYear);
  EXPECT_EQ(from("2026-01-01T00:00:01", "UTC"), kNewYear + 1000);
  EXPECT_EQ(from("soon", "UTC").error().message, "failed to parse time string: soon");
  EXPECT_EQ(from("", "Mars/Olympus").error().message, "unknown time zone Mars/Olympus");
}

}  // namespace
}  // namespace ceems::ingest
