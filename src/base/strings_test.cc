#include "base/strings.h"

#include <gtest/gtest.h>

namespace ceems {
namespace {

TEST(Strings, SplitKeepsEmptyParts) {
  EXPECT_EQ(split("a||b", '|'), (std::vector<std::string_view>{"a", "", "b"}));
  EXPECT_EQ(split("", '|'), (std::vector<std::string_view>{""}));
}

TEST(Strings, TakeUntilWalksTheText) {
  std::string_view rest = "a=1,b";
  EXPECT_EQ(take_until(rest, ','), "a=1");
  EXPECT_EQ(take_until(rest, ','), "b");
  EXPECT_TRUE(rest.empty());
}

TEST(Strings, TakeWordSkipsRunsOfBlanks) {
  std::string_view rest = "  cpu0\t12 \n";
  EXPECT_EQ(take_word(rest), "cpu0");
  EXPECT_EQ(take_word(rest), "12");
  EXPECT_EQ(take_word(rest), "");
}

TEST(Strings, NumbersMustFillTheWholeText) {
  EXPECT_EQ(parse_int("18446744073709551615"), 18446744073709551615U);
  EXPECT_EQ(parse_int("18446744073709551616"), std::nullopt);
  EXPECT_EQ(parse_int("1 "), std::nullopt);
  EXPECT_EQ(parse_int("-1"), std::nullopt);
  EXPECT_EQ(parse_int<int>("-1"), -1);
  EXPECT_EQ(parse_double("1.5e3"), 1500.0);
  EXPECT_EQ(parse_double("1.5x"), std::nullopt);
}

TEST(Strings, PrintableShowsHostileBytes) {
  EXPECT_EQ(printable("a\nb\x01\xff"), "a\\x0ab\\x01\\xff");
  EXPECT_EQ(printable("h\xc3\xa9"), "h\xc3\xa9");
  EXPECT_EQ(printable("abcdef", 3), "abc...");
}

TEST(Strings, OnlyTheCaseOfAsciiLettersIsIgnored) {
  EXPECT_EQ(to_lower("AZaz[@\xc3\x89"), "azaz[@\xc3\x89");
  EXPECT_TRUE(same_in_any_case("X-Grafana-User", "x-grafana-uSER"));
  EXPECT_TRUE(same_in_any_case("", ""));
  EXPECT_FALSE(same_in_any_case("ab", "abc"));
  EXPECT_FALSE(same_in_any_case("@", "`"));
  EXPECT_FALSE(same_in_any_case("[", "{"));
  EXPECT_FALSE(same_in_any_case("\xc3\x89", "\xc3\xa9"));
}

}  // namespace
}  // namespace ceems
