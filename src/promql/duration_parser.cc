#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/result.h"
#include "promql/operators.h"
#include "promql/parts.h"
#include "promql/text/literal.h"

namespace ceems::promql {
namespace {

constexpr double kMsPerSecond = 1000;
constexpr double kMaxSeconds = 9'223'372'036;  // 292 years, as Prometheus

/// An expression that was read. Its text is made of what was understood, never copied.
struct Part {
  std::optional<double> seconds = {};  ///< nothing: depends on the request
  std::string text = {};
  bool literal = false;
  bool has_unit = false;  ///< of a literal
};

std::string text_of(double seconds, bool has_unit) {
  std::string text;
  if (has_unit) {
    if (seconds < 0) {
      text += '-';
    }
    append_duration(text, std::llround(std::abs(seconds) * kMsPerSecond));
  } else {
    append_number(text, seconds);
  }
  return text;
}

Part literal(double seconds, bool has_unit) {
  return {.seconds = seconds,
          .text = text_of(seconds, has_unit),
          .literal = true,
          .has_unit = has_unit};
}

std::optional<BinaryOperator> arithmetic(const Token& token) {
  const auto op = binary_operator(token);
  return op && precedence(*op) >= precedence(BinaryOperator::kAdd) && *op != BinaryOperator::kAtan2
             ? op
             : std::nullopt;
}

double calculated(BinaryOperator op, double left, double right) {
  switch (op) {
    case BinaryOperator::kAdd:
      return left + right;
    case BinaryOperator::kSub:
      return left - right;
    case BinaryOperator::kMul:
      return left * right;
    case BinaryOperator::kDiv:
      return left / right;
    case BinaryOperator::kMod:
      return std::fmod(left, right);
    default:
      return std::pow(left, right);
  }
}

class DurationParser {
 public:
  DurationParser(TokenCursor& tokens, const ParseOptions& options)
      : tokens_(&tokens), options_(&options) {}

  Parsed<Duration> range() {
    const std::size_t offset = tokens_->current().offset;
    CEEMS_TRY(part, options_->prometheus3 ? expression(1) : operand());
    return finished(part, offset, !options_->prometheus3 || part.literal);
  }

  Parsed<Duration> offset() {
    const std::size_t begin = tokens_->current().offset;
    const TokenKind kind = tokens_->current().kind;
    const TokenKind behind = tokens_->following().kind;
    const bool has_sign =
        kind == TokenKind::kSub || (kind == TokenKind::kAdd && options_->prometheus3);
    const bool is_whole = has_sign ? behind == TokenKind::kSub || behind == TokenKind::kAdd
                                   : kind == TokenKind::kLeftParen;
    if (is_whole && options_->prometheus3) {
      CEEMS_TRY(part, expression(1));
      return finished(part, begin, false);
    }
    if (has_sign) {
      tokens_->take();
    }
    CEEMS_TRY(part, operand());
    if (!options_->prometheus3 && part.seconds == 0.0) {
      return tokens_->refuse(begin, "duration must be greater than 0");
    }
    return finished(has_sign ? with_sign(std::move(part), kind == TokenKind::kSub) : part, begin,
                    false);
  }

 private:
  Parsed<Part> expression(int weakest) {
    if (++level_ > options_->max_depth) {
      return tokens_->refuse(tokens_->current().offset, "query nested too deeply");
    }
    auto left = signed_operand();
    while (left) {
      const auto op = arithmetic(tokens_->current());
      if (!op || precedence(*op) < weakest) {
        break;
      }
      left = binary(*op, std::move(*left));
    }
    --level_;
    return left;
  }

  Parsed<Part> binary(BinaryOperator op, Part left) {
    const std::size_t offset = tokens_->take().offset;
    CEEMS_TRY(right, expression(op == BinaryOperator::kPow ? kPowPrecedence : precedence(op) + 1));
    const bool divides = op == BinaryOperator::kDiv || op == BinaryOperator::kMod;
    if (divides && right.literal && right.seconds == 0.0) {
      return tokens_->refuse(offset, "division by zero");
    }
    if (left.seconds && right.seconds) {
      left.seconds = calculated(op, *left.seconds, *right.seconds);
    } else {
      left.seconds.reset();
    }
    left.text.append(" ").append(operator_text(op)).append(" ").append(right.text);
    left.literal = false;
    return left;
  }

  Parsed<Part> signed_operand() {
    const TokenKind kind = tokens_->current().kind;
    if (kind != TokenKind::kAdd && kind != TokenKind::kSub) {
      return operand();
    }
    tokens_->take();
    CEEMS_TRY(part, expression(kPowPrecedence));
    return with_sign(std::move(part), kind == TokenKind::kSub);
  }

