#pragma once

#include <optional>
#include <string>
#include <vector>

#include "promql/ast.h"
#include "promql/functions.h"

namespace ceems::promql {

// What Prometheus asks of an expression besides its grammar. Each tells what is wrong, or nothing.

/// Also drops a matching that means nothing: between a vector and a scalar.
std::optional<std::string> check_binary(Binary& node);
std::optional<std::string> check_call(const Function& function,
                                      const std::vector<ExprPtr>& arguments);
std::optional<std::string> check_aggregation(AggregateOperator op,
                                             const std::vector<ExprPtr>& arguments);

}  // namespace ceems::promql
