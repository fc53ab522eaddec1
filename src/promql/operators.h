#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "promql/ast.h"
#include "promql/text/lexer.h"

namespace ceems::promql {

// Names and precedence of operators.

std::string_view operator_text(BinaryOperator op);  ///< "and", "<="
/// "=", "!~"
std::string_view operator_text(MatchOperator op);
/// "sum", "count_values"
std::string_view operator_text(AggregateOperator op);

/// and, or, unless.
bool is_set_operator(BinaryOperator op);
/// </ and >/, which cut off parts of histograms.
bool is_trim(BinaryOperator op);
/// ==, !=, <, <=, >, >=.
bool is_comparison(BinaryOperator op);
/// From kWeakest, which binds loosest, to 6: default; if, ifnot; or; and, unless; comparisons,
/// trims; +, -; *, /, %, atan2; ^.
int precedence(BinaryOperator op);
inline constexpr int kWeakest = -1;
/// A sign before an expression binds like "*".
inline constexpr int kPowPrecedence = 6;

/// Words are compared without regard to case. `metricsql`: also its default, if and ifnot.
std::optional<BinaryOperator> binary_operator(const Token& token, bool metricsql = false);
std::optional<MatchOperator> match_operator(TokenKind kind);
std::optional<AggregateOperator> aggregate_operator(std::string_view word);
/// Whether Prometheus needs --enable-feature=promql-experimental-functions for it.
bool is_experimental(AggregateOperator op);
/// The type of the parameter, the first of two arguments; nothing if the operator has none.
std::optional<ValueType> parameter_type(AggregateOperator op);

/// Whether a metric, or a label in by(…), on(…) and so on, may have this name without quotes. "inf"
/// and "nan" may not, because they are numbers.
bool may_name_metric(std::string_view word);
bool may_name_label(std::string_view word);

}  // namespace ceems::promql
