#include "config/duration.h"

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <utility>

#include <gtest/gtest.h>

namespace ceems::config {
namespace {

using std::chrono::days;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

std::string message(std::string_view text) {
  const auto duration = parse_duration(text);
  return duration ? "" : duration.error().message;
}

TEST(Duration, ReadsPrometheusSyntax) {
  EXPECT_EQ(parse_duration("1d12h").value(), hours(36));
  EXPECT_EQ(parse_duration("0").value(), milliseconds(0));
  EXPECT_EQ(parse_duration("0s").value(), milliseconds(0));
  EXPECT_EQ(parse_duration("1h30m15s500ms").value(), milliseconds(5'415'500));
  EXPECT_EQ(parse_duration("1y2w3d").value(), days(365 + 14 + 3));
  EXPECT_EQ(parse_duration("90m").value(), seconds(5400));
}

TEST(Duration, RefusesOtherTexts) {
  EXPECT_EQ(message(""), "empty duration string");
  EXPECT_EQ(message("3l"), "unknown unit \"l\" in duration \"3l\"");
  EXPECT_EQ(message("1h3l"), "unknown unit \"l\" in duration \"1h3l\"");
  EXPECT_EQ(message("1.5h"), "unknown unit \".\" in duration \"1.5h\"");
  for (const char* text :
       {"15", "1h15", "1m1h", "1h1h", "1ms1s", "-1s", "s", "h1", " 1s", "99999999999999999999s"}) {
    EXPECT_EQ(message(text), std::string("not a valid duration string: \"") + text + "\"");
  }
  EXPECT_EQ(parse_duration("1 s").error().code, ErrorCode::kInvalidArgument);
}

TEST(Duration, EndsWhereGoEnds) {
  EXPECT_EQ(parse_duration("9223372036854ms").value(), milliseconds(9'223'372'036'854));
  EXPECT_EQ(message("9223372036855ms"), "duration out of range");
  EXPECT_EQ(parse_duration("9223372036s854ms").value(), milliseconds(9'223'372'036'854));
  EXPECT_EQ(message("9223372036s855ms"), "duration out of range");
  EXPECT_EQ(message("300000000000y"), "duration out of range");
}

TEST(Duration, PrintsLikeGo) {
  EXPECT_EQ(go_duration(hours(1)), "1h0m0s");
  EXPECT_EQ(go_duration(hours(30)), "30h0m0s");
  EXPECT_EQ(go_duration(seconds(15)), "15s");
  EXPECT_EQ(go_duration(seconds(60)), "1m0s");
  EXPECT_EQ(go_duration(seconds(24'672)), "6h51m12s");
  EXPECT_EQ(go_duration(milliseconds(1)), "1ms");
  EXPECT_EQ(go_duration(milliseconds(999)), "999ms");
  EXPECT_EQ(go_duration(milliseconds(1'000)), "1s");
  EXPECT_EQ(go_duration(milliseconds(1'500)), "1.5s");
  EXPECT_EQ(go_duration(milliseconds(1'005)), "1.005s");
  EXPECT_EQ(go_duration(milliseconds(0)), "0s");
  EXPECT_EQ(go_duration(seconds(-90)), "-1m30s");
  EXPECT_EQ(go_duration(milliseconds(-500)), "-500ms");
  EXPECT_EQ(go_duration(milliseconds(std::numeric_limits<std::int64_t>::min())),
            "-2562047788015h12m55.808s");
}

TEST(Duration, PrintsWhatPrometheusReads) {
  EXPECT_EQ(prometheus_duration(seconds(60)), "1m0s");
  EXPECT_EQ(prometheus_duration(milliseconds(500)), "500ms");
  EXPECT_EQ(prometheus_duration(milliseconds(1'500)), "1500ms");
  EXPECT_EQ(prometheus_duration(milliseconds(61'001)), "61001ms");
}

TEST(Duration, OfAFlagMayBeThatOfGo) {
  for (const auto& [text, expected] :
       std::initializer_list<std::pair<const char*, long>>{{"1d12h", 129'600'000},
                                                           {"0", 0},
                                                           {"1.5h", 5'400'000},
                                                           {"1m0.5s", 60'500},
                                                           {".5s", 500},
                                                           {"1.s", 1'000},
                                                           {"1s1h", 3'601'000},
                                                           {"+2s", 2'000},
                                                           {"1500us", 1},
                                                           {"2\u00b5s", 0},
                                                           {"0.3s", 300}}) {
    const auto parsed = parse_flag_duration(text);
    ASSERT_TRUE(parsed) << text;
    EXPECT_EQ(parsed->count(), expected) << text;
  }
  for (const char* text : {"", "+", "-1s", "1.5", "1.5d", "1..5s", ".s", "s", "1e3s", "inf",
                           "1.5h ", "9e9h", "99999999999999999h"}) {
    EXPECT_FALSE(parse_flag_duration(text)) << text;
  }
}

}  // namespace
}  // namespace ceems::config
