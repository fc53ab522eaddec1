#pragma once

#include <optional>
#include <string_view>

#include "promql/ast.h"
#include "promql/parser.h"
#include "promql/text/syntax_error.h"

namespace ceems::promql {

// The part of parsing that takes long: compiling patterns. A caller that wants to look at the
// selectors first parses with PatternOptions::check = false and calls these afterwards with `check`
// = true. Together they refuse what parsing with `check` refuses, with the same error for the first
// bad selector.

/// Checks the patterns of all selectors, and that each selector accepts something but the empty
/// text. `query` is the text from which `expr` was parsed.
std::optional<SyntaxError> check_patterns(std::string_view query,
                                          Expr& expr,
                                          const PatternOptions& options);

/// The same for a single selector. `allow_empty` is that of parse_selector().
std::optional<SyntaxError> check_patterns(std::string_view text,
                                          const VectorSelector& selector,
                                          const PatternOptions& options,
                                          bool allow_empty);

}  // namespace ceems::promql
