#pragma once

#include <functional>

#include "promql/ast.h"

namespace ceems::promql {

/// Calls `visit` with each expression right below a node, from left to right.
void for_each_below(const Expr& expr, const std::function<void(const Expr&)>& visit);

/// Calls `visit` with each node of the tree, from the outside to the inside and from left to right.
/// The selector of a MatrixSelector is a part of its node.
void for_each_node(const Expr& expr, const std::function<void(const Expr&)>& visit);

/// Calls `visit` with each selector of the tree, from left to right, those of ranges and subqueries
/// too. The selector may be changed.
void for_each_selector(Expr& expr, const std::function<void(VectorSelector&)>& visit);

}  // namespace ceems::promql
