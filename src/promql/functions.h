#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "promql/ast.h"

namespace ceems::promql {

/// The versions of Prometheus that have a function.
enum class Since : std::uint8_t {
  k2,             ///< in Prometheus 2.42 and later
  k3,             ///< since a later 2.x or 3.x, without a feature flag
  kExperimental,  ///< behind a feature flag, as of 3.16
  kOnly2,         ///< holt_winters: renamed in 3.0
  kMetricsql,     ///< in VictoriaMetrics only
};

/// Signature of a function (https://prometheus.io/docs/prometheus/latest/querying/functions/).
struct Function {
  std::string_view name;
  ValueType result = ValueType::kInstantVector;
  std::array<ValueType, 5> arguments{};
  std::uint8_t count = 0;     ///< entries of `arguments` in use; the last is for all further ones
  std::uint8_t at_least = 0;  ///< number of required arguments
  std::uint8_t at_most = 0;   ///< kAnyNumber: no limit
  Since since = Since::k2;
  /// info(): reads series that its second argument selects, and any if there is none.
  bool hidden_selector = false;
  bool aggregates = false;  ///< of MetricsQL: may have by(…) or without(…)
};
inline constexpr std::uint8_t kAnyNumber = 0xFF;

std::span<const Function> all_functions();
/// Null if there is no function of this name. Names are case-sensitive.
const Function* find_function(std::string_view name);
/// One that only MetricsQL has, of any number of arguments. Null if there is none of this name.
const Function* find_metricsql_function(std::string_view name);

}  // namespace ceems::promql
