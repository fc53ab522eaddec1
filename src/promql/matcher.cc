#include "promql/matcher.h"

#include <cstdint>

#include <fmt/format.h>
#include <re2/re2.h>

namespace ceems::promql {
namespace {

constexpr std::int64_t kRegexMemory = std::int64_t{8} << 20U;

/// As Prometheus compiles patterns: anchored, and "." is any character (3.0).
re2::RE2 compiled(std::string_view pattern) {
  re2::RE2::Options options(re2::RE2::Quiet);
  options.set_max_mem(kRegexMemory);
  options.set_dot_nl(true);
  return re2::RE2(fmt::format("^(?:{})$", pattern), options);
}

}  // namespace

std::optional<std::string> check_pattern(const Matcher& matcher) {
  if (matcher.op != MatchOperator::kMatches && matcher.op != MatchOperator::kNotMatches) {
    return std::nullopt;
  }
  // On its own, too: "a)(b" is none, though "^(?:a)(b)$" is one.
  re2::RE2::Options alone(re2::RE2::Quiet);
  alone.set_max_mem(kRegexMemory);
  const re2::RE2 bare(matcher.value, alone);
  if (!bare.ok()) {
    return fmt::format("bad regular expression: {}", bare.error());
  }
  return std::nullopt;
}

bool matches_empty(const Matcher& matcher) {
  switch (matcher.op) {
    case MatchOperator::kEqual:
      return matcher.value.empty();
    case MatchOperator::kNotEqual:
      return !matcher.value.empty();
    case MatchOperator::kMatches:
      return re2::RE2::PartialMatch("", compiled(matcher.value));
    case MatchOperator::kNotMatches:
      return !re2::RE2::PartialMatch("", compiled(matcher.value));
  }
  return true;
}

std::optional<std::vector<std::string>> accepted_values(const Matcher& matcher,
                                                        const LanguageLimits& limits) {
  switch (matcher.op) {
    case MatchOperator::kEqual:
      return std::vector{matcher.value};
    case MatchOperator::kMatches:
      return finite_language(matcher.value, limits);
    case MatchOperator::kNotEqual:
    case MatchOperator::kNotMatches:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace ceems::promql
