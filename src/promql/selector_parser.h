#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "promql/ast.h"
#include "promql/parser.h"
#include "promql/text/token_cursor.h"

namespace ceems::promql {

// The parts of queries without expressions in them. Each starts at the first token of what it reads
// and stops behind its last.

/// name{matchers}. With `empty` one that every series matches will do.
Parsed<VectorSelector> read_selector(TokenCursor& tokens, const ParseOptions& options, bool empty);
/// (a, b,)
Parsed<std::vector<std::string>> read_labels(TokenCursor& tokens, const ParseOptions& options);
/// Milliseconds, not negative.
Parsed<std::int64_t> read_duration(TokenCursor& tokens,
                                   const ParseOptions& options,
                                   bool may_be_zero);
/// Milliseconds of a number of seconds with or without sign.
Parsed<std::int64_t> read_timestamp(TokenCursor& tokens);

}  // namespace ceems::promql
