#include "promql/parser.h"

#include <algorithm>
#include <utility>

#include "base/result.h"
#include "base/strings.h"
#include "promql/checks.h"
#include "promql/functions.h"
#include "promql/operators.h"
#include "promql/parts.h"
#include "promql/text/characters.h"
#include "promql/text/lexer.h"
#include "promql/text/literal.h"

namespace ceems::promql {
namespace {

/// Recursive descent over the tokens. Each function starts at the first token of its part and stops
/// after the last one.
class Parser {
 public:
  Parser(std::string_view query, std::vector<Token> tokens, const ParseOptions& options)
      : tokens_(query, std::move(tokens)), options_(&options) {}

  Parsed<ExprPtr> whole() {
    auto expr = expression(kWeakest);
    if (expr && tokens_.current().kind != TokenKind::kEnd) {
      return tokens_.unexpected("an operator or the end");
    }
    return expr;
  }

  Parsed<VectorSelector> whole_selector(bool allow_empty) {
    auto parsed = read_selector(tokens_, *options_, allow_empty);
    if (parsed && tokens_.current().kind != TokenKind::kEnd) {
      return tokens_.unexpected("the end of the selector");
    }
    return parsed;
  }

 private:
  // Nodes.

  template <typename Node>
  static ExprPtr make(Node node, ValueType type, std::size_t offset, unsigned depth = 1) {
    auto expr = std::make_unique<Expr>();
    expr->node.emplace<Node>(std::move(node));
    expr->type = type;
    expr->offset = offset;
    expr->depth = depth;
    return expr;
  }

  /// Counts the depth of recursion.
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
    if (level_ > options_->max_depth) {
      return tokens_.refuse(tokens_.current().offset, "query nested too deeply");
    }
    auto left = signed_expression();
    while (left) {
      const auto op = binary_operator(tokens_.current(), options_->metricsql);
      if (!op || precedence(*op) < weakest || (is_trim(*op) && !options_->prometheus3)) {
        break;
      }
      left = binary(*op, std::move(*left));
    }
    return left;
  }

  Parsed<ExprPtr> binary(BinaryOperator op, ExprPtr left) {
    const std::size_t offset = tokens_.take().offset;
    Binary node;
    node.op = op;
    CEEMS_TRY(binary_modifiers(node));
    CEEMS_TRY(fill_modifiers(node));
    CEEMS_TRY(right, expression(op == BinaryOperator::kPow ? kPowPrecedence : precedence(op) + 1));
    node.left = std::move(left);
    node.right = std::move(right);
    if (auto problem = check_binary(node)) {
      return tokens_.refuse(offset, std::move(*problem));
    }
    const unsigned depth = 1 + std::max(node.left->depth, node.right->depth);
    if (depth > kMaxTreeDepth) {
      return tokens_.refuse(offset, "too many operators in a row");
    }
    const bool scalar =
        node.left->type == ValueType::kScalar && node.right->type == ValueType::kScalar;
    const std::size_t begin = node.left->offset;
    return make(std::move(node), scalar ? ValueType::kScalar : ValueType::kInstantVector, begin,
                depth);
  }

  Parsed<bool> binary_modifiers(Binary& node) {
    node.return_bool = tokens_.take_keyword("bool");
    const bool on = tokens_.at_keyword("on");
    if (!on && !tokens_.at_keyword("ignoring")) {
      return true;
    }
    tokens_.take();
    VectorMatching matching;
    matching.on = on;
    CEEMS_TRY(labels, read_labels(tokens_, *options_));
    matching.labels = std::move(labels);
    const bool to_left = tokens_.at_keyword("group_left");
    if (to_left || tokens_.at_keyword("group_right")) {
      tokens_.take();
      matching.group = to_left ? VectorMatching::Group::kLeft : VectorMatching::Group::kRight;
      if (tokens_.current().kind == TokenKind::kLeftParen) {
        CEEMS_TRY(include, read_labels(tokens_, *options_));
        matching.include = std::move(include);
      }
    }
    node.matching = std::move(matching);
    return true;
  }

