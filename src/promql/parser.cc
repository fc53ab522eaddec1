#include "promql/parser.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "promql/checks.h"
#include "promql/functions.h"
#include "promql/lexer.h"
#include "promql/literal.h"
#include "promql/matcher.h"
#include "promql/operators.h"

namespace ceems::promql {
namespace {

constexpr std::string_view kNameLabel = "__name__";

/// Recursive descent over the tokens. Each function starts at the first token of what it reads and
/// stops behind its last.
class Parser {
 public:
  Parser(std::string_view query, std::vector<Token> tokens, const ParseOptions& options)
      : query_(query), tokens_(std::move(tokens)), options_(&options) {}

  Parsed<ExprPtr> whole() {
    auto expr = expression(1);
    if (expr && current().kind != TokenKind::kEnd) {
      return unexpected("an operator or the end");
    }
    return expr;
  }

  Parsed<VectorSelector> whole_selector(bool empty) {
    auto parsed = selector(empty);
    if (parsed && current().kind != TokenKind::kEnd) {
      return unexpected("the end of the selector");
    }
    return parsed;
  }

 private:
  // Tokens.

  [[nodiscard]] const Token& current() const { return tokens_[next_]; }
  [[nodiscard]] const Token& following() const {
    return tokens_[std::min(next_ + 1, tokens_.size() - 1)];
  }
  const Token& take() {
    const Token& token = current();
    next_ = std::min(next_ + 1, tokens_.size() - 1);
    return token;
  }
  bool take_if(TokenKind kind) {
    if (current().kind != kind) {
      return false;
    }
    take();
    return true;
  }
  [[nodiscard]] bool at_keyword(std::string_view keyword) const {
    return current().kind == TokenKind::kWord && is_keyword(current().text, keyword);
  }
  bool take_keyword(std::string_view keyword) {
    if (!at_keyword(keyword)) {
      return false;
    }
    take();
    return true;
  }

  // Errors.

  [[nodiscard]] std::unexpected<SyntaxError> refuse(std::size_t offset, std::string message) const {
    return std::unexpected(syntax_error_at(query_, offset, std::move(message)));
  }
  [[nodiscard]] std::unexpected<SyntaxError> unexpected(std::string_view expected) const {
    const Token& token = current();
    const std::string shown =
        token.kind == TokenKind::kEnd
            ? std::string(describe(token.kind))
            : fmt::format("'{}'", token.text.substr(
                                      0, std::min<std::size_t>(token.text.size(), kLongestShown)));
    return refuse(token.offset, fmt::format("unexpected {}, expected {}", shown, expected));
  }
  Parsed<bool> expect(TokenKind kind) {
    if (!take_if(kind)) {
      return unexpected(fmt::format("'{}'", describe(kind)));
    }
    return true;
  }

  // Nodes.

  static ExprPtr make(Expr::Node node, ValueType type, std::size_t offset, unsigned depth = 1) {
    auto expr = std::make_unique<Expr>();
    expr->node = std::move(node);
    expr->type = type;
    expr->offset = offset;
    expr->depth = depth;
    return expr;
  }

  /// Counts how deep functions call each other.
  class Level {
   public:
    explicit Level(unsigned& depth) : depth_(&depth) { ++*depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;
    ~Level() { --*depth_; }

   private:
    unsigned* depth_;
  };

  // Expressions.

  Parsed<ExprPtr> expression(int weakest) {
    const Level level(level_);
    if (level_ > options_->deepest) {
      return refuse(current().offset, "query nested too deeply");
    }
    auto left = signed_expression();
    while (left) {
      const auto op = binary_operator(current());
      if (!op || precedence(*op) < weakest) {
        break;
      }
      left = binary(*op, std::move(*left));
    }
    return left;
  }

