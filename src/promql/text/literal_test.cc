#include "promql/text/literal.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "base/utf8.h"

namespace ceems::promql {
namespace {

TEST(PromqlNumber, ReadsEveryForm) {
  EXPECT_EQ(parse_number("1"), 1);
  EXPECT_EQ(parse_number(".5"), 0.5);
  EXPECT_EQ(parse_number("5."), 5);
  EXPECT_EQ(parse_number("1e3"), 1000);
  EXPECT_EQ(parse_number("1E-3"), 0.001);
  EXPECT_EQ(parse_number("0x8f"), 143);
  EXPECT_EQ(parse_number("0X8F"), 143);
  EXPECT_EQ(parse_number("010"), 8);
  EXPECT_EQ(parse_number("00"), 0);
  EXPECT_EQ(parse_number("0.5"), 0.5);
  EXPECT_EQ(parse_number("0e1"), 0);
  EXPECT_EQ(parse_number("1_000"), 1000);
  EXPECT_EQ(parse_number("iNf"), std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(parse_number("NAN").value_or(0)));
}

TEST(PromqlNumber, RefusesWhatIsNone) {
  for (const char* text :
       {"",   "-1", "+1",    "1e", "0x", "1__0", "_1",   "1_",    "1.2.3", "infinity", "5m",
        "e5", " 1", "1e999", "08", "09", "00.5", "01.5", "010e1", "0_8",   "018"}) {
    EXPECT_EQ(parse_number(text), std::nullopt) << text;
  }
}

TEST(PromqlNumber, PrintsWhatItReads) {
  for (const double value : {0.0, 1.0, 0.1, 1e-9, 1e300, 123456789.125, 8.0, 1e21}) {
    std::string text;
    append_number(text, value);
    EXPECT_EQ(parse_number(text), value) << text;
  }
  std::string text;
  append_number(text, -std::numeric_limits<double>::infinity());
  EXPECT_EQ(text, "-Inf");
}

TEST(PromqlDuration, UnitsFallAndStandOnce) {
  EXPECT_EQ(parse_duration_ms("5m"), 300'000);
  EXPECT_EQ(parse_duration_ms("1h30m"), 5'400'000);
  EXPECT_EQ(parse_duration_ms("1y2w3d4h5m6s7ms"),
            ((((365LL + 14 + 3) * 24 + 4) * 60 + 5) * 60 + 6) * 1000 + 7);
  for (const char* text : {"", "5", "m", "5m1h", "5m5m", "1.5h", "-5m", "5 m", "5M", "5mx",
                           "99999999999999y", "300y"}) {
    EXPECT_EQ(parse_duration_ms(text), std::nullopt) << text;
  }
}

TEST(PromqlDuration, PrintsWhatItReads) {
  for (const std::int64_t value : {0LL, 1LL, 999LL, 60'000LL, 90'061'001LL, 31'536'000'000LL}) {
    std::string text;
    append_duration(text, value);
    EXPECT_EQ(parse_duration_ms(text), value) << text;
  }
  EXPECT_EQ(duration_ms_of_seconds(0.5), 500);
  EXPECT_EQ(duration_ms_of_seconds(0.0001), std::nullopt);
  EXPECT_EQ(duration_ms_of_seconds(std::nan("")), std::nullopt);
}

TEST(PromqlString, EscapesAreThoseOfGo) {
  EXPECT_EQ(unquote(R"("a\x6f\u006f\157\n\"")"), "aooo\n\"");
  EXPECT_EQ(unquote(R"('it\'s "x"')"), "it's \"x\"");
  EXPECT_EQ(unquote(R"(`a\n"b'`)"), "a\\n\"b'");
  EXPECT_EQ(unquote(R"("\U0001F600")"), "\xF0\x9F\x98\x80");
  EXPECT_EQ(unquote(R"("\xff")"), "\xff");
}

TEST(PromqlString, RefusesWhatGoRefuses) {
  for (const char* text : {R"("\q")", R"("\'")", R"('\"')", R"("\x6")", R"("\ud800")", R"("\400")",
                           R"("\U00110000")", "\"a", "a\"", "\"a\nb\"", R"("\")", "\"", ""}) {
    EXPECT_EQ(unquote(text), std::nullopt) << text;
  }
}

TEST(PromqlString, AnyBytesSurvivePrinting) {
  std::string every;
  for (int byte = 0; byte < 256; ++byte) {
    every += static_cast<char>(byte);
  }
  every += "\u00e9\u20ac\U0001F600\uFFFD";
  std::string quoted;
  append_quoted(quoted, every);
  EXPECT_TRUE(is_utf8(quoted));
  EXPECT_EQ(unquote(quoted), every);
}

}  // namespace
}  // namespace ceems::promql
