#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "promql/ast.h"
#include "promql/parser.h"
#include "promql/text/token_cursor.h"

namespace ceems::promql {

// Parsers for the parts of a query that contain no expressions. Each starts at the first token of
// its part and stops after the last one.

/// name{matchers}. `allow_empty` is that of parse_selector().
Parsed<VectorSelector> read_selector(TokenCursor& tokens,
                                     const ParseOptions& options,
                                     bool allow_empty);
/// (a, b,)
Parsed<std::vector<std::string>> read_labels(TokenCursor& tokens, const ParseOptions& options);
/// A signed number of seconds or a duration, in milliseconds.
Parsed<std::int64_t> read_timestamp(TokenCursor& tokens, const ParseOptions& options);

}  // namespace ceems::promql
