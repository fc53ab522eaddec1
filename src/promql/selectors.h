#pragma once

#include <functional>

#include "promql/ast.h"

namespace ceems::promql {

/// Calls `visit` with each child of a node, from left to right.
void for_each_below(const Expr& expr, const std::function<void(const Expr&)>& visit);

/// Calls `visit` with each node of the tree, parents before children and from left to right. The
/// selector of a MatrixSelector is part of its node.
void for_each_node(const Expr& expr, const std::function<void(const Expr&)>& visit);

/// Calls `visit` with each selector of the tree, including selectors in ranges and subqueries, from
/// left to right. It may change the selector.
void for_each_selector(Expr& expr, const std::function<void(VectorSelector&)>& visit);

}  // namespace ceems::promql
