#include "advice/expression.h"

#include <cstdlib>
#include <new>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

// Counts what evaluation allocates. The analyzer knows what new and delete do.
namespace {
thread_local std::size_t allocated = 0;
}  // namespace
#ifndef __clang_analyzer__
namespace {

void* count_and_allocate(std::size_t size) noexcept {
  allocated += size;
  return std::malloc(size == 0 ? 1 : size);
}
void* or_throw(void* memory) {
  if (memory == nullptr) {
    throw std::bad_alloc();
  }
  return memory;
}

}  // namespace

void* operator new(std::size_t size) {
  return or_throw(count_and_allocate(size));
}
void* operator new[](std::size_t size) {
  return or_throw(count_and_allocate(size));
}
void* operator new(std::size_t size, const std::nothrow_t& /*tag*/) noexcept {
  return count_and_allocate(size);
}
void* operator new[](std::size_t size, const std::nothrow_t& /*tag*/) noexcept {
  return count_and_allocate(size);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t /*size*/) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t /*size*/) noexcept {
  std::free(memory);
}
void operator delete(void* memory, const std::nothrow_t& /*tag*/) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, const std::nothrow_t& /*tag*/) noexcept {
  std::free(memory);
}
#endif

namespace ceems::advice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Facts some_facts() {
  Facts facts;
  facts.set("n", 8);
  facts.set("mem.peak", 2.5e9);
  facts.set("yes", true);
  facts.set("state", "COMPLETED");
  return facts;
}

/// "?" for unknown.
std::string result_of(const std::string& text) {
  const auto expression = Expression::compile(text);
  if (!expression) {
    return expression.error().message;
  }
  const Facts facts = some_facts();
  const Value value = expression->evaluate(facts);
  if (const bool* truth = std::get_if<bool>(&value)) {
    return *truth ? "true" : "false";
  }
  if (const double* number = std::get_if<double>(&value)) {
    return fmt::format("{}", *number);
  }
  const auto* word = std::get_if<std::string_view>(&value);
  return word == nullptr ? "?" : std::string(*word);
}

TEST(Expression, CalculatesAsInSchool) {
  for (const auto& [text, result] :
       std::vector<std::pair<std::string, std::string>>{{"1 + 2 * 3", "7"},
                                                        {"(1 + 2) * 3", "9"},
                                                        {"10 - 4 - 3", "3"},
                                                        {"8 / 2 / 2", "2"},
                                                        {"-2 * -3", "6"},
                                                        {"- - 2", "2"},
                                                        {"1.5e3", "1500"},
                                                        {"n * 2", "16"},
                                                        {"min(3, 1, 2) + max(3, 1, 2)", "4"},
                                                        {"abs(-2) + ceil(1.2)", "4"},
                                                        {"mem.peak", "2500000000"},
                                                        {"state", "COMPLETED"},
                                                        {"if(n > 5, 1, 2)", "1"},
                                                        {"if(n > 9, 1, 2)", "2"},
                                                        {"if(n > 9, 1)", "?"},
                                                        {"known(n)", "true"},
                                                        {"known(nobody)", "false"}}) {
    EXPECT_EQ(result_of(text), result) << text;
  }
}

TEST(Expression, ComparesAndCombines) {
  for (const auto& [text, result] :
       std::vector<std::pair<std::string, std::string>>{{"1 < 2", "true"},
                                                        {"2 < 2", "false"},
                                                        {"2 <= 2", "true"},
                                                        {"2 > 2", "false"},
                                                        {"2 >= 2", "true"},
                                                        {"n == 8", "true"},
                                                        {"n != 8", "false"},
                                                        {"state == 'COMPLETED'", "true"},
                                                        {"state != 'FAILED'", "true"},
                                                        {"yes == true", "true"},
                                                        {"!yes", "false"},
                                                        {"!!yes", "true"},
                                                        {"true || false && false", "true"},
                                                        {"(true || false) && false", "false"},
                                                        {"!yes || n > 1", "true"}}) {
    EXPECT_EQ(result_of(text), result) << text;
  }
}

TEST(Expression, IsUnknownWhereSomethingIs) {
  for (const auto& [text, result] : std::vector<std::pair<std::string, std::string>>{
           {"nobody", "?"},
           {"nobody + 1", "?"},
           {"nobody < 1", "?"},
           {"nobody == nobody", "?"},
           {"!nobody", "?"},
           {"nobody && true", "?"},
           {"true && nobody", "?"},
           {"nobody || false", "?"},
           // One side decides.
           {"nobody && false", "false"},
           {"false && nobody", "false"},
           {"nobody || true", "true"},
           {"true || nobody", "true"},
           {"if(nobody, 1, 2)", "?"},
           // Wrong types and results that no number is.
           {"state + 1", "?"},
           {"state < 1", "?"},
           {"state == 1", "?"},
           {"n && true", "?"},
           {"1 / 0", "?"},
           {"0 / 0", "?"},
           {"1e308 * 10", "?"},
           {"min(nobody, 1)", "?"}}) {
    EXPECT_EQ(result_of(text), result) << text;
  }
  EXPECT_FALSE(is_known(Expression().evaluate(Facts())));
}

