#include "promql/matcher/matcher.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <re2/re2.h>

namespace ceems::promql {
namespace {

using Words = std::vector<std::string>;

TEST(FiniteLanguage, SpellsOutSmallPatterns) {
  const std::vector<std::pair<std::string, Words>> cases = {
      {"123|456", {"123", "456"}},
      {"^own$", {"own"}},
      {"(own1|own2)", {"own1", "own2"}},
      {"own(1|2)", {"own1", "own2"}},
      {"own[12]", {"own1", "own2"}},
      {"own[1-3]", {"own1", "own2", "own3"}},
      {"(?:own)", {"own"}},
      {"(?P<id>own)", {"own"}},
      {R"(a\.b)", {"a.b"}},
      {"a|", {"", "a"}},
      {"", {""}},
      {"ab?", {"a", "ab"}},
      {"a{2}", {"aa"}},
      {"a{1,3}", {"a", "aa", "aaa"}},
      {"(a|b){2}", {"aa", "ab", "ba", "bb"}},
      {"[a]|b", {"a", "b"}},
      {"[]a]", {"]", "a"}},
      {"[a-]", {"-", "a"}},
      {R"([\]x])", {"]", "x"}},
      {"^a|b$", {"a", "b"}},
      {"(^a|b)", {"a", "b"}},
      {"5b0c-77|a_b", {"5b0c-77", "a_b"}},
      {"\u00e9|x", {"x", "\u00e9"}},
      {"a??", {"", "a"}},
      {"a]", {"a]"}},
  };
  for (const auto& [pattern, words] : cases) {
    EXPECT_EQ(finite_language(pattern), words) << pattern;
  }
}

TEST(ListedWords, AreWordsWithQuotedCharacters) {
  EXPECT_EQ(listed_words("a|b", 2), (Words{"a", "b"}));
  EXPECT_EQ(listed_words("a|b", 1), std::nullopt);
  EXPECT_EQ(listed_words(R"((1\.x|a\|b|\(c\)))", 3), (Words{"1.x", "a|b", "(c)"}));
  EXPECT_EQ(listed_words("", 1), (Words{""}));
  EXPECT_EQ(listed_words("(a|)", 2), (Words{"a", ""}));
  for (const char* pattern : {"a.b", "(a", "a)", "(a)(b)", "((a))", R"(a\)", R"((a\))", R"(\d)",
                              "a*", "^a$", "[a]", "a\n", "\u00e9", "(?i)", "a{2}"}) {
    EXPECT_EQ(listed_words(pattern, 9), std::nullopt) << pattern;
  }
}

TEST(ListedWords, MayBeEmpty) {
  const auto accepts_nothing = [](std::string_view pattern) {
    return matches_empty(
        {.label = "a", .op = MatchOperator::kMatches, .value = std::string(pattern), .offset = 0});
  };
  for (const char* pattern : {"", "()", "a|", "(|a)", "a||b", R"(a\||)"}) {
    EXPECT_TRUE(accepts_nothing(pattern)) << pattern;
  }
  for (const char* pattern : {"a", R"(a\|)", R"(\||b)", "(a|b)"}) {
    EXPECT_FALSE(accepts_nothing(pattern)) << pattern;
  }
}

TEST(FiniteLanguage, TakesNothingElseForFinite) {
  for (const char* pattern :
       {".*",          ".+",      "a.",        "a*",
        "a+",          "[^a]",    "(?i)own",   R"(\d)",
        R"(\w+)",      R"(a\b)",  R"(\x61)",   R"(\Qa\E)",
        "[[:alpha:]]", R"(\pL)",  "a{2,}",     "1{01}",
        "1{00}",       "1{1,02}", "a{0,2000}", "(a|b",
        "a)",          "a^",      "$a",        "(a$)b",
        "(a$)",        "a**",     "[b-a]",     "[\u00e9]",
        "(?s:a)",      "(?P<x",   "{",         "a{x}",
        R"(\)",        "[",       "[a",        "((((((((((a|b){3}){3}){3}){3}){3}){3}){3}){3}){3})",
        "x(^a)"}) {
    EXPECT_EQ(finite_language(pattern), std::nullopt) << pattern;
  }
}

TEST(FiniteLanguage, WordsAreLimited) {
  EXPECT_EQ(finite_language("[a-z][a-z]").value_or(Words{}).size(), 676U);
  EXPECT_EQ(finite_language("[a-z][a-z][a-z]"), std::nullopt);
  EXPECT_EQ(finite_language("a|b|c", {.words = 2}), std::nullopt);
  EXPECT_EQ(finite_language("aaaa|bbbb", {.words = 2, .bytes = 7}), std::nullopt);
}

TEST(FiniteLanguage, LongPatternsAreSpelledOut) {
  const std::string word(60'000, 'a');
  EXPECT_EQ(finite_language(word), Words{word});
  EXPECT_EQ(finite_language("(x|y)" + std::string(30'000, 'a')).value_or(Words{}).size(), 2U);
  EXPECT_EQ(finite_language("(x|y)" + word), std::nullopt);
  EXPECT_EQ(finite_language(word + "(x|y)" + word), std::nullopt);
  std::string ids = "5b0cd2f7-1c7e-4d4e-9b6f-000000000000";
  for (int i = 1; i < 1000; ++i) {
    ids += fmt::format("|5b0cd2f7-1c7e-4d4e-9b6f-{:012}", i);
  }
  EXPECT_EQ(finite_language(ids).value_or(Words{}).size(), 1000U);
  EXPECT_EQ(check_pattern({"uuid", MatchOperator::kMatches, ids}), std::nullopt);
}

TEST(FiniteLanguage, EveryWordIsAcceptedAndNoNeighbourIs) {
  for (const char* pattern : {"own[1-3]x?", "(a|bc){0,2}", "^(a|b)c$|d", R"(a\.b|c\|d)"}) {
    const re2::RE2 compiled("^(?:" + std::string(pattern) + ")$");
    ASSERT_TRUE(compiled.ok());
    const auto words = finite_language(pattern);
    ASSERT_TRUE(words);
    for (const std::string& word : *words) {
      EXPECT_TRUE(re2::RE2::FullMatch(word, compiled)) << pattern << " " << word;
      const std::string longer = word + "z";
      EXPECT_FALSE(re2::RE2::FullMatch(longer, compiled)) << pattern << " " << longer;
    }
  }
}

TEST(AcceptedValues, EqualityIsLiteralAndNegationSaysNothing) {
  EXPECT_EQ(accepted_values({"uuid", MatchOperator::kEqual, "a|b"}), Words{"a|b"});
  EXPECT_EQ(accepted_values({"uuid", MatchOperator::kMatches, "a|b"}), (Words{"a", "b"}));
  EXPECT_EQ(accepted_values({"uuid", MatchOperator::kNotEqual, "a"}), std::nullopt);
  EXPECT_EQ(accepted_values({"uuid", MatchOperator::kNotMatches, "a"}), std::nullopt);
}

TEST(QuotePattern, MatchesTheTextAndNothingElse) {
  const std::string text = R"(a.b|c\d(e)[f]{1}^$*+?-\u00e9)";
  EXPECT_EQ(finite_language(quote_pattern(text)), Words{text});
  EXPECT_EQ(quote_pattern("a-b_1"), "a-b_1");
  EXPECT_EQ(quote_pattern("a.b"), R"(a\.b)");
}

TEST(CheckPattern, RefusesWhatIsNoPattern) {
  const auto fits = [](std::string_view pattern) {
    return !check_pattern({"x", MatchOperator::kMatches, std::string(pattern)});
  };
  for (const char* pattern :
       {"", "a.*", "(?i)own", R"([\w.-]+:\d{1,5})", "node[0-9]{1,4}", "(?:[^/]{1,63}/){0,3}x",
        R"(\pL+)", R"(\pL{1000})", R"((?:\pL\pN){500})"}) {
    EXPECT_TRUE(fits(pattern)) << pattern;
  }
  for (const char* pattern : {"(", "a)(b", "a**", "(.{1000}){2}"}) {
    EXPECT_FALSE(fits(pattern)) << pattern;
  }
  EXPECT_FALSE(check_pattern({"x", MatchOperator::kEqual, "("}));
}

TEST(CheckPattern, KnownPatternsAreNotCompiledAgain) {
  KnownPatterns known(4, 1000);
  const PatternOptions thorough{.known = &known};
  const PatternOptions quick{.known = &known, .compile = false};
  const auto matcher = [](std::string pattern) {
    return Matcher{"x", MatchOperator::kMatches, std::move(pattern)};
  };
  EXPECT_TRUE(check_pattern(matcher("a.*"), quick));
  EXPECT_FALSE(check_pattern(matcher("plain|words"), quick));
  EXPECT_FALSE(check_pattern(matcher("a.*"), thorough));
  EXPECT_FALSE(check_pattern(matcher("a.*"), quick));
  EXPECT_FALSE(matches_empty(matcher("a.*"), quick));
  EXPECT_FALSE(check_pattern(matcher("b.*|"), thorough));
  EXPECT_TRUE(matches_empty(matcher("b.*|"), quick));
  EXPECT_TRUE(check_pattern(matcher("("), thorough)) << "a bad one is never known";
  EXPECT_TRUE(check_pattern(matcher("("), quick));
  for (const char* other : {"c.*", "d.*", "e.*", "f.*"}) {
    EXPECT_FALSE(check_pattern(matcher(other), thorough));
  }
  EXPECT_TRUE(check_pattern(matcher("a.*"), quick)) << "what is not asked for goes";
  EXPECT_FALSE(check_pattern(matcher(std::string(2000, 'a') + ".*"), thorough));
  EXPECT_TRUE(check_pattern(matcher(std::string(2000, 'a') + ".*"), quick))
      << "too long to be kept";
}

TEST(FiniteLanguage, PlainWordsAreReadAsAnyOtherPattern) {
  for (const char* pattern : {"", "|", "a||b", "b|a|b", "a b|c/d", "x|", "|x"}) {
    // A group is read the long way.
    EXPECT_EQ(finite_language(pattern), finite_language("(" + std::string(pattern) + ")"))
        << pattern;
    const Matcher matcher{"x", MatchOperator::kMatches, pattern};
    EXPECT_EQ(matches_empty(matcher),
              matches_empty({"x", MatchOperator::kMatches, "(" + std::string(pattern) + ")"}))
        << pattern;
  }
  EXPECT_EQ(finite_language("abc?d{2}"), (Words{"abcdd", "abdd"}));
  EXPECT_EQ(finite_language("abc*"), std::nullopt);
}

TEST(MatchesEmpty, KnowsAbsentLabels) {
  EXPECT_TRUE(matches_empty({"x", MatchOperator::kEqual, ""}));
  EXPECT_FALSE(matches_empty({"x", MatchOperator::kEqual, "a"}));
  EXPECT_TRUE(matches_empty({"x", MatchOperator::kNotEqual, "a"}));
  EXPECT_FALSE(matches_empty({"x", MatchOperator::kNotEqual, ""}));
  EXPECT_TRUE(matches_empty({"x", MatchOperator::kMatches, "a|"}));
  EXPECT_TRUE(matches_empty({"x", MatchOperator::kMatches, ".*"}));
  EXPECT_FALSE(matches_empty({"x", MatchOperator::kMatches, ".+"}));
  EXPECT_TRUE(matches_empty({"x", MatchOperator::kNotMatches, ".+"}));
}

TEST(Pattern, MayBeWhatGoTakes) {
  const auto problem = [](std::string_view pattern) {
    return check_pattern(
        {.label = "a", .op = MatchOperator::kMatches, .value = std::string(pattern)});
  };
  for (const char* pattern : {"(?<n>a)", "x(?<n>a|b)+", ".{1000}.{1000}", "[(?<a]", R"(\(?<a)"}) {
    EXPECT_FALSE(problem(pattern)) << pattern;
  }
  for (const char* pattern : {"(?<=a)b", "(?<n", "(?<n>a", "(?<!a)", "a{1001}"}) {
    EXPECT_TRUE(problem(pattern)) << pattern;
  }
  EXPECT_EQ(finite_language("(?<n>a|b)c"), (std::vector<std::string>{"ac", "bc"}));
  EXPECT_EQ(finite_language("(?<n"), std::nullopt);
  // Not compiled, so it is assumed to accept anything.
  EXPECT_TRUE(
      matches_empty({.label = "a", .op = MatchOperator::kMatches, .value = ".{1000}.{1000}"}));
}

}  // namespace
}  // namespace ceems::promql
