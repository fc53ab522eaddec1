#include "advice/expression.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "base/strings.h"

namespace ceems::advice {
namespace {

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
constexpr double kMinute = 60;
constexpr double kHour = 3600;
constexpr double kDay = 86400;

/// One step of a rounding: up to `limit`, in multiples of `step`.
struct Step {
  double limit, step;
};

template <std::size_t N>
double round_up(double value, const std::array<Step, N>& steps, double last) {
  // A tiny excess, as arithmetic on numbers of bytes leaves it, does not lead to the next step.
  constexpr double kSlack = 1e-9;
  const auto found = std::ranges::lower_bound(steps, value, {}, &Step::limit);
  const double step = found == steps.end() ? last : found->step;
  return std::ceil(value / step - kSlack) * step;
}

Value number(double value) {
  return std::isfinite(value) ? Value(value) : Value();
}

bool holds(int order, std::string_view sign) {
  if (sign == "<") {
    return order < 0;
  }
  if (sign == "<=") {
    return order <= 0;
  }
  return sign == ">" ? order > 0 : order >= 0;
}

}  // namespace

double round_mem(double bytes) {
  constexpr std::array<Step, 3> kSteps{
      {{30 * kGiB, kGiB}, {100 * kGiB, 5 * kGiB}, {1000 * kGiB, 10 * kGiB}}};
  return round_up(bytes, kSteps, 100 * kGiB);
}

double round_time(double seconds) {
  constexpr std::array<Step, 3> kSteps{
      {{2 * kHour, 15 * kMinute}, {12 * kHour, kHour}, {3 * kDay, 6 * kHour}}};
  return round_up(seconds, kSteps, kDay);
}

/// Recursive descent over the text; each function returns the index of the node it added.
class ExpressionParser {
 public:
  explicit ExpressionParser(std::string_view text) : text_(text) {}

  Result<Expression> parse() {
    if (text_.size() > Expression::kMaxLength) {
      return fail(ErrorCode::kInvalidArgument, "the expression has more than {} bytes",
                  Expression::kMaxLength);
    }
    const auto root = disjunction();
    if (!error_) {
      skip_blanks();
      if (at_ < text_.size()) {
        wrong("expected an operator or the end");
      }
    }
    if (error_ || !root) {
      return fail(ErrorCode::kInvalidArgument, "{}", error_.value_or("expected an expression"));
    }
    return std::move(expression_);
  }

 private:
  using Kind = Expression::Kind;
  using Index = std::optional<std::uint16_t>;