  Parsed<ExprPtr> binary(BinaryOperator op, ExprPtr left) {
    const std::size_t offset = take().offset;
    Binary node;
    node.op = op;
    auto modifiers = binary_modifiers(node);
    if (!modifiers) {
      return std::unexpected(std::move(modifiers).error());
    }
    auto right = expression(op == BinaryOperator::kPow ? kPowPrecedence : precedence(op) + 1);
    if (!right) {
      return right;
    }
    node.left = std::move(left);
    node.right = std::move(*right);
    if (auto problem = check_binary(node)) {
      return refuse(offset, std::move(*problem));
    }
    const unsigned depth = 1 + std::max(node.left->depth, node.right->depth);
    if (depth > kDeepestTree) {
      return refuse(offset, "too many operators in a row");
    }
    const bool scalar =
        node.left->type == ValueType::kScalar && node.right->type == ValueType::kScalar;
    const std::size_t begin = node.left->offset;
    return make(std::move(node), scalar ? ValueType::kScalar : ValueType::kInstantVector, begin,
                depth);
  }

  Parsed<bool> binary_modifiers(Binary& node) {
    node.return_bool = take_keyword("bool");
    const bool on = at_keyword("on");
    if (!on && !at_keyword("ignoring")) {
      return true;
    }
    take();
    VectorMatching matching;
    matching.on = on;
    auto labels = label_list();
    if (!labels) {
      return std::unexpected(std::move(labels).error());
    }
    matching.labels = std::move(*labels);
    const bool to_left = at_keyword("group_left");
    if (to_left || at_keyword("group_right")) {
      take();
      matching.group = to_left ? VectorMatching::Group::kLeft : VectorMatching::Group::kRight;
      if (current().kind == TokenKind::kLeftParen) {
        auto include = label_list();
        if (!include) {
          return std::unexpected(std::move(include).error());
        }
        matching.include = std::move(*include);
      }
    }
    node.matching = std::move(matching);
    return true;
  }

  Parsed<ExprPtr> signed_expression() {
    const Token& token = current();
    if (token.kind != TokenKind::kAdd && token.kind != TokenKind::kSub) {
      return operand();
    }
    const bool minus = take().kind == TokenKind::kSub;
    auto expr = expression(kPowPrecedence);
    if (!expr) {
      return expr;
    }
    if (auto* const number = std::get_if<NumberLiteral>(&(*expr)->node)) {
      number->value = minus ? -number->value : number->value;
      (*expr)->offset = token.offset;
      return expr;
    }
    if ((*expr)->type != ValueType::kScalar && (*expr)->type != ValueType::kInstantVector) {
      return refuse(token.offset,
                    fmt::format("a sign is for scalars and instant vectors only, not for a {}",
                                type_name((*expr)->type)));
    }
    const ValueType type = (*expr)->type;
    const unsigned depth = 1 + (*expr)->depth;
    return make(Unary{.minus = minus, .expr = std::move(*expr)}, type, token.offset, depth);
  }

  /// Something without operators, and what stands behind it: ranges, offsets, "@".
  Parsed<ExprPtr> operand() {
    auto expr = primary();
    while (expr) {
      if (current().kind == TokenKind::kLeftBracket) {
        expr = range(std::move(*expr));
      } else if (current().kind == TokenKind::kAt) {
        expr = at_modifier(std::move(*expr));
      } else if (at_keyword("offset")) {
        expr = offset_modifier(std::move(*expr));
      } else {
        break;
      }
    }
    return expr;
  }

  Parsed<ExprPtr> primary() {
    const Token& token = current();
    switch (token.kind) {
      case TokenKind::kNumber:
        take();
        return make(NumberLiteral{parse_number(token.text).value_or(0)}, ValueType::kScalar,
                    token.offset);
      case TokenKind::kDuration:
        return duration_as_number();
      case TokenKind::kString:
        take();
        return make(StringLiteral{unquote(token.text).value_or("")}, ValueType::kString,
                    token.offset);
      case TokenKind::kLeftParen:
        return parenthesis();
      case TokenKind::kLeftBrace:
        return vector();
      case TokenKind::kWord:
        return name();
      default:
        return unexpected("an expression");
    }
  }

