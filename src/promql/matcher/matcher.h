#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "promql/ast.h"
#include "promql/matcher/known_patterns.h"

namespace ceems::promql {

/// An error message if the pattern of =~ or !~ is not a valid RE2 expression, which may name groups
/// as Go does; nothing if it is valid, and for other operators.
std::optional<std::string> check_pattern(const Matcher& matcher,
                                         const PatternOptions& options = {});

/// Whether the matcher is =~ or !~.
bool is_pattern(const Matcher& matcher);

/// An error message if the selector has no name and all of its matchers accept series without their
/// labels, which Prometheus refuses. Its patterns must compile.
std::optional<std::string> check_not_empty(const VectorSelector& selector,
                                           const PatternOptions& options = {});

/// Whether the matcher accepts series without the label. The pattern must compile.
bool matches_empty(const Matcher& matcher, const PatternOptions& options = {});

/// True for words separated by "|", as dashboards send them, without other special characters.
bool is_words(std::string_view pattern);

/// True for words separated by "|" in which any special character is quoted ("a\\.b"), with or
/// without one pair of parentheses around them all. Such a pattern always compiles.
bool is_list(std::string_view pattern);
/// The words of such a list, as they are written. Nothing for any other pattern, and if there are
/// more than `limit`.
Language listed_words(std::string_view pattern, std::size_t limit);

/// Whether the character has a special meaning in a pattern.
bool has_meaning(char byte);
/// A pattern that matches only this text.
std::string quote_pattern(std::string_view text);

/// The number of words, and of bytes in all of them, above which a language counts as unbounded.
struct LanguageLimits {
  std::size_t words = 1000;
  std::size_t bytes = std::size_t{64} << 10U;
};

/// All words that a pattern accepts, sorted and without duplicates, if they are few and the pattern
/// consists of literals, escapes, alternatives, groups, small classes, "?", {n}, {n,m}, and ^ and $
/// at its ends. Nothing for any other pattern, which must be assumed to accept anything. Patterns
/// are anchored at both ends, as in Prometheus. Also nothing if `work`, which may be null, is
/// exhausted.
Language finite_language(std::string_view pattern,
                         const LanguageLimits& limits = {},
                         WorkBudget* work = nullptr);

/// The same with a cache: small languages, and that a pattern has none, are remembered.
Language known_language(std::string_view pattern,
                        const LanguageLimits& limits,
                        const PatternOptions& options);

/// The values that satisfy the matcher: for "=" the value itself, for "=~" its finite language.
/// Nothing for negative matchers and unbounded patterns.
Language accepted_values(const Matcher& matcher,
                         const LanguageLimits& limits = {},
                         const PatternOptions& options = {});

}  // namespace ceems::promql
