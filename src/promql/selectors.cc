#include "promql/selectors.h"

#include <variant>

namespace ceems::promql {
namespace {

/// Visits the children of a node.
template <typename Visit>
struct Below {
  const Visit* visit;

  void to(const ExprPtr& expr) const {
    if (expr) {
      (*visit)(*expr);
    }
  }
  void operator()(const NumberLiteral& /*node*/) const {}
  void operator()(const StringLiteral& /*node*/) const {}
  void operator()(const VectorSelector& /*node*/) const {}
  void operator()(const MatrixSelector& /*node*/) const {}
  void operator()(const Subquery& node) const { to(node.expr); }
  void operator()(const Call& node) const {
    for (const ExprPtr& argument : node.arguments) {
      to(argument);
    }
  }
  void operator()(const Aggregation& node) const {
    to(node.parameter);
    to(node.expr);
  }
  void operator()(const Binary& node) const {
    to(node.left);
    to(node.right);
  }
  void operator()(const Unary& node) const { to(node.expr); }
  void operator()(const Paren& node) const { to(node.expr); }
};

template <typename Visit>
void visit_below(const Expr& expr, const Visit& visit) {
  std::visit(Below<Visit>{.visit = &visit}, expr.node);
}

}  // namespace

void for_each_below(const Expr& expr, const std::function<void(const Expr&)>& visit) {
  visit_below(expr, visit);
}

void for_each_node(const Expr& expr, const std::function<void(const Expr&)>& visit) {
  visit(expr);
  visit_below(expr, [&](const Expr& below) { for_each_node(below, visit); });
}

void for_each_selector(Expr& expr, const std::function<void(VectorSelector&)>& visit) {
  if (auto* const selector = std::get_if<VectorSelector>(&expr.node)) {
    visit(*selector);
  } else if (auto* const matrix = std::get_if<MatrixSelector>(&expr.node)) {
    visit(matrix->selector);
  } else {
    visit_below(expr, [&](Expr& below) { for_each_selector(below, visit); });
  }
}

}  // namespace ceems::promql