  Index wrong(std::string_view message) {
    if (!error_) {
      error_ = fmt::format("column {}: {}", at_ + 1, message);
    }
    return std::nullopt;
  }

  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) {
      ++at_;
    }
  }
  bool take(std::string_view token) {
    skip_blanks();
    if (!text_.substr(at_).starts_with(token)) {
      return false;
    }
    at_ += token.size();
    return true;
  }

  Index add(Expression::Node node) {
    if (expression_.nodes_.size() >= Expression::kMaxNodes) {
      return wrong(fmt::format("the expression has more than {} parts", Expression::kMaxNodes));
    }
    expression_.nodes_.push_back(std::move(node));
    return static_cast<std::uint16_t>(expression_.nodes_.size() - 1);
  }
  Index add(Kind kind, Index left, Index right = 0) {
    if (!left || !right) {
      return std::nullopt;
    }
    return add({.kind = kind, .left = *left, .right = *right});
  }

  Index disjunction() {
    if (++depth_ > Expression::kMaxDepth) {
      return wrong(fmt::format("nested deeper than {} levels", Expression::kMaxDepth));
    }
    Index left = conjunction();
    while (left && take("||")) {
      left = add(Kind::kOr, left, conjunction());
    }
    --depth_;
    return left;
  }
  Index conjunction() {
    Index left = negation();
    while (left && take("&&")) {
      left = add(Kind::kAnd, left, negation());
    }
    return left;
  }
  Index negation() {
    skip_blanks();
    if (text_.substr(at_).starts_with('!') && !text_.substr(at_).starts_with("!=")) {
      ++at_;
      if (++depth_ > Expression::kMaxDepth) {
        return wrong(fmt::format("nested deeper than {} levels", Expression::kMaxDepth));
      }
      const Index inner = negation();
      --depth_;
      return add(Kind::kNot, inner);
    }
    return comparison();
  }
  Index comparison() {
    constexpr std::array<std::pair<std::string_view, Kind>, 6> kSigns{
        {{"<=", Kind::kLessOrEqual},
         {">=", Kind::kGreaterOrEqual},
         {"==", Kind::kEqual},
         {"!=", Kind::kNotEqual},
         {"<", Kind::kLess},
         {">", Kind::kGreater}}};
    const Index left = sum();
    if (!left) {
      return left;
    }
    for (const auto& [sign, kind] : kSigns) {
      if (take(sign)) {
        return add(kind, left, sum());
      }
    }
    return left;
  }
  Index sum() {
    Index left = product();
    while (left) {
      if (take("+")) {
        left = add(Kind::kAdd, left, product());
      } else if (take("-")) {
        left = add(Kind::kSubtract, left, product());
      } else {
        break;
      }
    }
    return left;
  }
  Index product() {
    Index left = sign();
    while (left) {
      if (take("*")) {
        left = add(Kind::kMultiply, left, sign());
      } else if (take("/")) {
        left = add(Kind::kDivide, left, sign());
      } else {
        break;
      }
    }
    return left;
  }
  Index sign() {
    if (!take("-")) {
      return primary();
    }
    if (++depth_ > Expression::kMaxDepth) {
      return wrong(fmt::format("nested deeper than {} levels", Expression::kMaxDepth));
    }
    const Index inner = sign();
    --depth_;
    return add(Kind::kNegative, inner);
  }

  Index primary() {
    if (take("(")) {
      const Index inner = disjunction();
      return inner && !take(")") ? wrong("expected ')'") : inner;
    }
    skip_blanks();
    const char next = at_ < text_.size() ? text_[at_] : '\0';
    if (next == '\'') {
      return quoted();
    }
    if (is_digit(next)) {
      return numeral();
    }
    return is_letter(next) || next == '_' ? word() : wrong("expected a value");
  }

  Index quoted() {
    const std::size_t end = text_.find('\'', at_ + 1);
    if (end == std::string_view::npos) {
      return wrong("expected a closing quote");
    }
    std::string text(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return add({.kind = Kind::kText, .text = std::move(text)});
  }

  Index numeral() {
    std::size_t end = at_;
    while (end < text_.size() && (is_digit(text_[end]) || text_[end] == '.')) {
      ++end;
    }
    if (end < text_.size() && (text_[end] == 'e' || text_[end] == 'E')) {
      ++end;
      if (end < text_.size() && (text_[end] == '+' || text_[end] == '-')) {
        ++end;
      }
      while (end < text_.size() && is_digit(text_[end])) {
        ++end;
      }
    }
    const auto value = parse_double(text_.substr(at_, end - at_));
    if (!value || !std::isfinite(*value)) {
      return wrong("malformed number");
    }
    at_ = end;
    return add({.kind = Kind::kNumber, .number = *value});
  }

  Index word() {
    const std::size_t start = at_;
    while (at_ < text_.size() && is_word(text_[at_], "_.")) {
      ++at_;
    }
    const std::string_view name = text_.substr(start, at_ - start);
    if (name == "true" || name == "false") {
      return add({.kind = Kind::kTruth, .number = name == "true" ? 1.0 : 0.0});
    }
    skip_blanks();
    if (text_.substr(at_).starts_with('(')) {
      return call(name, start);
    }
    if (name.ends_with('.') || name.find("..") != std::string_view::npos) {
      at_ = start;
      return wrong("malformed name");
    }
    return add({.kind = Kind::kName, .text = std::string(name)});
  }

  Index call(std::string_view name, std::size_t start) {
    ++at_;  // the parenthesis
    std::array<Index, 16> arguments;
    std::size_t count = 0;
    do {
      if (count == arguments.size()) {
        return wrong("too many arguments");
      }
      const Index argument = disjunction();
      if (!argument) {
        return argument;
      }
      arguments.at(count++) = argument;
    } while (take(","));
    if (!take(")")) {
      return wrong("expected ')'");
    }
    constexpr std::array<std::pair<std::string_view, Kind>, 5> kOfOne{
        {{"abs", Kind::kAbs},
         {"ceil", Kind::kCeil},
         {"round_mem", Kind::kRoundMem},
         {"round_time", Kind::kRoundTime},
         {"known", Kind::kKnown}}};
    for (const auto& [function, kind] : kOfOne) {
      if (name == function) {
        return count == 1 ? add(kind, arguments[0]) : wrong("expected one argument");
      }
    }
    if (name == "min" || name == "max") {
      Index left = arguments[0];
      for (std::size_t i = 1; i < count; ++i) {
        left = add(name == "min" ? Kind::kMin : Kind::kMax, left, arguments.at(i));
      }
      return left;
    }
    if (name == "if") {
      if (count != 2 && count != 3) {
        return wrong("expected two or three arguments");
      }
      const Index otherwise = count == 3 ? arguments[2] : unknown();
      return add(Kind::kIf, arguments[0], add(Kind::kBranch, arguments[1], otherwise));
    }
    at_ = start;
    return wrong(fmt::format("unknown function '{}'", printable(name, 40)));
  }

  /// A name that nothing has.
  Index unknown() { return add({.kind = Kind::kName}); }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t depth_ = 0;
  std::optional<std::string> error_;
  Expression expression_;
};

Result<Expression> Expression::compile(std::string_view text) {
  return ExpressionParser(text).parse();
}