  /// fill(0), fill_left(0) and fill_right(0), which are metrics without a parenthesis.
  Parsed<bool> fill_modifiers(Binary& node) {
    while (options_->experimental && tokens_.following().kind == TokenKind::kLeftParen) {
      const bool both = tokens_.at_keyword("fill");
      const bool left = tokens_.at_keyword("fill_left");
      if (!both && !left && !tokens_.at_keyword("fill_right")) {
        break;
      }
      std::optional<double>& first = left || both ? node.fill_left : node.fill_right;
      if (first || (both && node.fill_right)) {
        return tokens_.unexpected("an expression");
      }
      tokens_.take();
      CEEMS_TRY(value, fill_value());
      first = value;
      if (both) {
        node.fill_right = value;
        break;
      }
    }
    return true;
  }

  Parsed<double> fill_value() {
    CEEMS_TRY(tokens_.expect(TokenKind::kLeftParen));
    const bool minus = tokens_.take_if(TokenKind::kSub);
    if (!minus) {
      tokens_.take_if(TokenKind::kAdd);
    }
    const Token& token = tokens_.current();
    const auto ms =
        token.kind == TokenKind::kDuration ? parse_duration_ms(token.text) : std::nullopt;
    if (token.kind != TokenKind::kNumber && !ms) {
      return tokens_.unexpected("a number");
    }
    const double value =
        ms ? static_cast<double>(*ms) / 1000 : parse_number(token.text).value_or(0);
    tokens_.take();
    CEEMS_TRY(tokens_.expect(TokenKind::kRightParen));
    return minus ? -value : value;
  }

  Parsed<ExprPtr> signed_expression() {
    const Token& token = tokens_.current();
    if (token.kind != TokenKind::kAdd && token.kind != TokenKind::kSub) {
      return operand();
    }
    const bool minus = tokens_.take().kind == TokenKind::kSub;
    CEEMS_TRY(expr, expression(kPowPrecedence));
    if (auto* const number = std::get_if<NumberLiteral>(&expr->node)) {
      number->value = minus ? -number->value : number->value;
      expr->offset = token.offset;
      return expr;
    }
    if (expr->type != ValueType::kScalar && expr->type != ValueType::kInstantVector) {
      return tokens_.refuse(
          token.offset, fmt::format("a sign is for scalars and instant vectors only, not for a {}",
                                    type_name(expr->type)));
    }
    const ValueType type = expr->type;
    const unsigned depth = 1 + expr->depth;
    return make(Unary{.minus = minus, .expr = std::move(expr)}, type, token.offset, depth);
  }

  /// An operand with the ranges, offsets and "@" after it.
  Parsed<ExprPtr> operand() {
    auto expr = primary();
    while (expr) {
      if (tokens_.current().kind == TokenKind::kLeftBracket) {
        expr = range(std::move(*expr));
      } else if (tokens_.current().kind == TokenKind::kAt) {
        expr = at_modifier(std::move(*expr));
      } else if (tokens_.at_keyword("offset")) {
        expr = offset_modifier(std::move(*expr));
      } else if (tokens_.at_keyword("anchored") && options_->prometheus3) {
        expr = ends_modifier(std::move(*expr), Ends::kAnchored);
      } else if (tokens_.at_keyword("smoothed") && options_->prometheus3) {
        expr = ends_modifier(std::move(*expr), Ends::kSmoothed);
      } else if (tokens_.at_keyword("keep_metric_names") && options_->metricsql) {
        tokens_.take();
        (*expr)->keep_names = true;
      } else {
        break;
      }
    }
    return expr;
  }

  Parsed<ExprPtr> primary() {
    const Token& token = tokens_.current();
    switch (token.kind) {
      case TokenKind::kNumber:
        tokens_.take();
        return make(NumberLiteral{parse_number(token.text).value_or(0)}, ValueType::kScalar,
                    token.offset);
      case TokenKind::kDuration:
        return duration_as_number();
      case TokenKind::kString:
        tokens_.take();
        return make(StringLiteral{unquote(token.text).value_or("")}, ValueType::kString,
                    token.offset);
      case TokenKind::kLeftParen:
        return parenthesis();
      case TokenKind::kLeftBrace:
        return vector();
      case TokenKind::kWord:
        return name();
      default:
        return tokens_.unexpected("an expression");
    }
  }

  /// In Prometheus 3 "5m" stands for 300.
  Parsed<ExprPtr> duration_as_number() {
    const Token& token = tokens_.current();
    if (!options_->prometheus3 || is_steps(token.text)) {
      return tokens_.unexpected("an expression");
    }
    tokens_.take();
    const auto value = static_cast<double>(parse_duration_ms(token.text).value_or(0)) / 1000;
    return make(NumberLiteral{value}, ValueType::kScalar, token.offset);
  }