  /// In Prometheus 3 "5m" stands for 300.
  Parsed<ExprPtr> duration_as_number() {
    const Token& token = current();
    if (!options_->prometheus3) {
      return unexpected("an expression");
    }
    take();
    const auto value = static_cast<double>(parse_duration_ms(token.text).value_or(0)) / 1000;
    return make(NumberLiteral{value}, ValueType::kScalar, token.offset);
  }

  Parsed<ExprPtr> parenthesis() {
    const std::size_t offset = take().offset;
    auto expr = expression(1);
    if (!expr) {
      return expr;
    }
    if (auto closed = expect(TokenKind::kRightParen); !closed) {
      return std::unexpected(std::move(closed).error());
    }
    const ValueType type = (*expr)->type;
    const unsigned depth = 1 + (*expr)->depth;
    return make(Paren{std::move(*expr)}, type, offset, depth);
  }

  /// What begins with a word: an aggregation, a call or a metric.
  Parsed<ExprPtr> name() {
    const Token& token = current();
    const Token& behind = following();
    const bool opens = behind.kind == TokenKind::kLeftParen;
    if (const auto op = aggregate_operator(token.text);
        op && (opens || (behind.kind == TokenKind::kWord &&
                         (is_keyword(behind.text, "by") || is_keyword(behind.text, "without"))))) {
      if (is_experimental(*op) && !options_->experimental) {
        return refuse(token.offset,
                      fmt::format("{}() is experimental and not allowed", operator_text(*op)));
      }
      return aggregation(*op);
    }
    if (opens) {
      return call();
    }
    return vector();
  }

  // Selectors.

  Parsed<ExprPtr> vector() {
    const std::size_t offset = current().offset;
    auto parsed = selector(false);
    if (!parsed) {
      return std::unexpected(std::move(parsed).error());
    }
    return make(std::move(*parsed), ValueType::kInstantVector, offset);
  }

  Parsed<VectorSelector> selector(bool empty) {
    const std::size_t offset = current().offset;
    VectorSelector parsed;
    if (current().kind == TokenKind::kWord) {
      if (!may_name_metric(current().text)) {
        return unexpected("an expression");
      }
      parsed.name = take().text;
    } else if (current().kind != TokenKind::kLeftBrace) {
      return unexpected("a metric name or '{'");
    }
    if (take_if(TokenKind::kLeftBrace)) {
      if (auto read = matchers(parsed); !read) {
        return std::unexpected(std::move(read).error());
      }
    }
    if (parsed.name.empty() && !empty && std::ranges::all_of(parsed.matchers, matches_empty)) {
      return refuse(offset, "vector selector must contain at least one non-empty matcher");
    }
    return parsed;
  }

  /// Behind '{', up to and with '}'.
  Parsed<bool> matchers(VectorSelector& parsed) {
    while (!take_if(TokenKind::kRightBrace)) {
      if (auto read = matcher(parsed); !read) {
        return read;
      }
      if (!take_if(TokenKind::kComma) && current().kind != TokenKind::kRightBrace) {
        return unexpected("',' or '}' behind a matcher");
      }
    }
    return true;
  }

  Parsed<bool> matcher(VectorSelector& parsed) {
    const Token& token = current();
    Matcher matcher;
    matcher.offset = token.offset;
    if (token.kind == TokenKind::kWord) {
      matcher.label = token.text;
    } else if (token.kind == TokenKind::kString && options_->prometheus3) {
      auto quoted = quoted_name();
      if (!quoted) {
        return std::unexpected(std::move(quoted).error());
      }
      matcher.label = std::move(*quoted);
    } else {
      return unexpected("a label name or '}'");
    }
    take();
    const auto op = match_operator(current().kind);
    if (!op && token.kind == TokenKind::kString) {
      return set_name(parsed, std::move(matcher.label), token.offset);
    }
    if (!op) {
      return unexpected("'=', '!=', '=~' or '!~' behind a label name");
    }
    take();
    matcher.op = *op;
    if (current().kind != TokenKind::kString) {
      return unexpected("a string as value of a label");
    }
    matcher.value = unquote(current().text).value_or("");
    if (auto problem = check_pattern(matcher)) {
      return refuse(current().offset, std::move(*problem));
    }
    take();
    if (matcher.label == kNameLabel && !parsed.name.empty()) {
      return refuse(matcher.offset, "metric name must not be set twice");
    }
    parsed.matchers.push_back(std::move(matcher));
    return true;
  }

