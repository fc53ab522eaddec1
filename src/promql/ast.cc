#include "promql/ast.h"

namespace ceems::promql {

std::string_view type_name(ValueType type) {
  switch (type) {
    case ValueType::kScalar:
      return "scalar";
    case ValueType::kString:
      return "string";
    case ValueType::kInstantVector:
      return "instant vector";
    case ValueType::kRangeVector:
      return "range vector";
  }
  return "";
}

}  // namespace ceems::promql