  Parsed<ExprPtr> parenthesis() {
    const std::size_t offset = tokens_.take().offset;
    CEEMS_TRY(expr, expression(kWeakest));
    CEEMS_TRY(tokens_.expect(TokenKind::kRightParen));
    const ValueType type = expr->type;
    const unsigned depth = 1 + expr->depth;
    return make(Paren{std::move(expr)}, type, offset, depth);
  }

  /// An aggregation, a call or a metric, all of which begin with a word.
  Parsed<ExprPtr> name() {
    const Token& token = tokens_.current();
    const Token& behind = tokens_.following();
    const bool opens = behind.kind == TokenKind::kLeftParen;
    const bool groups =
        behind.kind == TokenKind::kWord &&
        (same_in_any_case(behind.text, "by") || same_in_any_case(behind.text, "without"));
    if (const auto op = opens || groups ? aggregate_operator(token.text) : std::nullopt) {
      if (is_experimental(*op) && !options_->experimental) {
        return tokens_.refuse(
            token.offset, fmt::format("{}() is experimental and not allowed", operator_text(*op)));
      }
      return aggregation(*op);
    }
    const Function* const own = options_->metricsql ? find_metricsql_function(token.text) : nullptr;
    if (opens || (groups && own != nullptr && own->aggregates)) {
      return call(own);
    }
    return vector();
  }

  // Selectors.

  Parsed<ExprPtr> vector() {
    const std::size_t offset = tokens_.current().offset;
    CEEMS_TRY(parsed, read_selector(tokens_, *options_, false));
    return make(std::move(parsed), ValueType::kInstantVector, offset);
  }

  // Suffixes of selectors and subqueries.

  Parsed<ExprPtr> range(ExprPtr expr) {
    const std::size_t offset = tokens_.take().offset;
    CEEMS_TRY(range, read_range(tokens_, *options_));
    if (tokens_.take_if(TokenKind::kColon)) {
      return subquery(std::move(expr), std::move(range), offset);
    }
    if (tokens_.current().kind != TokenKind::kRightBracket) {
      return tokens_.unexpected("':' or ']' behind the range");
    }
    tokens_.take();
    auto* const selector = std::get_if<VectorSelector>(&expr->node);
    if (selector == nullptr && options_->metricsql) {
      return made_subquery(std::move(expr), std::move(range), {}, offset);
    }
    if (selector == nullptr) {
      return tokens_.refuse(offset, "ranges only allowed for vector selectors");
    }
    if (selector->shift.offset) {
      return tokens_.refuse(offset, "no offset modifiers allowed before range");
    }
    if (selector->shift.at) {
      return tokens_.refuse(offset, "no @ modifiers allowed before range");
    }
    MatrixSelector matrix{.selector = std::move(*selector), .range = std::move(range)};
    expr->node = std::move(matrix);
    expr->type = range_type();
    return expr;
  }

  Parsed<ExprPtr> subquery(ExprPtr expr, Duration range, std::size_t offset) {
    std::optional<Duration> step;
    if (tokens_.current().kind != TokenKind::kRightBracket) {
      CEEMS_TRY(given, read_range(tokens_, *options_));
      step = std::move(given);
    }
    CEEMS_TRY(tokens_.expect(TokenKind::kRightBracket));
    return made_subquery(std::move(expr), std::move(range), std::move(step), offset);
  }

  /// What has a range is taken for an instant vector in MetricsQL wherever one is expected.
  [[nodiscard]] ValueType range_type() const {
    return options_->metricsql ? ValueType::kInstantVector : ValueType::kRangeVector;
  }

  [[nodiscard]] Parsed<ExprPtr> made_subquery(ExprPtr expr,
                                              Duration range,
                                              std::optional<Duration> step,
                                              std::size_t offset) const {
    if (!fits(expr->type, ValueType::kInstantVector, options_->metricsql)) {
      return tokens_.refuse(
          offset,
          fmt::format("subquery is only allowed on instant vector, got {}", type_name(expr->type)));
    }
    const std::size_t begin = expr->offset;
    const unsigned depth = 1 + expr->depth;
    return make(Subquery{.expr = std::move(expr),
                         .range = std::move(range),
                         .step = std::move(step),
                         .shift = {}},
                range_type(), begin, depth);
  }

