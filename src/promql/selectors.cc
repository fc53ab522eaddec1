#include "promql/selectors.h"

#include <variant>

namespace ceems::promql {
namespace {

struct Walk {
  const std::function<void(const SelectorUse&)>* visit;
  std::size_t offset = 0;

  void operator()(NumberLiteral& /*node*/) const {}
  void operator()(StringLiteral& /*node*/) const {}
  void operator()(VectorSelector& node) const { (*visit)({&node, 0, offset}); }
  void operator()(MatrixSelector& node) const { (*visit)({&node.selector, node.range_ms, offset}); }
  void operator()(Subquery& node) const { for_each_selector(*node.expr, *visit); }
  void operator()(Call& node) const {
    for (const ExprPtr& argument : node.arguments) {
      for_each_selector(*argument, *visit);
    }
  }
  void operator()(Aggregation& node) const {
    if (node.parameter) {
      for_each_selector(*node.parameter, *visit);
    }
    for_each_selector(*node.expr, *visit);
  }
  void operator()(Binary& node) const {
    for_each_selector(*node.left, *visit);
    for_each_selector(*node.right, *visit);
  }
  void operator()(Unary& node) const { for_each_selector(*node.expr, *visit); }
  void operator()(Paren& node) const { for_each_selector(*node.expr, *visit); }
};

}  // namespace

void for_each_selector(Expr& expr, const std::function<void(const SelectorUse&)>& visit) {
  std::visit(Walk{.visit = &visit, .offset = expr.offset}, expr.node);
}

}  // namespace ceems::promql
