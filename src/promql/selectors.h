#pragma once

#include <functional>

#include "promql/ast.h"

namespace ceems::promql {

/// Where a selector stands: how far back of the evaluated time it looks in all.
struct SelectorUse {
  VectorSelector* selector = nullptr;
  std::int64_t range_ms = 0;  ///< 0: instant
  std::size_t offset = 0;     ///< in the query
};

/// Calls `visit` with each selector of the tree, from left to right, those of ranges and subqueries
/// too. The selector may be changed.
void for_each_selector(Expr& expr, const std::function<void(const SelectorUse&)>& visit);

}  // namespace ceems::promql
