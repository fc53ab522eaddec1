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
std::optional<std::string> check_call(const Function& function,
                                      const std::vector<ExprPtr>& arguments);
std::optional<std::string> check_aggregation(AggregateOperator op,
                                             const std::vector<ExprPtr>& arguments);

}  // namespace ceems::promql