  Parsed<std::string> quoted_name() {
    auto name = unquote(current().text).value_or("");
    if (name.empty() || !is_utf8(name)) {
      return refuse(current().offset, "a name in quotes must be UTF-8 and not empty");
    }
    return name;
  }

  Parsed<bool> set_name(VectorSelector& parsed, std::string name, std::size_t offset) {
    const bool named = std::ranges::any_of(
        parsed.matchers, [](const Matcher& known) { return known.label == kNameLabel; });
    if (named || !parsed.name.empty()) {
      return refuse(offset, "metric name must not be set twice");
    }
    parsed.name = std::move(name);
    return true;
  }

  // What stands behind a selector or subquery.

  Parsed<std::int64_t> duration(bool may_be_zero) {
    const Token& token = current();
    std::optional<std::int64_t> value;
    if (token.kind == TokenKind::kDuration) {
      value = parse_duration_ms(token.text);
    } else if (token.kind == TokenKind::kNumber && options_->prometheus3) {
      value = duration_ms_of_seconds(parse_number(token.text).value_or(-1));
    } else {
      return unexpected("a duration");
    }
    if (!value || *value < 0) {
      return refuse(token.offset, "duration out of range");
    }
    if (*value == 0 && !may_be_zero) {
      return refuse(token.offset, "duration must be greater than 0");
    }
    take();
    return *value;
  }

  Parsed<ExprPtr> range(ExprPtr expr) {
    const std::size_t offset = take().offset;
    auto range = duration(false);
    if (!range) {
      return std::unexpected(std::move(range).error());
    }
    if (take_if(TokenKind::kColon)) {
      return subquery(std::move(expr), *range, offset);
    }
    if (current().kind != TokenKind::kRightBracket) {
      return unexpected("':' or ']' behind the range");
    }
    take();
    auto* const selector = std::get_if<VectorSelector>(&expr->node);
    if (selector == nullptr) {
      return refuse(offset, "ranges only allowed for vector selectors");
    }
    if (selector->shift.offset_ms) {
      return refuse(offset, "no offset modifiers allowed before range");
    }
    if (selector->shift.at) {
      return refuse(offset, "no @ modifiers allowed before range");
    }
    return make(MatrixSelector{.selector = std::move(*selector), .range_ms = *range},
                ValueType::kRangeVector, expr->offset);
  }

  Parsed<ExprPtr> subquery(ExprPtr expr, std::int64_t range_ms, std::size_t offset) {
    Subquery node;
    node.range_ms = range_ms;
    if (current().kind != TokenKind::kRightBracket) {
      auto step = duration(false);
      if (!step) {
        return std::unexpected(std::move(step).error());
      }
      node.step_ms = *step;
    }
    if (auto closed = expect(TokenKind::kRightBracket); !closed) {
      return std::unexpected(std::move(closed).error());
    }
    if (expr->type != ValueType::kInstantVector) {
      return refuse(offset, fmt::format("subquery is only allowed on instant vector, got {}",
                                        type_name(expr->type)));
    }
    const std::size_t begin = expr->offset;
    const unsigned depth = 1 + expr->depth;
    node.expr = std::move(expr);
    return make(std::move(node), ValueType::kRangeVector, begin, depth);
  }

  /// The shift of a node that may have one; null for others.
  static TimeShift* shift_of(Expr& expr) {
    if (auto* const selector = std::get_if<VectorSelector>(&expr.node)) {
      return &selector->shift;
    }
    if (auto* const matrix = std::get_if<MatrixSelector>(&expr.node)) {
      return &matrix->selector.shift;
    }
    auto* const subquery = std::get_if<Subquery>(&expr.node);
    return subquery == nullptr ? nullptr : &subquery->shift;
  }

