#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "promql/ast.h"
#include "promql/text/lexer.h"

namespace ceems::promql {

// Operators by name and by strength.

std::string_view operator_text(BinaryOperator op);  ///< "and", "<="
std::string_view operator_text(MatchOperator op);
std::string_view operator_text(AggregateOperator op);

bool is_set_operator(BinaryOperator op);
bool is_comparison(BinaryOperator op);
/// 1 binds loosest: or; and, unless; comparisons; +, -; *, /, %, atan2; ^
int precedence(BinaryOperator op);
/// The sign in front of an expression binds as strongly as "*".
inline constexpr int kPowPrecedence = 6;

/// Words are compared in any case.
std::optional<BinaryOperator> binary_operator(const Token& token);
std::optional<MatchOperator> match_operator(TokenKind kind);
std::optional<AggregateOperator> aggregate_operator(std::string_view word);
bool is_experimental(AggregateOperator op);
/// The type of the first argument of those that have two.
std::optional<ValueType> parameter_type(AggregateOperator op);

/// May a metric, or a label in by(…), on(…) and so on, bear this name without quotes? "inf" and
/// "nan" are numbers.
bool may_name_metric(std::string_view word);
bool may_name_label(std::string_view word);

}  // namespace ceems::promql
