#include "promql/operators.h"

#include <algorithm>
#include <array>
#include <span>

#include "base/strings.h"
#include "promql/literal.h"

namespace ceems::promql {
namespace {

struct BinaryRow {
  std::string_view text;
  BinaryOperator op;
  TokenKind token;  // kWord: by the text
  int precedence;
};
constexpr std::array kBinary = {
    BinaryRow{"or", BinaryOperator::kOr, TokenKind::kWord, 1},
    BinaryRow{"and", BinaryOperator::kAnd, TokenKind::kWord, 2},
    BinaryRow{"unless", BinaryOperator::kUnless, TokenKind::kWord, 2},
    BinaryRow{"==", BinaryOperator::kEqual, TokenKind::kEqual, 3},
    BinaryRow{"!=", BinaryOperator::kNotEqual, TokenKind::kNotEqual, 3},
    BinaryRow{"<", BinaryOperator::kLess, TokenKind::kLess, 3},
    BinaryRow{"<=", BinaryOperator::kLessEqual, TokenKind::kLessEqual, 3},
    BinaryRow{">", BinaryOperator::kGreater, TokenKind::kGreater, 3},
    BinaryRow{">=", BinaryOperator::kGreaterEqual, TokenKind::kGreaterEqual, 3},
    BinaryRow{"+", BinaryOperator::kAdd, TokenKind::kAdd, 4},
    BinaryRow{"-", BinaryOperator::kSub, TokenKind::kSub, 4},
    BinaryRow{"*", BinaryOperator::kMul, TokenKind::kMul, 5},
    BinaryRow{"/", BinaryOperator::kDiv, TokenKind::kDiv, 5},
    BinaryRow{"%", BinaryOperator::kMod, TokenKind::kMod, 5},
    BinaryRow{"atan2", BinaryOperator::kAtan2, TokenKind::kWord, 5},
    BinaryRow{"^", BinaryOperator::kPow, TokenKind::kPow, kPowPrecedence},
};

const BinaryRow& row(BinaryOperator op) {
  return *std::ranges::find(kBinary, op, &BinaryRow::op);
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

bool is_one_of(std::string_view word, std::span<const std::string_view> keywords) {
  return std::ranges::any_of(
      keywords, [&](std::string_view keyword) { return same_in_any_case(word, keyword); });
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
  return precedence(op) <= 2;
}

bool is_comparison(BinaryOperator op) {
  return precedence(op) == 3;
}

int precedence(BinaryOperator op) {
  return row(op).precedence;
}

std::optional<BinaryOperator> binary_operator(const Token& token) {
  for (const BinaryRow& known : kBinary) {
    if (token.kind == known.token &&
        (token.kind != TokenKind::kWord || same_in_any_case(token.text, known.text))) {
      return known.op;
    }
  }
  return std::nullopt;
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
      kAggregates, [&](const AggregateRow& known) { return same_in_any_case(word, known.text); });
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
