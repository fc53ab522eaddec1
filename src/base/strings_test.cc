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

TEST(Strings, NumbersAreWholeTexts) {
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

TEST(Strings, Utf8RefusesOverlongFormsAndSurrogates) {
  EXPECT_TRUE(is_utf8("gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80"));
  EXPECT_FALSE(is_utf8("\xc0\xaf"));
  EXPECT_FALSE(is_utf8("\xed\xa0\x80"));
  EXPECT_FALSE(is_utf8("\xf4\x90\x80\x80"));
}

}  // namespace
}  // namespace ceems
