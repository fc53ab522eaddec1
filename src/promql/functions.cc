#include "promql/functions.h"

#include <algorithm>
#include <initializer_list>

namespace ceems::promql {
namespace {

constexpr ValueType kS = ValueType::kScalar;
constexpr ValueType kT = ValueType::kString;
constexpr ValueType kV = ValueType::kInstantVector;
constexpr ValueType kM = ValueType::kRangeVector;

constexpr Function make(std::string_view name,
                        std::initializer_list<ValueType> arguments,
                        int optional = 0,
                        Since since = Since::k2,
                        ValueType result = kV) {
  Function function{.name = name, .result = result, .since = since};
  for (const ValueType argument : arguments) {
    function.arguments.at(function.count++) = argument;
  }
  const bool any = optional < 0;
  function.at_least = static_cast<std::uint8_t>(function.count - (any ? 1 : optional));
  function.at_most = any ? kAnyNumber : function.count;
  return function;
}

/// The last argument may be given this many times.
constexpr Function up_to(Function function, std::uint8_t times) {
  function.at_most = static_cast<std::uint8_t>(function.count - 1 + times);
  return function;
}

constexpr Function with_hidden_selector(Function function) {
  function.hidden_selector = true;
  return function;
}

/// By name.
constexpr std::array kFunctions = {
    make("abs", {kV}),
    make("absent", {kV}),
    make("absent_over_time", {kM}),
    make("acos", {kV}),
    make("acosh", {kV}),
    make("asin", {kV}),
    make("asinh", {kV}),
    make("atan", {kV}),
    make("atanh", {kV}),
    make("avg_over_time", {kM}),
    make("ceil", {kV}),
    make("changes", {kM}),
    make("clamp", {kV, kS, kS}),
    make("clamp_max", {kV, kS}),
    make("clamp_min", {kV, kS}),
    make("cos", {kV}),
    make("cosh", {kV}),
    make("count_over_time", {kM}),
    make("day_of_month", {kV}, 1),
    make("day_of_week", {kV}, 1),
    make("day_of_year", {kV}, 1),
    make("days_in_month", {kV}, 1),
    make("deg", {kV}),
    make("delta", {kM}),
    make("deriv", {kM}),
    make("double_exponential_smoothing", {kM, kS, kS}, 0, Since::kExperimental),
    make("end", {}, 0, Since::kExperimental, kS),
    make("exp", {kV}),
    make("first_over_time", {kM}, 0, Since::k3),
    make("floor", {kV}),
    make("histogram_avg", {kV}, 0, Since::k3),
    make("histogram_count", {kV}),
    make("histogram_fraction", {kS, kS, kV}),
    make("histogram_quantile", {kS, kV}),
    up_to(make("histogram_quantiles", {kV, kT, kS}, 0, Since::kExperimental), 10),
    make("histogram_stddev", {kV}, 0, Since::k3),
    make("histogram_stdvar", {kV}, 0, Since::k3),
    make("histogram_sum", {kV}),
    make("holt_winters", {kM, kS, kS}, 0, Since::kOnly2),
    make("hour", {kV}, 1),
    make("idelta", {kM}),
    make("increase", {kM}),
    with_hidden_selector(make("info", {kV, kV}, 1, Since::kExperimental)),
    make("integral", {kM, kS}, 1, Since::kExperimental),
    make("irate", {kM}),
    make("label_join", {kV, kT, kT, kT}, -1),
    make("label_replace", {kV, kT, kT, kT, kT}),
    make("last_over_time", {kM}),
    make("ln", {kV}),
    make("log10", {kV}),
    make("log2", {kV}),
    make("mad_over_time", {kM}, 0, Since::kExperimental),
    make("max_of", {kS, kS}, 0, Since::kExperimental, kS),
    make("max_over_time", {kM}),
    make("min_of", {kS, kS}, 0, Since::kExperimental, kS),
    make("min_over_time", {kM}),
    make("minute", {kV}, 1),
    make("month", {kV}, 1),
    make("pi", {}, 0, Since::k2, kS),
    make("predict_linear", {kM, kS}),
    make("present_over_time", {kM}),
    make("quantile_over_time", {kS, kM}),
    make("rad", {kV}),
    make("range", {}, 0, Since::kExperimental, kS),
    make("rate", {kM}),
    make("resets", {kM}),
    make("round", {kV, kS}, 1),
    make("scalar", {kV}, 0, Since::k2, kS),
    make("sgn", {kV}),
    make("sin", {kV}),
    make("sinh", {kV}),
    make("sort", {kV}),
    make("sort_by_label", {kV, kT}, -1, Since::kExperimental),
    make("sort_by_label_desc", {kV, kT}, -1, Since::kExperimental),
    make("sort_desc", {kV}),
    make("sqrt", {kV}),
    make("start", {}, 0, Since::kExperimental, kS),
    make("start_timestamp", {kV}, 0, Since::kExperimental),
    make("stddev_over_time", {kM}),
    make("stdvar_over_time", {kM}),
    make("step", {}, 0, Since::kExperimental, kS),
    make("sum_over_time", {kM}),
    make("tan", {kV}),
    make("tanh", {kV}),
    make("time", {}, 0, Since::k2, kS),
    make("timestamp", {kV}),
    make("ts_of_first_over_time", {kM}, 0, Since::kExperimental),
    make("ts_of_last_over_time", {kM}, 0, Since::kExperimental),
    make("ts_of_max_over_time", {kM}, 0, Since::kExperimental),
    make("ts_of_min_over_time", {kM}, 0, Since::kExperimental),
    make("vector", {kS}),
    make("year", {kV}, 1),
};

static_assert(std::ranges::is_sorted(kFunctions, {}, &Function::name));

}  // namespace

std::span<const Function> all_functions() {
  return kFunctions;
}

const Function* find_function(std::string_view name) {
  const auto* const found = std::ranges::lower_bound(kFunctions, name, {}, &Function::name);
  return found != kFunctions.end() && found->name == name ? found : nullptr;
}

}  // namespace ceems::promql
