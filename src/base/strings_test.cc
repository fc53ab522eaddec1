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

TEST(Strings, QuotedIsOneWordOfAShell) {
  EXPECT_EQ(shell_quoted(""), "''");
  EXPECT_EQ(shell_quoted("a b;$(c)"), "'a b;$(c)'");
  EXPECT_EQ(shell_quoted("it's '"), R"('it'\''s '\''')");
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

TEST(Characters, AreThoseOfAscii) {
  EXPECT_TRUE(is_digit('0') && is_digit('9') && is_letter('a') && is_letter('Z'));
  EXPECT_TRUE(is_hex_digit('f') && is_hex_digit('9'));
  EXPECT_FALSE(is_hex_digit('F') || is_hex_digit('g'));
  for (const char other : {'/', ':', '@', '[', '`', '{', '_', '\0', '\xe4', '\xb2'}) {
    EXPECT_FALSE(is_word(other)) << other;
  }
  EXPECT_TRUE(is_word('_', "-_"));
}

TEST(HasOnlyWords, AllowsTheOthers) {
  EXPECT_TRUE(has_only_words("", ""));
  EXPECT_TRUE(has_only_words("Node-01_x", "_-"));
  EXPECT_FALSE(has_only_words("Node-01_x", "_"));
  EXPECT_FALSE(has_only_words("n\xc3\xb6", "_"));
}

TEST(IsNumber, HasDigitsOnlyAndNotTooMany) {
  EXPECT_TRUE(is_number("0") && is_number("0123456789012345678901234567890") && is_number("12", 2));
  for (const char* const text : {"", "-1", "+1", "1 ", "1.0", "0x1"}) {
    EXPECT_FALSE(is_number(text)) << text;
  }
  EXPECT_FALSE(is_number("123", 2));
}

TEST(Take, RemovesWhatIsThere) {
  std::string_view rest = "2026-07x";
  EXPECT_EQ(take_digits(rest, 4), 2026);
  EXPECT_TRUE(take(rest, '-'));
  EXPECT_FALSE(take(rest, '-'));
  EXPECT_EQ(take_digits(rest, 3), std::nullopt);
  EXPECT_EQ(take_digits(rest, 2), 7);
  EXPECT_EQ(rest, "x");
  EXPECT_EQ(take_digits(rest, 2), std::nullopt);
  EXPECT_TRUE(take(rest, 'x'));
  EXPECT_FALSE(take(rest, 'x'));
}

}  // namespace
}  // namespace ceems