  /// The shift of a node, or null if the node cannot have one.
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
    const std::size_t offset = tokens_.take().offset;
    CEEMS_TRY(value, read_offset(tokens_, *options_));
    TimeShift* const shift = shift_of(*expr);
    if (shift == nullptr) {
      return tokens_.refuse(
          offset,
          "offset modifier must be preceded by an instant vector selector or range "
          "vector selector or a subquery");
    }
    if (shift->offset) {
      return tokens_.refuse(offset, "offset may not be set multiple times");
    }
    shift->offset = std::move(value);
    return expr;
  }

  Parsed<ExprPtr> ends_modifier(ExprPtr expr, Ends ends) {
    const std::size_t offset = tokens_.take().offset;
    auto* selector = std::get_if<VectorSelector>(&expr->node);
    if (auto* const matrix = std::get_if<MatrixSelector>(&expr->node)) {
      selector = &matrix->selector;
    }
    if (selector == nullptr) {
      return tokens_.refuse(offset, "anchored and smoothed are for selectors only");
    }
    if (selector->ends != Ends::kPlain && selector->ends != ends) {
      return tokens_.refuse(offset, "anchored and smoothed modifiers cannot be used together");
    }
    selector->ends = ends;
    return expr;
  }

  Parsed<ExprPtr> at_modifier(ExprPtr expr) {
    const std::size_t offset = tokens_.take().offset;
    AtModifier at;
    if (tokens_.at_keyword("start") || tokens_.at_keyword("end")) {
      at.kind = tokens_.at_keyword("start") ? AtModifier::Kind::kStart : AtModifier::Kind::kEnd;
      tokens_.take();
      for (const TokenKind kind : {TokenKind::kLeftParen, TokenKind::kRightParen}) {
        CEEMS_TRY(tokens_.expect(kind));
      }
    } else {
      CEEMS_TRY(time, read_timestamp(tokens_, *options_));
      at.time_ms = time;
    }
    TimeShift* const shift = shift_of(*expr);
    if (shift == nullptr) {
      return tokens_.refuse(
          offset,
          "@ modifier must be preceded by an instant vector selector or range vector "
          "selector or a subquery");
    }
    if (shift->at) {
      return tokens_.refuse(offset, "@ <timestamp> may not be set multiple times");
    }
    shift->at = at;
    return expr;
  }

  // Calls and aggregations.

  Parsed<std::vector<ExprPtr>> arguments() {
    CEEMS_TRY(tokens_.expect(TokenKind::kLeftParen));
    std::vector<ExprPtr> parsed;
    if (tokens_.take_if(TokenKind::kRightParen)) {
      return parsed;
    }
    while (true) {
      CEEMS_TRY(argument, expression(kWeakest));
      parsed.push_back(std::move(argument));
      if (tokens_.take_if(TokenKind::kRightParen)) {
        return parsed;
      }
      if (!tokens_.take_if(TokenKind::kComma)) {
        return tokens_.unexpected("',' or ')' behind an argument");
      }
      if (options_->metricsql && tokens_.take_if(TokenKind::kRightParen)) {
        return parsed;
      }
    }
  }

