#pragma once

#include "promql/ast.h"
#include "promql/parser.h"
#include "promql/text/token_cursor.h"

namespace ceems::promql {

// Durations and expressions of them. Each function starts at the first token of its part and stops
// after the last one.

/// What stands between brackets: "5m", "5m * 2", "max_of(step(), 1m)". A literal is greater than 0.
Parsed<Duration> read_range(TokenCursor& tokens, const ParseOptions& options);

/// What follows "offset". Arithmetic belongs to it only behind a parenthesis without a sign:
/// "a offset 5m + b" is a sum, and "a offset (5m) + 1m" has an offset of 6 minutes.
Parsed<Duration> read_offset(TokenCursor& tokens, const ParseOptions& options);

}  // namespace ceems::promql
