#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "promql/ast.h"

namespace ceems::promql {

/// When a function or a piece of syntax came into the language.
enum class Since : std::uint8_t {
  k2,             ///< in Prometheus 2.42 and later
  k3,             ///< later in 2.x or in 3.x, without a switch
  kExperimental,  ///< behind --enable-feature=promql-experimental-functions
  kOnly2,         ///< holt_winters: renamed in 3.0
};

/// Signature of a function (https://prometheus.io/docs/prometheus/latest/querying/functions/).
struct Function {
  std::string_view name;
  ValueType result = ValueType::kInstantVector;
  std::array<ValueType, 5> arguments{};
  std::uint8_t count = 0;     ///< of `arguments` that are known by type; more have the last one's
  std::uint8_t at_least = 0;  ///< arguments that must be there
  std::uint8_t at_most = 0;   ///< kAnyNumber: no bound
  Since since = Since::k2;
  /// Reads series besides those its arguments select.
  bool hidden_selector = false;
};
inline constexpr std::uint8_t kAnyNumber = 0xFF;

std::span<const Function> all_functions();
/// Null where there is none of this name. Names are in lower case, exactly.
const Function* find_function(std::string_view name);

}  // namespace ceems::promql
