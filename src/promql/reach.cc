#include "promql/reach.h"

#include <algorithm>
#include <limits>
#include <variant>

#include "promql/functions.h"
#include "promql/selectors.h"

namespace ceems::promql {
namespace {

/// The times at which an expression is evaluated, relative to one of the members of Reach.
struct Times {
  std::optional<TimeSpan> Reach::* base = &Reach::around;
  TimeSpan span;
};

std::int64_t minus(std::int64_t number) {
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  return number == kLeast ? std::numeric_limits<std::int64_t>::max() : -number;
}

/// The times that a selector or subquery reads when it is evaluated at these times.
Times shifted(Times times, const TimeShift& shift, const Duration& range) {
  if (shift.at) {
    switch (shift.at->kind) {
      case AtModifier::Kind::kTime:
        times = {.base = &Reach::fixed, .span = {shift.at->time_ms, shift.at->time_ms}};
        break;
      case AtModifier::Kind::kStart:
        times = {.base = &Reach::at_start, .span = {}};
        break;
      case AtModifier::Kind::kEnd:
        times = {.base = &Reach::at_end, .span = {}};
        break;
    }
  }
  if (!range.ms || *range.ms < 0 || (shift.offset && !shift.offset->ms)) {
    using Limits = std::numeric_limits<std::int64_t>;
    times.span = {.from_ms = Limits::min(), .to_ms = Limits::max()};
    return times;
  }
  const std::int64_t back = shift.offset ? minus(shift.offset->ms.value_or(0)) : 0;
  times.span.from_ms = add_times(add_times(times.span.from_ms, back), minus(*range.ms));
  times.span.to_ms = add_times(times.span.to_ms, back);
  return times;
}

void take(Reach& reach, const Times& times) {
  std::optional<TimeSpan>& all = reach.*times.base;
  if (!all) {
    all = times.span;
    return;
  }
  all->from_ms = std::min(all->from_ms, times.span.from_ms);
  all->to_ms = std::max(all->to_ms, times.span.to_ms);
}

bool has_range(const Expr& expr) {
  if (const auto* const paren = std::get_if<Paren>(&expr.node)) {
    return has_range(*paren->expr);
  }
  return std::holds_alternative<VectorSelector>(expr.node) ||
         std::holds_alternative<MatrixSelector>(expr.node) ||
         std::holds_alternative<Subquery>(expr.node);
}

/// Whether VictoriaMetrics evaluates the argument over a range that it chooses, as in
/// "rate(sum(m))". A selector without a range reads one step, as it does by itself.
bool has_hidden_range(const Call& call, std::size_t index) {
  const Function& function = *call.function;
  if (has_range(*call.arguments[index])) {
    return false;
  }
  return function.since == Since::kMetricsql
             ? !function.aggregates && !function.name.starts_with("label")
             : index < function.count && function.arguments.at(index) == ValueType::kRangeVector;
}

void add(Reach& reach, const Expr& expr, const Times& times) {
  if (const auto* const selector = std::get_if<VectorSelector>(&expr.node)) {
    take(reach, shifted(times, selector->shift, {.ms = 0, .text = {}}));
    reach.looks_ahead = reach.looks_ahead || selector->ends == Ends::kSmoothed;
  } else if (const auto* const matrix = std::get_if<MatrixSelector>(&expr.node)) {
    take(reach, shifted(times, matrix->selector.shift, matrix->range));
    reach.looks_ahead = reach.looks_ahead || matrix->selector.ends == Ends::kSmoothed;
  } else if (const auto* const subquery = std::get_if<Subquery>(&expr.node)) {
    add(reach, *subquery->expr, shifted(times, subquery->shift, subquery->range));
  } else {
    if (const auto* const call = std::get_if<Call>(&expr.node)) {
      const std::string_view name = call->function->name;
      if (name == "start" || name == "end" || name == "range") {
        take(reach, {.base = name == "end" ? &Reach::at_end : &Reach::at_start, .span = {}});
      }
      for (std::size_t i = 0; i < call->arguments.size(); ++i) {
        const Duration unknown{.ms = std::nullopt, .text = {}};
        add(reach, *call->arguments[i],
            has_hidden_range(*call, i) ? shifted(times, {}, unknown) : times);
      }
      return;
    }
    for_each_below(expr, [&](const Expr& below) { add(reach, below, times); });
  }
}

}  // namespace

std::int64_t add_times(std::int64_t left, std::int64_t right) {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(left, right, &sum)) {
    using Limits = std::numeric_limits<std::int64_t>;
    return left < 0 ? Limits::min() : Limits::max();
  }
  return sum;
}

Reach reach_of(const Expr& query) {
  Reach reach;
  add(reach, query, {});
  return reach;
}

}  // namespace ceems::promql
