#include "promql/printer.h"

#include <cmath>
#include <iterator>
#include <string_view>
#include <variant>

#include <fmt/format.h>

#include "promql/functions.h"
#include "promql/matcher/matcher.h"
#include "promql/operators.h"
#include "promql/text/literal.h"

namespace ceems::promql {
namespace {

constexpr std::size_t kUsualLength = 1024;  // of queries of dashboards

class Printer {
 public:
  Printer() { out_.reserve(kUsualLength); }

  void add(const Expr& expr) {
    std::visit(*this, expr.node);
    out_ += expr.keep_names ? " keep_metric_names" : "";
  }

  void operator()(const NumberLiteral& node) { append_number(out_, node.value); }
  void operator()(const StringLiteral& node) { append_quoted(out_, node.value); }

  void operator()(const VectorSelector& node) {
    selector(node);
    ends(node.ends);
    shift(node.shift);
  }

  void operator()(const MatrixSelector& node) {
    selector(node.selector);
    out_ += '[';
    duration(node.range);
    out_ += ']';
    ends(node.selector.ends);
    shift(node.selector.shift);
  }

  void operator()(const Subquery& node) {
    add(*node.expr);
    out_ += '[';
    duration(node.range);
    out_ += ':';
    if (node.step) {
      duration(*node.step);
    }
    out_ += ']';
    shift(node.shift);
  }

  void operator()(const Call& node) {
    out_ += node.function->name;
    grouping(node.grouping, node.labels);
    out_ += '(';
    std::string_view comma;
    for (const ExprPtr& argument : node.arguments) {
      out_ += comma;
      add(*argument);
      comma = ", ";
    }
    out_ += ')';
  }

  void operator()(const Aggregation& node) {
    out_ += operator_text(node.op);
    grouping(node.grouping, node.labels);
    out_ += '(';
    if (node.parameter) {
      add(*node.parameter);
      out_ += ", ";
    }
    add(*node.expr);
    out_ += ')';
  }

  void operator()(const Binary& node) {
    add(*node.left);
    out_ += ' ';
    out_ += operator_text(node.op);
    if (node.return_bool) {
      out_ += " bool";
    }
    if (node.matching) {
      matching(*node.matching);
    }
    fill(" fill_left (", node.fill_left);
    fill(" fill_right (", node.fill_right);
    out_ += ' ';
    add(*node.right);
  }

  void operator()(const Unary& node) {
    out_ += node.minus ? '-' : '+';
    add(*node.expr);
  }

  void operator()(const Paren& node) {
    out_ += '(';
    add(*node.expr);
    out_ += ')';
  }

  void selector(const VectorSelector& node) {
    const bool plain = may_name_metric(node.name);
    if (plain) {
      out_ += node.name;
    }
    const bool quoted_name = !plain && !node.name.empty();
    if (plain && node.matchers.empty()) {
      return;
    }
    out_ += '{';
    std::string_view comma;
    if (quoted_name) {
      append_quoted(out_, node.name);
      comma = ", ";
    }
    for (const Matcher& matcher : node.matchers) {
      out_ += comma;
      if (is_plain_label(matcher.label)) {
        out_ += matcher.label;
      } else {
        append_quoted(out_, matcher.label);
      }
      out_ += operator_text(matcher.op);
      append_quoted(out_, is_pattern(matcher) ? pattern_of(matcher.value) : matcher.value);
      comma = ", ";
    }
    out_ += '}';
  }

  std::string take() && { return std::move(out_); }

 private:
  /// Without parentheses around a list of words, as Grafana writes it for a variable with several
  /// values. They change nothing, but Prometheus 2 looks up the words of a list only without them,
  /// and otherwise tries the pattern on every value of the label.
  static std::string_view pattern_of(std::string_view pattern) {
    const bool enclosed = pattern.size() > 2 && pattern.starts_with('(') && is_list(pattern);
    return enclosed ? pattern.substr(1, pattern.size() - 2) : pattern;
  }

  void duration(const Duration& duration) {
    if (!duration.text.empty()) {
      out_ += duration.text;
      return;
    }
    const std::int64_t ms = duration.ms.value_or(0);
    out_ += ms < 0 ? "-" : "";
    append_duration(out_, ms < 0 ? -ms : ms);
  }

  void ends(Ends ends) {
    if (ends != Ends::kPlain) {
      out_ += ends == Ends::kAnchored ? " anchored" : " smoothed";
    }
  }

  void fill(std::string_view begin, const std::optional<double>& value) {
    if (value) {
      out_ += begin;
      append_number(out_, *value);
      out_ += ')';
    }
  }

  void shift(const TimeShift& shift) {
    if (shift.at) {
      at(*shift.at);
    }
    if (shift.offset) {
      out_ += " offset ";
      duration(*shift.offset);
    }
  }

  void at(const AtModifier& modifier) {
    switch (modifier.kind) {
      case AtModifier::Kind::kStart:
        out_ += " @ start()";
        return;
      case AtModifier::Kind::kEnd:
        out_ += " @ end()";
        return;
      case AtModifier::Kind::kTime:
        break;
    }
    const std::int64_t time = modifier.time_ms;
    const auto size =
        time < 0 ? -static_cast<std::uint64_t>(time) : static_cast<std::uint64_t>(time);
    fmt::format_to(std::back_inserter(out_), " @ {}{}.{:03}", time < 0 ? "-" : "", size / 1000,
                   size % 1000);
  }

  void grouping(Grouping grouping, const std::vector<std::string>& names) {
    if (grouping != Grouping::kNone) {
      out_ += grouping == Grouping::kBy ? " by " : " without ";
      labels(names);
      out_ += ' ';
    }
  }

  void labels(const std::vector<std::string>& names) {
    out_ += '(';
    std::string_view comma;
    for (const std::string& name : names) {
      out_ += comma;
      if (may_name_label(name)) {
        out_ += name;
      } else {
        append_quoted(out_, name);
      }
      comma = ", ";
    }
    out_ += ')';
  }

  void matching(const VectorMatching& matching) {
    out_ += matching.on ? " on " : " ignoring ";
    labels(matching.labels);
    if (matching.group != VectorMatching::Group::kOneToOne) {
      out_ += matching.group == VectorMatching::Group::kLeft ? " group_left " : " group_right ";
      labels(matching.include);
    }
  }

  std::string out_;
};

}  // namespace

std::string print(const Expr& expr) {
  Printer printer;
  printer.add(expr);
  return std::move(printer).take();
}

std::string print(const VectorSelector& selector) {
  Printer printer;
  printer(selector);
  return std::move(printer).take();
}

}  // namespace ceems::promql