TEST(Expression, RoundsAsPeopleAsk) {
  constexpr double kGiB = 1024.0 * 1024 * 1024;
  for (const auto& [gib, rounded] : std::vector<std::pair<double, double>>{{0.1, 1},
                                                                           {1, 1},
                                                                           {7.9 * 1.2, 10},
                                                                           {30, 30},
                                                                           {30.1, 35},
                                                                           {100, 100},
                                                                           {101, 110},
                                                                           {1000, 1000},
                                                                           {1001, 1100}}) {
    EXPECT_DOUBLE_EQ(round_mem(gib * kGiB), rounded * kGiB) << gib;
  }
  for (const auto& [minutes, rounded] : std::vector<std::pair<double, double>>{{1, 15},
                                                                               {15, 15},
                                                                               {119, 120},
                                                                               {121, 180},
                                                                               {720, 720},
                                                                               {721, 1080},
                                                                               {4320, 4320},
                                                                               {4321, 5760}}) {
    EXPECT_DOUBLE_EQ(round_time(minutes * 60), rounded * 60) << minutes;
  }
}

TEST(Expression, SaysWhereAMistakeIs) {
  for (const auto& [text, message] : std::vector<std::pair<std::string, std::string>>{
           {"", "column 1: expected a value"},
           {"1 +", "column 4: expected a value"},
           {"1 2", "column 3: expected an operator or the end"},
           {"(1", "column 3: expected ')'"},
           {"'abc", "column 1: expected a closing quote"},
           {"1.2.3", "column 1: malformed number"},
           {"1e999", "column 1: malformed number"},
           {"a..b", "column 1: malformed name"},
           {"a.", "column 1: malformed name"},
           {"exec(1)", "column 1: unknown function 'exec'"},
           {"abs(1, 2)", "expected one argument"},
           {"if(1)", "expected two or three arguments"},
           {"min()", "column 5: expected a value"},
           {"a = 1", "column 3: expected an operator or the end"},
           {"1 < 2 < 3", "column 7: expected an operator or the end"},
           {std::string(100, '('), "nested deeper than 64 levels"},
           {std::string(100, '!'), "nested deeper than 64 levels"},
           {std::string(100, '-'), "nested deeper than 64 levels"},
           {std::string(9000, ' '), "more than 8192 bytes"}}) {
    const auto expression = Expression::compile(text);
    ASSERT_FALSE(expression) << text;
    EXPECT_THAT(expression.error().message, HasSubstr(message)) << text;
  }
}

TEST(Expression, HasAtMost64Levels) {
  for (const auto& [open, close] : {std::pair('!', ""), {'-', ""}, {'(', ")"}}) {
    std::string text = std::string(63, open) + "n";  // the whole is the first level
    for (int i = 0; i < 63; ++i) {
      text += close;
    }
    EXPECT_TRUE(Expression::compile(text)) << text;
    EXPECT_FALSE(Expression::compile(open + text + close)) << text;
  }
}

TEST(Expression, HasAtMostAThousandParts) {
  std::string sum = "1";
  for (int i = 0; i < 499; ++i) {
    sum += "+1";
  }
  const auto longest = Expression::compile(sum);
  ASSERT_TRUE(longest);
  EXPECT_EQ(longest->size(), 999U);
  EXPECT_EQ(std::get<double>(longest->evaluate(Facts())), 500);
  EXPECT_THAT(Expression::compile(sum + "+1").error().message, HasSubstr("more than 1000 parts"));
}

TEST(Expression, NamesWhatItReads) {
  EXPECT_THAT(Expression::compile("b + a.c * b - if(x, 1)")->names(), ElementsAre("a.c", "b", "x"));
}

/// Random texts out of pieces of the language: compilation ends with a tree or an error, and
/// evaluation neither fails nor allocates.
TEST(Expression, NoInputMakesItFailOrAllocate) {
  const std::vector<std::string> pieces{"(",        ")",    "+",     "-",          "*",   "/",
                                        "<",        "<=",   ">",     "==",         "!=",  "&&",
                                        "||",       "!",    ",",     "1",          "0",   "1e300",
                                        "n",        "yes",  "state", "'x'",        " ",   "nobody",
                                        "mem.peak", "min(", "max(",  "round_mem(", "if(", "known("};
  std::mt19937 random(7);  // NOLINT: the same in every run
  const Facts facts = some_facts();
  int compiled = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string text;
    for (auto length = random() % 12 + 1; length > 0; --length) {
      text += pieces[random() % pieces.size()];
    }
    const auto expression = Expression::compile(text);
    if (!expression) {
      EXPECT_FALSE(expression.error().message.empty());
      continue;
    }
    ++compiled;
    ASSERT_LE(expression->size(), Expression::kMaxNodes);
    const std::size_t before = allocated;
    const Value value = expression->evaluate(facts);
    EXPECT_EQ(allocated, before) << text;
    if (const double* number = std::get_if<double>(&value)) {
      EXPECT_TRUE(std::isfinite(*number)) << text;
    }
  }
  EXPECT_GT(compiled, 500);
}

}  // namespace
}  // namespace ceems::advice
