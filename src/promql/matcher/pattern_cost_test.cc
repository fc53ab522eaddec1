#include "promql/matcher/pattern_cost.h"

#include <string>

#include <gtest/gtest.h>

#include "promql/matcher/matcher.h"
#include "promql/parser.h"
#include "promql/patterns.h"

namespace ceems::promql {
namespace {

std::string times(std::string_view text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) {
    all += text;
  }
  return all;
}

/// 10 letters to the third power, within nested groups, and then anything.
std::string nested(int groups) {
  return times("(", groups) + "[a-j][a-j][a-j]" + times(")", groups) + ".*";
}

TEST(PatternCost, UsualPatternsAreCheap) {
  for (const char* pattern :
       {"a.*", "node[0-9]+", R"([\w.-]+:\d{1,5})", R"((\d{1,3}\.){3}\d{1,3})", "(a|b|c)",
        "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "ceems_(compute|node)_.+_total"}) {
    EXPECT_LT(compile_steps(pattern), 400U) << pattern;
  }
}

TEST(PatternCost, WhatIsLargeInFewBytesCostsMuch) {
  // The least steps that correspond to the time measured with RE2, at 0.2 µs each.
  EXPECT_GE(compile_steps(R"(\pL)"), 4140U);
  EXPECT_GE(compile_steps(R"([^\PL])"), 4140U);
  EXPECT_GE(compile_steps("[" + times(R"(\pL)", 1000) + "]"), 50'500U);
  EXPECT_GE(compile_steps("a{0,1000}"), 12'470U);
  EXPECT_GE(compile_steps(times("a{1000}", 100)), 24'500U);
  EXPECT_GE(compile_steps(times("a?", 5000)), 300'000U);
  EXPECT_GE(compile_steps(times("(^|a)", 5000)), 300'000U);
  EXPECT_GE(compile_steps(times("(|a)", 5000)), 300'000U);
  EXPECT_GE(compile_steps("(" + times("a?", 30) + "){30}"), 6'000U);
  EXPECT_GE(compile_steps(times(".", 100)), 1060U);
  EXPECT_GE(compile_steps("(?i)" + times("k", 1000)), 5600U);
  EXPECT_GE(compile_steps("(?i)" + times(R"([b-\x{fff}])", 50)), 6000U);
}

TEST(WorkBudget, RefusesForEverOnceItIsExhausted) {
  WorkBudget work(10);
  EXPECT_TRUE(work.take(4));
  EXPECT_FALSE(work.take(7));
  EXPECT_FALSE(work.take(1));
  EXPECT_TRUE(work.exhausted());
  EXPECT_EQ(work.used(), 4U);
}

TEST(WorkBudget, IsForAllPatternsOfAQuery) {
  WorkBudget work;
  const std::string one = R"(x=~"\\pL",)";
  EXPECT_TRUE(parse("a{" + times(one, 20) + "}", {.patterns = {.work = &work}}));
  EXPECT_FALSE(parse("a{" + times(one, 20) + "}", {.patterns = {.work = &work}}));
  EXPECT_TRUE(work.exhausted());
}

TEST(WorkBudget, CountsTheWordsOfAPattern) {
  WorkBudget work;
  EXPECT_EQ(finite_language(nested(0), {}, &work), std::nullopt);
  const std::size_t plain = work.used();
  EXPECT_GT(plain, 1000U) << "1000 words were made";
  EXPECT_LT(plain, 3000U) << "16 bytes of words are a step";
  work = WorkBudget();
  EXPECT_EQ(finite_language(nested(45), {}, &work), std::nullopt);
  EXPECT_LT(work.used(), 50 * plain);
  WorkBudget small(100);
  EXPECT_EQ(finite_language("[a-j][a-j][a-j]", {}, &small), std::nullopt);
  EXPECT_TRUE(small.exhausted());
  EXPECT_EQ(finite_language("[a-j][a-j][a-j]").value_or(std::vector<std::string>{}).size(), 1000U);
}

TEST(KnownLanguages, AreNotSpelledOutAgain) {
  KnownLanguages languages(10, 200);
  const auto steps_of = [&](const std::string& pattern) {
    WorkBudget work;
    const Matcher matcher{"uuid", MatchOperator::kMatches, pattern};
    const auto words = accepted_values(matcher, {}, {.languages = &languages, .work = &work});
    EXPECT_EQ(words, finite_language(pattern)) << pattern;
    return work.used();
  };
  EXPECT_GT(steps_of("own[0-9]x?"), 20U);
  EXPECT_EQ(steps_of("own[0-9]x?"), 1U);
  EXPECT_GT(steps_of(nested(45)), 1000U);
  EXPECT_EQ(steps_of(nested(45)), 1U) << "that there is none is remembered as well";
  EXPECT_GT(steps_of("[a-j][a-j][a-j]"), 1000U);
  EXPECT_GT(steps_of("[a-j][a-j][a-j]"), 1000U) << "too large to be kept";
  for (int i = 0; i < 10; ++i) {
    steps_of("(a|b)" + std::to_string(i));
  }
  EXPECT_GT(steps_of("own[0-9]x?"), 20U) << "what is not asked for goes";
}

TEST(KnownLanguages, OfPatternsThatTookTooMuchWorkAreNotKept) {
  KnownLanguages languages(10, 200);
  WorkBudget small(100);
  const Matcher matcher{"uuid", MatchOperator::kMatches, "[a-b][a-j]x"};
  EXPECT_EQ(accepted_values(matcher, {}, {.languages = &languages, .work = &small}), std::nullopt)
      << small.used();
  WorkBudget work;
  const auto words = accepted_values(matcher, {}, {.languages = &languages, .work = &work});
  EXPECT_EQ(words.value_or(std::vector<std::string>{}).size(), 20U);
}

TEST(CheckPatterns, RefusesLaterWhatParsingRefusesAtOnce) {
  for (const char* query :
       {"a{x=~'('}", "a{x=~'b.*'}", "{x=~'.*'}", "{x=~'.+'}", "rate(a[5m]) + {x=~'.*',y!~'b.+'}",
        "sum(a{y='b',x=~'*'}) + {x=~'.*'}", "{x=''}", "{}"}) {
    const auto at_once = parse(query);
    auto later = parse(query, {.patterns = {.check = false}});
    std::optional<SyntaxError> error;
    if (later) {
      error = check_patterns(query, **later, {});
    } else {
      error = later.error();
    }
    EXPECT_EQ(error.has_value(), !at_once.has_value()) << query;
    if (error && !at_once) {
      EXPECT_EQ(error->text(), at_once.error().text()) << query;
    }
  }
}

}  // namespace
}  // namespace ceems::promql
