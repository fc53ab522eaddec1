#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "promql/ast.h"
#include "promql/matcher/known_patterns.h"
#include "promql/text/syntax_error.h"

namespace ceems::promql {

/// Which language is understood. Everything else is refused.
struct ParseOptions {
  bool prometheus2 = true;    ///< what 3.0 took away: holt_winters
  bool prometheus3 = true;    ///< quoted names, durations as seconds, newer functions
  bool experimental = false;  ///< functions and aggregations behind a switch in Prometheus
  std::size_t max_bytes = std::size_t{64} << 10U;  ///< bytes
  unsigned deepest = 256;                        ///< parentheses, calls and signs in each other
  std::size_t most_patterns = 500;               ///< =~ and !~, each of which is compiled
  PatternOptions patterns = {};
};

/// A whole query, its types checked as Prometheus checks them. Regular expressions must compile
/// (RE2). Pure; safe for concurrent use.
Parsed<ExprPtr> parse(std::string_view query, const ParseOptions& options = {});

/// A selector alone, as in `match[]` of /api/v1/series: no range, offset or "@". With `empty`
/// "{}", or one whose matchers all match nothing, is a selector, too.
Parsed<VectorSelector> parse_selector(std::string_view text,
                                      const ParseOptions& options = {},
                                      bool empty = false);

}  // namespace ceems::promql
