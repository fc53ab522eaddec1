#pragma once

#include <optional>
#include <string>
#include <vector>

#include "promql/ast.h"
#include "promql/functions.h"

namespace ceems::promql {

// The checks that Prometheus makes besides the grammar. Each returns an error message, or nothing.

/// Also removes a matching between a vector and a scalar, which has no meaning.
std::optional<std::string> check_binary(Binary& node);
/// Whether a value may stand where one of type `wanted` is expected. `loose`: as in MetricsQL,
/// which converts all types but strings into each other.
bool fits(ValueType given, ValueType wanted, bool loose);

std::optional<std::string> check_call(const Function& function,
                                      const std::vector<ExprPtr>& arguments,
                                      bool loose = false);
std::optional<std::string> check_aggregation(AggregateOperator op,
                                             const std::vector<ExprPtr>& arguments,
                                             bool loose = false);

}  // namespace ceems::promql
