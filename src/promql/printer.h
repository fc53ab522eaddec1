#pragma once

#include <string>

#include "promql/ast.h"

namespace ceems::promql {

/// The canonical text of a tree: no comments, one blank around operators, strings in double quotes.
/// parse(print(x)) equals x.
std::string print(const Expr& expr);
std::string print(const VectorSelector& selector);

}  // namespace ceems::promql
