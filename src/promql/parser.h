#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "promql/ast.h"
#include "promql/matcher/known_patterns.h"
#include "promql/text/syntax_error.h"

namespace ceems::promql {

/// The language that the parser accepts.
struct ParseOptions {
  bool prometheus2 = true;  ///< what 3.0 removed: holt_winters
  bool prometheus3 = true;  ///< quoted names, durations as seconds, newer functions
  /// What Prometheus has behind feature flags: functions, aggregations, fill(), names with dots and
  /// other letters without quotes.
  bool experimental = false;
  /// keep_metric_names, default, if, ifnot, durations in steps ("5i"), names with dots, its
  /// functions and aggregations, ranges that are left out ("rate(m)") or behind any expression
  /// (https://docs.victoriametrics.com/victoriametrics/metricsql/).
  bool metricsql = false;
  std::size_t max_bytes = std::size_t{64} << 10U;  ///< size_without_lists() of the query
  unsigned max_depth = 256;                        ///< nesting of parentheses, calls and signs
  std::size_t max_patterns = 500;  ///< number of =~ and !~, each of which is compiled
  PatternOptions patterns = {};
};

/// The length of the text without its strings that contain nothing but words separated by "|", as
/// dashboards write lists of units. There may be thousands of units, and they cost little.
std::size_t size_without_lists(std::string_view text);

/// Parses a whole query and checks its types as Prometheus does. Regular expressions must compile
/// in RE2. Pure; safe for concurrent use.
Parsed<ExprPtr> parse(std::string_view query, const ParseOptions& options = {});

/// Parses a single selector without range, offset or "@", as in `match[]` of /api/v1/series. With
/// `allow_empty`, "{}" and selectors all of whose matchers accept the empty text are valid as well.
Parsed<VectorSelector> parse_selector(std::string_view text,
                                      const ParseOptions& options = {},
                                      bool allow_empty = false);

}  // namespace ceems::promql
