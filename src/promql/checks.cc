#include "promql/checks.h"

#include <algorithm>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "promql/operators.h"

namespace ceems::promql {
namespace {

bool is_vector_or_scalar(ValueType type) {
  return type == ValueType::kScalar || type == ValueType::kInstantVector;
}

std::optional<std::string> check_matching(const VectorMatching& matching, BinaryOperator op) {
  if (matching.on && !matching.include.empty()) {
    // Sorted, because a query may have tens of thousands of each.
    const std::set<std::string_view> include(matching.include.begin(), matching.include.end());
    for (const std::string& label : matching.labels) {
      if (include.contains(label)) {
        return fmt::format("label \"{}\" must not occur in ON and GROUP clause at once", label);
      }
    }
  }
  if (is_set_operator(op) && matching.group != VectorMatching::Group::kOneToOne) {
    return fmt::format("no grouping allowed for \"{}\" operation", operator_text(op));
  }
  return std::nullopt;
}

}  // namespace

bool fits(ValueType given, ValueType wanted, bool loose) {
  return given == wanted || (loose && given != ValueType::kString && wanted != ValueType::kString);
}

std::optional<std::string> check_binary(Binary& node) {
  const ValueType left = node.left->type;
  const ValueType right = node.right->type;
  if (!is_vector_or_scalar(left) || !is_vector_or_scalar(right)) {
    return "binary expression must contain only scalar and instant vector types";
  }
  const bool scalars = left == ValueType::kScalar && right == ValueType::kScalar;
  const bool vectors = left == ValueType::kInstantVector && right == ValueType::kInstantVector;
  if (node.return_bool && !is_comparison(node.op)) {
    return "bool modifier can only be used on comparison operators";
  }
  if (is_comparison(node.op) && !node.return_bool && scalars) {
    return "comparisons between scalars must use BOOL modifier";
  }
  if (is_set_operator(node.op) && !vectors) {
    return fmt::format("set operator \"{}\" not allowed in binary scalar expression",
                       operator_text(node.op));
  }
  if ((node.fill_left || node.fill_right) && (!vectors || is_set_operator(node.op))) {
    return "filling in missing series only allowed between instant vectors, not for set operators";
  }
  if (!node.matching) {
    return std::nullopt;
  }
  if (auto problem = check_matching(*node.matching, node.op)) {
    return problem;
  }
  if (!vectors) {
    // Prometheus ignores "on()" beside a scalar. VictoriaMetrics takes the scalar for a series,
    // with which several others do not match.
    return "vector matching only allowed between instant vectors";
  }
  return std::nullopt;
}

std::optional<std::string> check_call(const Function& function,
                                      const std::vector<ExprPtr>& arguments,
                                      bool loose) {
  if (function.since == Since::kMetricsql) {
    return std::nullopt;
  }
  if (arguments.size() < function.at_least) {
    return fmt::format("expected {} {} argument(s) in call to \"{}\", got {}",
                       function.at_least == function.at_most ? "exactly" : "at least",
                       function.at_least, function.name, arguments.size());
  }
  if (function.at_most != kAnyNumber && arguments.size() > function.at_most) {
    return fmt::format("expected at most {} argument(s) in call to \"{}\", got {}",
                       function.at_most, function.name, arguments.size());
  }
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const ValueType wanted =
        function.arguments.at(std::min<std::size_t>(i, function.count - std::size_t{1}));
    if (!fits(arguments[i]->type, wanted, loose)) {
      return fmt::format("expected type {} in call to function \"{}\", got {}", type_name(wanted),
                         function.name, type_name(arguments[i]->type));
    }
  }
  if (function.hidden_selector && arguments.size() > 1) {
    const auto* const selector = std::get_if<VectorSelector>(&arguments[1]->node);
    if (selector == nullptr || !selector->name.empty()) {
      return fmt::format("expected label selectors as second argument of \"{}\"", function.name);
    }
  }
  return std::nullopt;
}

std::optional<std::string> check_aggregation(AggregateOperator op,
                                             const std::vector<ExprPtr>& arguments,
                                             bool loose) {
  const auto parameter = parameter_type(op);
  const std::size_t wanted = parameter ? 2 : 1;
  if (arguments.size() != wanted) {
    return fmt::format(
        "wrong number of arguments for aggregate expression provided, expected {}, got {}", wanted,
        arguments.size());
  }
  if (parameter && !fits(arguments.front()->type, *parameter, loose)) {
    return fmt::format("expected type {} in aggregation parameter, got {}", type_name(*parameter),
                       type_name(arguments.front()->type));
  }
  if (!fits(arguments.back()->type, ValueType::kInstantVector, loose)) {
    return fmt::format("expected type instant vector in aggregation expression, got {}",
                       type_name(arguments.back()->type));
  }
  return std::nullopt;
}

}  // namespace ceems::promql
