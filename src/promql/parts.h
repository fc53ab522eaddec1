#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "promql/ast.h"
#include "promql/parser.h"
#include "promql/text/lexer.h"

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

// Durations and expressions of them. Each function starts at the first token of its part and stops
// after the last one.

/// What stands between brackets: "5m", "5m * 2", "max_of(step(), 1m)". A literal is greater than 0.
Parsed<Duration> read_range(TokenCursor& tokens, const ParseOptions& options);

/// What follows "offset". Arithmetic belongs to it only behind a parenthesis without a sign:
/// "a offset 5m + b" is a sum, and "a offset (5m) + 1m" has an offset of 6 minutes.
Parsed<Duration> read_offset(TokenCursor& tokens, const ParseOptions& options);

}  // namespace ceems::promql
