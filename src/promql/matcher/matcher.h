#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "promql/ast.h"
#include "promql/matcher/known_patterns.h"

namespace ceems::promql {

/// What is wrong with the pattern of =~ and !~, which must be a regular expression of RE2 that
/// needs no large program; nothing for other operators.
std::optional<std::string> check_pattern(const Matcher& matcher,
                                         const PatternOptions& options = {});

/// True where a series without the label would do, too. The pattern must compile.
bool matches_empty(const Matcher& matcher, const PatternOptions& options = {});

/// True for words between bars, as dashboards send them: nothing in them has a meaning.
bool is_words(std::string_view pattern);

/// Does the character mean something else than itself in a pattern?
bool has_meaning(char byte);
/// A pattern that matches the text and nothing else.
std::string quote_pattern(std::string_view text);

/// How many words, and bytes in all of them, are spelled out before a language counts as unbounded.
struct LanguageLimits {
  std::size_t words = 1000;
  std::size_t bytes = std::size_t{64} << 10U;
};

/// All words that a pattern accepts, sorted, each once, where these are few and the pattern is made
/// of literals, escapes, alternatives, groups, small classes, "?", {n}, {n,m}, and ^ and $ at its
/// ends. Nothing for every other pattern: it must be taken for one that accepts anything. Patterns
/// are anchored at both ends, as Prometheus does.
std::optional<std::vector<std::string>> finite_language(std::string_view pattern,
                                                        const LanguageLimits& limits = {});

/// The values that a label may have to satisfy the matcher: of "=" the value itself, of "=~" its
/// finite language. Nothing where they cannot be told: negative matchers, unbounded patterns.
std::optional<std::vector<std::string>> accepted_values(const Matcher& matcher,
                                                        const LanguageLimits& limits = {});

}  // namespace ceems::promql