  Parsed<ExprPtr> offset_modifier(ExprPtr expr) {
    const std::size_t offset = take().offset;
    const bool minus = current().kind == TokenKind::kSub;
    if (minus || (current().kind == TokenKind::kAdd && options_->prometheus3)) {
      take();
    }
    auto value = duration(options_->prometheus3);
    if (!value) {
      return std::unexpected(std::move(value).error());
    }
    TimeShift* const shift = shift_of(*expr);
    if (shift == nullptr) {
      return refuse(offset,
                    "offset modifier must be preceded by an instant vector selector or range "
                    "vector selector or a subquery");
    }
    if (shift->offset_ms) {
      return refuse(offset, "offset may not be set multiple times");
    }
    shift->offset_ms = minus ? -*value : *value;
    return expr;
  }

  Parsed<ExprPtr> at_modifier(ExprPtr expr) {
    const std::size_t offset = take().offset;
    AtModifier at;
    if (at_keyword("start") || at_keyword("end")) {
      at.kind = at_keyword("start") ? AtModifier::Kind::kStart : AtModifier::Kind::kEnd;
      take();
      for (const TokenKind kind : {TokenKind::kLeftParen, TokenKind::kRightParen}) {
        if (auto there = expect(kind); !there) {
          return std::unexpected(std::move(there).error());
        }
      }
    } else {
      auto time = timestamp();
      if (!time) {
        return std::unexpected(std::move(time).error());
      }
      at.time_ms = *time;
    }
    TimeShift* const shift = shift_of(*expr);
    if (shift == nullptr) {
      return refuse(offset,
                    "@ modifier must be preceded by an instant vector selector or range vector "
                    "selector or a subquery");
    }
    if (shift->at) {
      return refuse(offset, "@ <timestamp> may not be set multiple times");
    }
    shift->at = at;
    return expr;
  }

  Parsed<std::int64_t> timestamp() {
    const bool minus = current().kind == TokenKind::kSub;
    if (minus || current().kind == TokenKind::kAdd) {
      take();
    }
    if (current().kind != TokenKind::kNumber) {
      return unexpected("a time in seconds, start() or end()");
    }
    const double seconds = parse_number(current().text).value_or(0) * (minus ? -1 : 1);
    const double milliseconds = std::round(seconds * 1000);
    if (!(std::abs(milliseconds) < 9.2e18)) {
      return refuse(current().offset, "timestamp out of bounds for @ modifier");
    }
    take();
    return static_cast<std::int64_t>(milliseconds);
  }

  // Calls and aggregations.

  Parsed<std::vector<ExprPtr>> arguments() {
    if (auto open = expect(TokenKind::kLeftParen); !open) {
      return std::unexpected(std::move(open).error());
    }
    std::vector<ExprPtr> parsed;
    if (take_if(TokenKind::kRightParen)) {
      return parsed;
    }
    while (true) {
      auto argument = expression(1);
      if (!argument) {
        return std::unexpected(std::move(argument).error());
      }
      parsed.push_back(std::move(*argument));
      if (take_if(TokenKind::kRightParen)) {
        return parsed;
      }
      if (!take_if(TokenKind::kComma)) {
        return unexpected("',' or ')' behind an argument");
      }
    }
  }

  static unsigned deepest(const std::vector<ExprPtr>& exprs) {
    unsigned depth = 0;
    for (const ExprPtr& expr : exprs) {
      depth = std::max(depth, expr->depth);
    }
    return depth;
  }

  [[nodiscard]] bool allowed(const Function& function) const {
    switch (function.since) {
      case Since::k2:
        return true;
      case Since::k3:
        return options_->prometheus3;
      case Since::kExperimental:
        return options_->experimental;
      case Since::kOnly2:
        return options_->prometheus2;
    }
    return false;
  }

