#include "promql/matcher/matcher.h"

#include <algorithm>
#include <cstdint>
#include <string_view>

#include <fmt/format.h>
#include <re2/re2.h>

#include "promql/matcher/pattern_cost.h"
#include "promql/text/characters.h"

namespace ceems::promql {
namespace {

constexpr std::string_view kMeta = R"(\.+*?()|[]{}^$)";

/// A short pattern can need a large program, as (\pL){1000} does, and a query can contain thousands
/// of short patterns. So the limit grows with the length of the pattern.
re2::RE2::Options options_for(std::string_view pattern) {
  constexpr std::size_t kSmallest = std::size_t{128} << 10U;
  constexpr std::size_t kEachByte = 64;
  re2::RE2::Options options(re2::RE2::Quiet);
  options.set_max_mem(static_cast<std::int64_t>(kSmallest + kEachByte * pattern.size()));
  return options;
}

/// "(?<name>x)" as "(?P<name>x)": the RE2 of Debian 12 does not know the form that Go has had since
/// 1.22.
std::string with_old_names(std::string_view pattern) {
  constexpr std::string_view kNewName = "(?<";
  std::string out;
  bool in_class = false;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    out += pattern[i];
    if (pattern[i] == '\\' && i + 1 < pattern.size()) {
      out += pattern[++i];
    } else if (in_class) {
      in_class = pattern[i] != ']';
    } else if (pattern[i] == '[') {
      in_class = true;
    } else if (pattern.substr(i).starts_with(kNewName)) {
      out += "?P<";
      i += kNewName.size() - 1;
    }
  }
  return out;
}

/// Compiles like Prometheus 3.0: anchored, and "." matches any character.
re2::RE2 compiled(std::string_view pattern) {
  re2::RE2::Options options = options_for(pattern);
  options.set_dot_nl(true);
  return re2::RE2(fmt::format("^(?:{})$", with_old_names(pattern)), options);
}

constexpr const char* kTooMuchWork = "checking the regular expressions takes too much work";
constexpr ByteSet kInWords = ByteSet::letters_digits_and("-:/| ");

std::string_view without_parentheses(std::string_view pattern) {
  const bool enclosed = pattern.starts_with('(') && pattern.ends_with(')');
  return enclosed ? pattern.substr(1, pattern.size() - 2) : pattern;
}

/// The pattern must be valid. True for one that is too large to compile.
bool accepts_empty(std::string_view pattern, const PatternOptions& options) {
  if (is_list(pattern)) {
    const Language words = listed_words(pattern, pattern.size() + 1);
    return !words || std::ranges::find(*words, "") != words->end();
  }
  const auto known = options.known == nullptr ? std::nullopt : options.known->find(pattern);
  if (known) {
    return *known;
  }
  const re2::RE2 whole = compiled(pattern);
  return !whole.ok() || re2::RE2::PartialMatch("", whole);
}

}  // namespace

bool is_words(std::string_view pattern) {
  return kInWords.contains_all(pattern);
}

bool is_list(std::string_view pattern) {
  pattern = without_parentheses(pattern);
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '\\' && i + 1 < pattern.size() && has_meaning(pattern[i + 1])) {
      ++i;
    } else if (!kInWords.contains(pattern[i])) {
      return false;
    }
  }
  return true;
}

Language listed_words(std::string_view pattern, std::size_t limit) {
  if (!is_list(pattern)) {
    return std::nullopt;
  }
  std::vector<std::string> words(1);
  const std::string_view listed = without_parentheses(pattern);
  for (std::size_t i = 0; i < listed.size(); ++i) {
    if (listed[i] != '|') {
      i += listed[i] == '\\' ? 1U : 0U;
      words.back() += listed[i];
    } else if (words.size() == limit) {
      return std::nullopt;
    } else {
      words.emplace_back();
    }
  }
  return words;
}

std::optional<std::string> check_pattern(const Matcher& matcher, const PatternOptions& options) {
  if (!is_pattern(matcher)) {
    return std::nullopt;
  }
  // Compiling takes 10 µs or more.
  if (is_list(matcher.value) || (options.known != nullptr && options.known->find(matcher.value))) {
    return std::nullopt;
  }
  if (!options.compile) {
    return "a regular expression that was not compiled yet";
  }
  const std::size_t steps = compile_steps(matcher.value);
  if (!take_steps(options.work, steps)) {
    return kTooMuchWork;
  }
  // The pattern must also compile unanchored: "a)(b" is invalid, although "^(?:a)(b)$" is valid.
  const re2::RE2 bare(with_old_names(matcher.value), options_for(matcher.value));
  // Its syntax is valid. Go's limit is larger than ours, which bounds our work.
  const bool too_large = bare.error_code() == re2::RE2::ErrorPatternTooLarge;
  if (!bare.ok() && !too_large) {
    return fmt::format("bad regular expression: {}", bare.error());
  }
  const std::size_t measured = program_steps(bare.ProgramSize());
  if (measured > steps && !take_steps(options.work, measured - steps)) {
    return kTooMuchWork;
  }
  if (options.known != nullptr) {
    options.known->store(matcher.value, too_large || re2::RE2::FullMatch("", bare));
  }
  return std::nullopt;
}

bool is_pattern(const Matcher& matcher) {
  return matcher.op == MatchOperator::kMatches || matcher.op == MatchOperator::kNotMatches;
}

std::optional<std::string> check_not_empty(const VectorSelector& selector,
                                           const PatternOptions& options) {
  const auto empty = [&](const Matcher& matcher) { return matches_empty(matcher, options); };
  if (selector.name.empty() && std::ranges::all_of(selector.matchers, empty)) {
    return "vector selector must contain at least one non-empty matcher";
  }
  return std::nullopt;
}

bool matches_empty(const Matcher& matcher, const PatternOptions& options) {
  switch (matcher.op) {
    case MatchOperator::kEqual:
      return matcher.value.empty();
    case MatchOperator::kNotEqual:
      return !matcher.value.empty();
    case MatchOperator::kMatches:
      return accepts_empty(matcher.value, options);
    case MatchOperator::kNotMatches:
      return !accepts_empty(matcher.value, options);
  }
  return true;
}

bool has_meaning(char byte) {
  return kMeta.find(byte) != std::string_view::npos;
}

std::string quote_pattern(std::string_view text) {
  std::string out;
  for (const char byte : text) {
    if (has_meaning(byte)) {
      out += '\\';
    }
    out += byte;
  }
  return out;
}

Language known_language(std::string_view pattern,
                        const LanguageLimits& limits,
                        const PatternOptions& options) {
  constexpr std::size_t kMaxKeptWords = 100;
  if (options.languages == nullptr || is_words(pattern)) {
    return finite_language(pattern, limits, options.work);
  }
  if (const auto known = options.languages->find(pattern)) {
    return take_steps(options.work, 1) ? **known : std::nullopt;
  }
  Language words = finite_language(pattern, limits, options.work);
  const bool finished = options.work == nullptr || !options.work->exhausted();
  if (finished && (!words || words->size() <= kMaxKeptWords)) {
    options.languages->store(pattern, std::make_shared<const Language>(words));
  }
  return words;
}

Language accepted_values(const Matcher& matcher,
                         const LanguageLimits& limits,
                         const PatternOptions& options) {
  switch (matcher.op) {
    case MatchOperator::kEqual:
      return std::vector{matcher.value};
    case MatchOperator::kMatches:
      return known_language(matcher.value, limits, options);
    case MatchOperator::kNotEqual:
    case MatchOperator::kNotMatches:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace ceems::promql