  static unsigned max_depth(const std::vector<ExprPtr>& exprs) {
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
      case Since::kMetricsql:
        return options_->metricsql;
    }
    return false;
  }

  /// `own`: a function of MetricsQL; null if the word is none.
  Parsed<ExprPtr> call(const Function* own) {
    const Token& token = tokens_.take();
    const Function* const function = own != nullptr ? own : find_function(token.text);
    if (function == nullptr) {
      return tokens_.refuse(token.offset,
                            fmt::format("unknown function with name '{}'", token.text));
    }
    if (!allowed(*function)) {
      return tokens_.refuse(token.offset,
                            fmt::format("function {}() is not allowed", function->name));
    }
    Call node{.function = function, .arguments = {}, .labels = {}};
    CEEMS_TRY(before, function->aggregates ? grouping(node) : Parsed<bool>(true));
    CEEMS_TRY(given, arguments());
    if (!before) {
      CEEMS_TRY(grouping(node));
    }
    if (auto problem = check_call(*function, given, options_->metricsql)) {
      return tokens_.refuse(token.offset, std::move(*problem));
    }
    const unsigned depth = 1 + max_depth(given);
    node.arguments = std::move(given);
    return make(std::move(node), function->result, token.offset, depth);
  }

  Parsed<ExprPtr> aggregation(AggregateOperator op) {
    const std::size_t offset = tokens_.take().offset;
    Aggregation node;
    node.op = op;
    CEEMS_TRY(before, grouping(node));
    CEEMS_TRY(given, arguments());
    if (!before) {
      CEEMS_TRY(grouping(node));
    }
    if (auto problem = check_aggregation(op, given, options_->metricsql)) {
      return tokens_.refuse(offset, std::move(*problem));
    }
    const unsigned depth = 1 + max_depth(given);
    node.expr = std::move(given.back());
    if (given.size() == 2) {
      node.parameter = std::move(given.front());
    }
    return make(std::move(node), ValueType::kInstantVector, offset, depth);
  }

  /// Reads by(…) or without(…) if there is one here. Returns whether there is.
  template <typename Node>
  Parsed<bool> grouping(Node& node) {
    const bool by = tokens_.at_keyword("by");
    if (!by && !tokens_.at_keyword("without")) {
      return false;
    }
    tokens_.take();
    node.grouping = by ? Grouping::kBy : Grouping::kWithout;
    CEEMS_TRY(labels, read_labels(tokens_, *options_));
    node.labels = std::move(labels);
    return true;
  }

  /// Limits the depth of the tree, because its destructor is recursive.
  static constexpr unsigned kMaxTreeDepth = 1000;

  TokenCursor tokens_;
  const ParseOptions* options_;
  unsigned level_ = 0;
};

Parsed<std::vector<Token>> tokens_within(std::string_view query, const ParseOptions& options) {
  constexpr std::size_t kMaxWithLists = std::size_t{1} << 20U;
  if (query.size() > std::max(options.max_bytes, kMaxWithLists) ||
      size_without_lists(query) > options.max_bytes) {
    return std::unexpected(syntax_error_at(
        query, 0,
        fmt::format("query of {} bytes is longer than {}", query.size(), options.max_bytes)));
  }
  auto tokens = tokenize(
      query, {.wide_names = options.experimental || options.metricsql, .steps = options.metricsql});
  if (tokens) {
    const auto patterns = std::ranges::count_if(*tokens, [](const Token& token) {
      return token.kind == TokenKind::kMatches || token.kind == TokenKind::kNotMatches;
    });
    if (std::cmp_greater(patterns, options.max_patterns)) {
      return std::unexpected(
          syntax_error_at(query, 0,
                          fmt::format("query with {} regular expressions, more than {}", patterns,
                                      options.max_patterns)));
    }
  }
  return tokens;
}

/// The end of the string that begins at `begin` with its quote: after the closing quote, or that of
/// the text.
std::size_t end_of_string(std::string_view text, std::size_t begin) {
  const char quote = text[begin];
  for (std::size_t at = begin + 1; at < text.size(); ++at) {
    if (text[at] == quote) {
      return at + 1;
    }
    at += text[at] == '\\' && quote != '`' ? 1U : 0U;
  }
  return text.size();
}

}  // namespace

std::size_t size_without_lists(std::string_view text) {
  constexpr ByteSet kInLists = ByteSet::letters_digits_and("-:/| .\\()");
  constexpr std::size_t kQuotes = 2;
  std::size_t size = text.size();
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] == '#') {
      at = std::min(text.find('\n', at), text.size());
    } else if (text[at] == '"' || text[at] == '\'' || text[at] == '`') {
      const std::size_t end = end_of_string(text, at);
      const bool closed = end - at >= kQuotes && text[end - 1] == text[at];
      if (closed && kInLists.contains_all(text.substr(at + 1, end - at - kQuotes))) {
        size -= end - at - kQuotes;
      }
      at = end;
    } else {
      ++at;
    }
  }
  return size;
}

Parsed<ExprPtr> parse(std::string_view query, const ParseOptions& options) {
  CEEMS_TRY(tokens, tokens_within(query, options));
  return Parser(query, std::move(tokens), options).whole();
}

Parsed<VectorSelector> parse_selector(std::string_view text,
                                      const ParseOptions& options,
                                      bool allow_empty) {
  CEEMS_TRY(tokens, tokens_within(text, options));
  return Parser(text, std::move(tokens), options).whole_selector(allow_empty);
}

}  // namespace ceems::promql