  Parsed<ExprPtr> call() {
    const Token& token = take();
    const Function* const function = find_function(token.text);
    if (function == nullptr) {
      return refuse(token.offset, fmt::format("unknown function with name '{}'", token.text));
    }
    if (!allowed(*function)) {
      return refuse(token.offset, fmt::format("function {}() is not allowed", function->name));
    }
    auto given = arguments();
    if (!given) {
      return std::unexpected(std::move(given).error());
    }
    if (auto problem = check_call(*function, *given)) {
      return refuse(token.offset, std::move(*problem));
    }
    const unsigned depth = 1 + deepest(*given);
    return make(Call{.function = function, .arguments = std::move(*given)}, function->result,
                token.offset, depth);
  }

  Parsed<ExprPtr> aggregation(AggregateOperator op) {
    const std::size_t offset = take().offset;
    Aggregation node;
    node.op = op;
    auto before = grouping(node);
    if (!before) {
      return std::unexpected(std::move(before).error());
    }
    auto given = arguments();
    if (!given) {
      return std::unexpected(std::move(given).error());
    }
    if (!*before) {
      if (auto behind = grouping(node); !behind) {
        return std::unexpected(std::move(behind).error());
      }
    }
    if (auto problem = check_aggregation(op, *given)) {
      return refuse(offset, std::move(*problem));
    }
    const unsigned depth = 1 + deepest(*given);
    node.expr = std::move(given->back());
    if (given->size() == 2) {
      node.parameter = std::move(given->front());
    }
    return make(std::move(node), ValueType::kInstantVector, offset, depth);
  }

  /// by(…) or without(…), if it stands here. True if so.
  Parsed<bool> grouping(Aggregation& node) {
    const bool by = at_keyword("by");
    if (!by && !at_keyword("without")) {
      return false;
    }
    take();
    node.grouping = by ? Grouping::kBy : Grouping::kWithout;
    auto labels = label_list();
    if (!labels) {
      return std::unexpected(std::move(labels).error());
    }
    node.labels = std::move(*labels);
    return true;
  }

  /// (a, b,)
  Parsed<std::vector<std::string>> label_list() {
    if (auto open = expect(TokenKind::kLeftParen); !open) {
      return std::unexpected(std::move(open).error());
    }
    std::vector<std::string> labels;
    while (!take_if(TokenKind::kRightParen)) {
      if (current().kind == TokenKind::kString && options_->prometheus3) {
        auto name = quoted_name();
        if (!name) {
          return std::unexpected(std::move(name).error());
        }
        labels.push_back(std::move(*name));
      } else if (current().kind == TokenKind::kWord && may_name_label(current().text)) {
        labels.emplace_back(current().text);
      } else {
        return unexpected("a label name");
      }
      take();
      if (!take_if(TokenKind::kComma) && current().kind != TokenKind::kRightParen) {
        return unexpected("',' or ')' behind a label name");
      }
    }
    return labels;
  }

  static constexpr std::size_t kLongestShown = 40;
  /// Trees are taken down by recursion.
  static constexpr unsigned kDeepestTree = 1000;

  std::string_view query_;
  std::vector<Token> tokens_;
  const ParseOptions* options_;
  std::size_t next_ = 0;
  unsigned level_ = 0;
};

Parsed<std::vector<Token>> tokens_within(std::string_view query, const ParseOptions& options) {
  if (query.size() > options.longest) {
    return std::unexpected(syntax_error_at(
        query, 0,
        fmt::format("query of {} bytes is longer than {}", query.size(), options.longest)));
  }
  return tokenize(query);
}

}  // namespace

Parsed<ExprPtr> parse(std::string_view query, const ParseOptions& options) {
  auto tokens = tokens_within(query, options);
  if (!tokens) {
    return std::unexpected(std::move(tokens).error());
  }
  return Parser(query, std::move(*tokens), options).whole();
}

Parsed<VectorSelector> parse_selector(std::string_view text,
                                      const ParseOptions& options,
                                      bool empty) {
  auto tokens = tokens_within(text, options);
  if (!tokens) {
    return std::unexpected(std::move(tokens).error());
  }
  return Parser(text, std::move(*tokens), options).whole_selector(empty);
}

}  // namespace ceems::promql
