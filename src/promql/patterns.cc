#include "promql/patterns.h"

#include <utility>

#include "promql/matcher/matcher.h"
#include "promql/selectors.h"

namespace ceems::promql {

std::optional<SyntaxError> check_patterns(std::string_view query,
                                          Expr& expr,
                                          const PatternOptions& options) {
  std::optional<SyntaxError> error;
  for_each_selector(expr, [&](VectorSelector& selector) {
    if (!error) {
      error = check_patterns(query, selector, options, false);
    }
  });
  return error;
}

std::optional<SyntaxError> check_patterns(std::string_view text,
                                          const VectorSelector& selector,
                                          const PatternOptions& options,
                                          bool allow_empty) {
  for (const Matcher& matcher : selector.matchers) {
    if (auto problem = check_pattern(matcher, options)) {
      return syntax_error_at(text, matcher.value_offset, std::move(*problem));
    }
  }
  auto problem = allow_empty ? std::nullopt : check_not_empty(selector, options);
  return problem ? std::optional(syntax_error_at(text, selector.offset, std::move(*problem)))
                 : std::nullopt;
}

}  // namespace ceems::promql