  static Part with_sign(Part part, bool minus) {
    if (part.literal) {
      const double seconds = part.seconds.value_or(0);
      return literal(minus ? -seconds : seconds, part.has_unit);
    }
    part.text.insert(0, 1, minus ? '-' : '+');
    if (part.seconds && minus) {
      part.seconds = -*part.seconds;
    }
    return part;
  }

  Parsed<Part> operand() {
    const Token& token = tokens_->current();
    if (token.kind == TokenKind::kDuration && is_steps(token.text)) {
      tokens_->take();
      return Part{.text = std::string(token.text)};
    }
    if (token.kind == TokenKind::kDuration ||
        (token.kind == TokenKind::kNumber && options_->prometheus3)) {
      return literal_operand();
    }
    if (options_->prometheus3 && tokens_->take_if(TokenKind::kLeftParen)) {
      CEEMS_TRY(part, expression(1));
      CEEMS_TRY(tokens_->expect(TokenKind::kRightParen));
      part.text = "(" + part.text + ")";
      part.literal = false;
      return part;
    }
    return options_->prometheus3 && token.kind == TokenKind::kWord
               ? function()
               : tokens_->unexpected("a duration");
  }

  Parsed<Part> literal_operand() {
    const Token& token = tokens_->take();
    const bool has_unit = token.kind == TokenKind::kDuration;
    const double value =
        has_unit ? static_cast<double>(parse_duration_ms(token.text).value_or(0)) / kMsPerSecond
                 : parse_number(token.text).value_or(0);
    if (!(std::abs(value) <= kMaxSeconds)) {
      return tokens_->refuse(token.offset, "duration out of range");
    }
    return literal(value, has_unit);
  }

  /// step(), range(), max_of(a, b), min_of(a, b)
  Parsed<Part> function() {
    for (const std::string_view name : {"step", "range"}) {
      if (tokens_->take_keyword(name)) {
        CEEMS_TRY(tokens_->expect(TokenKind::kLeftParen));
        CEEMS_TRY(tokens_->expect(TokenKind::kRightParen));
        return Part{.text = std::string(name) + "()"};
      }
    }
    const bool larger = tokens_->at_keyword("max_of");
    if (!larger && !tokens_->at_keyword("min_of")) {
      return tokens_->unexpected("a duration");
    }
    tokens_->take();
    CEEMS_TRY(tokens_->expect(TokenKind::kLeftParen));
    CEEMS_TRY(left, expression(1));
    CEEMS_TRY(tokens_->expect(TokenKind::kComma));
    CEEMS_TRY(right, expression(1));
    CEEMS_TRY(tokens_->expect(TokenKind::kRightParen));
    Part part{.text = (larger ? "max_of(" : "min_of(") + left.text + ", " + right.text + ")"};
    if (left.seconds && right.seconds) {
      part.seconds = larger ? std::max(*left.seconds, *right.seconds)
                            : std::min(*left.seconds, *right.seconds);
    }
    return part;
  }

  /// `positive`: refuses a literal that is not greater than 0.
  [[nodiscard]] Parsed<Duration> finished(const Part& part,
                                          std::size_t offset,
                                          bool positive) const {
    if (part.literal && part.seconds) {
      const auto ms = part.has_unit
                          ? std::optional<std::int64_t>(std::llround(*part.seconds * kMsPerSecond))
                          : duration_ms_of_seconds(*part.seconds);
      if (!ms) {
        return tokens_->refuse(offset, "duration out of range");
      }
      if (positive && *ms <= 0) {
        return tokens_->refuse(offset, "duration must be greater than 0");
      }
      return Duration{.ms = ms, .text = {}};
    }
    Duration duration{.ms = std::nullopt, .text = part.text};
    if (part.seconds && std::abs(*part.seconds) <= kMaxSeconds) {
      duration.ms = static_cast<std::int64_t>(*part.seconds * kMsPerSecond);
    }
    return duration;
  }

  TokenCursor* tokens_;
  const ParseOptions* options_;
  unsigned level_ = 0;
};

}  // namespace

Parsed<Duration> read_range(TokenCursor& tokens, const ParseOptions& options) {
  return DurationParser(tokens, options).range();
}

Parsed<Duration> read_offset(TokenCursor& tokens, const ParseOptions& options) {
  return DurationParser(tokens, options).offset();
}

}  // namespace ceems::promql