std::vector<std::string> Expression::names() const {
  std::vector<std::string> all;
  for (const Node& node : nodes_) {
    if (node.kind == Kind::kName && !node.text.empty()) {
      all.push_back(node.text);
    }
  }
  std::ranges::sort(all);
  const auto [first, last] = std::ranges::unique(all);
  all.erase(first, last);
  return all;
}

Value Expression::evaluate(const Names& names) const {
  return nodes_.empty() ? Value() : value_at(nodes_.size() - 1, names);
}

Value Expression::logic(const Node& node, const Names& names) const {
  const bool dominant = node.kind == Kind::kOr;  // decides whatever the other side is
  const Value left = value_at(node.left, names);
  if (const bool* truth = std::get_if<bool>(&left); truth != nullptr && *truth == dominant) {
    return dominant;
  }
  const Value right = value_at(node.right, names);
  const bool* truth = std::get_if<bool>(&right);
  if (truth != nullptr && *truth == dominant) {
    return dominant;
  }
  return truth != nullptr && std::holds_alternative<bool>(left) ? Value(!dominant) : Value();
}

Value Expression::choice(const Node& node, const Names& names) const {
  const Value condition = value_at(node.left, names);
  const bool* truth = std::get_if<bool>(&condition);
  if (truth == nullptr) {
    return {};
  }
  const Node& branch = nodes_[node.right];
  return value_at(*truth ? branch.left : branch.right, names);
}

namespace {

Value compare(const Value& left, const Value& right, std::string_view sign) {
  const double* a = std::get_if<double>(&left);
  const double* b = std::get_if<double>(&right);
  if (a == nullptr || b == nullptr) {
    return {};
  }
  return holds(*a < *b ? -1 : (*a > *b ? 1 : 0), sign);
}

Value same(const Value& left, const Value& right, bool wanted) {
  if (!is_known(left) || left.index() != right.index()) {
    return {};
  }
  return (left == right) == wanted;
}

template <typename Operation>
Value arithmetic(const Value& left, const Value& right, const Operation& operation) {
  const double* a = std::get_if<double>(&left);
  const double* b = std::get_if<double>(&right);
  return a == nullptr || b == nullptr ? Value() : number(operation(*a, *b));
}

template <typename Operation>
Value of_number(const Value& value, const Operation& operation) {
  const double* a = std::get_if<double>(&value);
  return a == nullptr ? Value() : number(operation(*a));
}

}  // namespace

// The parser bounds the depth of nesting, and chains of operators are at most kMaxNodes long; a
// frame is small enough for that.
Value Expression::value_at(std::size_t index, const Names& names) const {
  const Node& node = nodes_[index];
  const auto left = [&] { return value_at(node.left, names); };
  const auto right = [&] { return value_at(node.right, names); };
  switch (node.kind) {
    case Kind::kNumber:
      return node.number;
    case Kind::kText:
      return std::string_view(node.text);
    case Kind::kTruth:
      return node.number > 0;
    case Kind::kName:
      return node.text.empty() ? Value() : names.value_of(node.text);
    case Kind::kNot: {
      const Value inner = left();
      const bool* truth = std::get_if<bool>(&inner);
      return truth == nullptr ? Value() : Value(!*truth);
    }
    case Kind::kAnd:
    case Kind::kOr:
      return logic(node, names);
    case Kind::kIf:
      return choice(node, names);
    case Kind::kKnown:
      return is_known(left());
    case Kind::kLess:
      return compare(left(), right(), "<");
    case Kind::kLessOrEqual:
      return compare(left(), right(), "<=");
    case Kind::kGreater:
      return compare(left(), right(), ">");
    case Kind::kGreaterOrEqual:
      return compare(left(), right(), ">=");
    case Kind::kEqual:
      return same(left(), right(), true);
    case Kind::kNotEqual:
      return same(left(), right(), false);
    case Kind::kAdd:
      return arithmetic(left(), right(), [](double a, double b) { return a + b; });
    case Kind::kSubtract:
      return arithmetic(left(), right(), [](double a, double b) { return a - b; });
    case Kind::kMultiply:
      return arithmetic(left(), right(), [](double a, double b) { return a * b; });
    case Kind::kDivide:
      return arithmetic(left(), right(), [](double a, double b) {
        return b == 0 ? std::numeric_limits<double>::quiet_NaN() : a / b;
      });
    case Kind::kMin:
      return arithmetic(left(), right(), [](double a, double b) { return std::min(a, b); });
    case Kind::kMax:
      return arithmetic(left(), right(), [](double a, double b) { return std::max(a, b); });
    case Kind::kNegative:
      return of_number(left(), [](double a) { return -a; });
    case Kind::kAbs:
      return of_number(left(), [](double a) { return std::abs(a); });
    case Kind::kCeil:
      return of_number(left(), [](double a) { return std::ceil(a); });
    case Kind::kRoundMem:
      return of_number(left(), round_mem);
    case Kind::kRoundTime:
      return of_number(left(), round_time);
    case Kind::kBranch:
      break;
  }
  return {};
}

}  // namespace ceems::advice
