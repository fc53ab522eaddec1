#include "promql/operators.h"

#include <algorithm>
#include <array>
#include <span>

#include "base/strings.h"
#include "promql/text/literal.h"

namespace ceems::promql {
namespace {

struct BinaryRow {
  BinaryOperator op;
  std::string_view text;
  int precedence;
};
/// In the order of the operators.
constexpr std::array kBinary = {
    BinaryRow{BinaryOperator::kDefault, "default", kWeakest},
    BinaryRow{BinaryOperator::kIf, "if", 0},
    BinaryRow{BinaryOperator::kIfNot, "ifnot", 0},
    BinaryRow{BinaryOperator::kOr, "or", 1},
    BinaryRow{BinaryOperator::kAnd, "and", 2},
    BinaryRow{BinaryOperator::kUnless, "unless", 2},
    BinaryRow{BinaryOperator::kEqual, "==", 3},
    BinaryRow{BinaryOperator::kNotEqual, "!=", 3},
    BinaryRow{BinaryOperator::kLess, "<", 3},
    BinaryRow{BinaryOperator::kLessEqual, "<=", 3},
    BinaryRow{BinaryOperator::kGreater, ">", 3},
    BinaryRow{BinaryOperator::kGreaterEqual, ">=", 3},
    BinaryRow{BinaryOperator::kTrimUpper, "</", 3},
    BinaryRow{BinaryOperator::kTrimLower, ">/", 3},
    BinaryRow{BinaryOperator::kAdd, "+", 4},
    BinaryRow{BinaryOperator::kSub, "-", 4},
    BinaryRow{BinaryOperator::kMul, "*", 5},
    BinaryRow{BinaryOperator::kDiv, "/", 5},
    BinaryRow{BinaryOperator::kMod, "%", 5},
    BinaryRow{BinaryOperator::kAtan2, "atan2", 5},
    BinaryRow{BinaryOperator::kPow, "^", kPowPrecedence},
};
static_assert(std::ranges::is_sorted(kBinary, {}, &BinaryRow::op) &&
              kBinary.size() == static_cast<std::size_t>(BinaryOperator::kPow) + 1);

const BinaryRow& row(BinaryOperator op) {
  return kBinary[static_cast<std::size_t>(op)];
}

struct AggregateRow {
  std::string_view text;
  AggregateOperator op;
};
constexpr std::array kAggregates = {
    AggregateRow{"sum", AggregateOperator::kSum},
    AggregateRow{"avg", AggregateOperator::kAvg},
    AggregateRow{"count", AggregateOperator::kCount},
    AggregateRow{"min", AggregateOperator::kMin},
    AggregateRow{"max", AggregateOperator::kMax},
    AggregateRow{"group", AggregateOperator::kGroup},
    AggregateRow{"stddev", AggregateOperator::kStddev},
    AggregateRow{"stdvar", AggregateOperator::kStdvar},
    AggregateRow{"topk", AggregateOperator::kTopk},
    AggregateRow{"bottomk", AggregateOperator::kBottomk},
    AggregateRow{"count_values", AggregateOperator::kCountValues},
    AggregateRow{"quantile", AggregateOperator::kQuantile},
    AggregateRow{"limitk", AggregateOperator::kLimitk},
    AggregateRow{"limit_ratio", AggregateOperator::kLimitRatio},
};

/// Longer words are not keywords.
bool is_keyword(std::string_view word, std::string_view keyword) {
  return word.size() == keyword.size() && same_in_any_case(word, keyword);
}

bool is_one_of(std::string_view word, std::span<const std::string_view> keywords) {
  return std::ranges::any_of(keywords,
                             [&](std::string_view keyword) { return is_keyword(word, keyword); });
}

std::optional<BinaryOperator> binary_word(std::string_view word, bool metricsql) {
  using enum BinaryOperator;
  for (const BinaryOperator op : {kOr, kAnd, kUnless, kAtan2, kDefault, kIf, kIfNot}) {
    if (is_keyword(word, operator_text(op)) && (metricsql || precedence(op) > 0)) {
      return op;
    }
  }
  return std::nullopt;
}

}  // namespace

std::string_view operator_text(BinaryOperator op) {
  return row(op).text;
}

std::string_view operator_text(MatchOperator op) {
  switch (op) {
    case MatchOperator::kEqual:
      return "=";
    case MatchOperator::kNotEqual:
      return "!=";
    case MatchOperator::kMatches:
      return "=~";
    case MatchOperator::kNotMatches:
      return "!~";
  }
  return "=";
}

std::string_view operator_text(AggregateOperator op) {
  return std::ranges::find(kAggregates, op, &AggregateRow::op)->text;
}

bool is_set_operator(BinaryOperator op) {
  return precedence(op) == 1 || precedence(op) == 2;
}

bool is_comparison(BinaryOperator op) {
  return precedence(op) == 3 && !is_trim(op);
}

bool is_trim(BinaryOperator op) {
  return op == BinaryOperator::kTrimUpper || op == BinaryOperator::kTrimLower;
}

int precedence(BinaryOperator op) {
  return row(op).precedence;
}

std::optional<BinaryOperator> binary_operator(const Token& token, bool metricsql) {
  switch (token.kind) {
    case TokenKind::kWord:
      return binary_word(token.text, metricsql);
    case TokenKind::kTrimUpper:
      return BinaryOperator::kTrimUpper;
    case TokenKind::kTrimLower:
      return BinaryOperator::kTrimLower;
    case TokenKind::kEqual:
      return BinaryOperator::kEqual;
    case TokenKind::kNotEqual:
      return BinaryOperator::kNotEqual;
    case TokenKind::kLess:
      return BinaryOperator::kLess;
    case TokenKind::kLessEqual:
      return BinaryOperator::kLessEqual;
    case TokenKind::kGreater:
      return BinaryOperator::kGreater;
    case TokenKind::kGreaterEqual:
      return BinaryOperator::kGreaterEqual;
    case TokenKind::kAdd:
      return BinaryOperator::kAdd;
    case TokenKind::kSub:
      return BinaryOperator::kSub;
    case TokenKind::kMul:
      return BinaryOperator::kMul;
    case TokenKind::kDiv:
      return BinaryOperator::kDiv;
    case TokenKind::kMod:
      return BinaryOperator::kMod;
    case TokenKind::kPow:
      return BinaryOperator::kPow;
    default:
      return std::nullopt;
  }
}

std::optional<MatchOperator> match_operator(TokenKind kind) {
  switch (kind) {
    case TokenKind::kAssign:
      return MatchOperator::kEqual;
    case TokenKind::kNotEqual:
      return MatchOperator::kNotEqual;
    case TokenKind::kMatches:
      return MatchOperator::kMatches;
    case TokenKind::kNotMatches:
      return MatchOperator::kNotMatches;
    default:
      return std::nullopt;
  }
}

std::optional<AggregateOperator> aggregate_operator(std::string_view word) {
  const auto* const found = std::ranges::find_if(
      kAggregates, [&](const AggregateRow& known) { return is_keyword(word, known.text); });
  return found == kAggregates.end() ? std::nullopt : std::optional(found->op);
}

bool is_experimental(AggregateOperator op) {
  return op == AggregateOperator::kLimitk || op == AggregateOperator::kLimitRatio;
}

std::optional<ValueType> parameter_type(AggregateOperator op) {
  switch (op) {
    case AggregateOperator::kTopk:
    case AggregateOperator::kBottomk:
    case AggregateOperator::kQuantile:
    case AggregateOperator::kLimitk:
    case AggregateOperator::kLimitRatio:
      return ValueType::kScalar;
    case AggregateOperator::kCountValues:
      return ValueType::kString;
    default:
      return std::nullopt;
  }
}

bool may_name_metric(std::string_view word) {
  constexpr std::array<std::string_view, 6> kNever = {"atan2",       "bool",     "group_left",
                                                      "group_right", "ignoring", "on"};
  return is_plain_metric(word) && !parse_number(word) && !is_one_of(word, kNever);
}

bool may_name_label(std::string_view word) {
  constexpr std::array<std::string_view, 1> kNever = {"without"};
  return is_plain_label(word) && !parse_number(word) && !is_one_of(word, kNever);
}

}  // namespace ceems::promql
