#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/result.h"
#include "base/utf8.h"
#include "promql/matcher/matcher.h"
#include "promql/operators.h"
#include "promql/parts.h"
#include "promql/text/literal.h"

namespace ceems::promql {
namespace {

constexpr std::string_view kNameLabel = "__name__";
constexpr std::size_t kUsualMatchers = 4;

class SelectorParser {
 public:
  SelectorParser(TokenCursor& tokens, const ParseOptions& options)
      : tokens_(&tokens), options_(&options) {}

  Parsed<VectorSelector> selector(bool allow_empty) {
    VectorSelector parsed;
    parsed.offset = tokens_->current().offset;
    if (tokens_->current().kind == TokenKind::kWord) {
      const std::string_view word = tokens_->current().text;
      if (!may_name_metric(word) && is_plain_metric(word)) {
        return tokens_->unexpected("an expression");
      }
      parsed.name = tokens_->take().text;
    } else if (tokens_->current().kind != TokenKind::kLeftBrace) {
      return tokens_->unexpected("a metric name or '{'");
    }
    if (tokens_->take_if(TokenKind::kLeftBrace)) {
      parsed.matchers.reserve(kUsualMatchers);
      CEEMS_TRY(matchers(parsed));
    }
    if (!allow_empty && is_decided(parsed)) {
      if (auto problem = check_not_empty(parsed, options_->patterns)) {
        return tokens_->refuse(parsed.offset, std::move(*problem));
      }
    }
    return parsed;
  }

  /// Reads from after '{' up to and including '}'.
  Parsed<bool> matchers(VectorSelector& parsed) {
    while (!tokens_->take_if(TokenKind::kRightBrace)) {
      CEEMS_TRY(matcher(parsed));
      if (!tokens_->take_if(TokenKind::kComma) &&
          tokens_->current().kind != TokenKind::kRightBrace) {
        return tokens_->unexpected("',' or '}' behind a matcher");
      }
    }
    return true;
  }

  Parsed<bool> matcher(VectorSelector& parsed) {
    const Token& token = tokens_->current();
    Matcher matcher;
    matcher.offset = token.offset;
    if (token.kind == TokenKind::kWord) {
      matcher.label = token.text;
    } else if (token.kind == TokenKind::kString && options_->prometheus3) {
      CEEMS_TRY(quoted, quoted_name(true));
      matcher.label = std::move(quoted);
    } else {
      return tokens_->unexpected("a label name or '}'");
    }
    tokens_->take();
    const auto op = match_operator(tokens_->current().kind);
    if (!op && token.kind == TokenKind::kString) {
      return set_name(parsed, std::move(matcher.label), token.offset);
    }
    if (!op) {
      return tokens_->unexpected("'=', '!=', '=~' or '!~' behind a label name");
    }
    tokens_->take();
    matcher.op = *op;
    if (tokens_->current().kind != TokenKind::kString) {
      return tokens_->unexpected("a string as value of a label");
    }
    matcher.value = unquote(tokens_->current().text).value_or("");
    matcher.value_offset = tokens_->current().offset;
    if (options_->patterns.check) {
      if (auto problem = check_pattern(matcher, options_->patterns)) {
        return tokens_->refuse(matcher.value_offset, std::move(*problem));
      }
    }
    tokens_->take();
    if (matcher.label == kNameLabel && !parsed.name.empty()) {
      return tokens_->refuse(matcher.offset, "metric name must not be set twice");
    }
    parsed.matchers.push_back(std::move(matcher));
    return true;
  }

  /// "a:b", and names with dots and other letters, which the lexer passes if they are allowed.
  [[nodiscard]] bool is_prometheus3_name(std::string_view word) const {
    return options_->prometheus3 && !is_plain_label(word);
  }

  /// Whether it is known what the matchers accept, because their patterns were checked.
  [[nodiscard]] bool is_decided(const VectorSelector& parsed) const {
    return options_->patterns.check || std::ranges::none_of(parsed.matchers, &is_pattern);
  }

  /// Prometheus takes an empty name in a matcher: no series has such a label.
  Parsed<std::string> quoted_name(bool may_be_empty = false) {
    auto name = unquote(tokens_->current().text).value_or("");
    if ((name.empty() && !may_be_empty) || !is_utf8(name)) {
      return tokens_->refuse(tokens_->current().offset,
                             "a name in quotes must be UTF-8 and not empty");
    }
    return name;
  }

  Parsed<bool> set_name(VectorSelector& parsed, std::string name, std::size_t offset) {
    if (name.empty()) {
      return tokens_->refuse(offset, "a metric name must not be empty");
    }
    const bool named = std::ranges::any_of(
        parsed.matchers, [](const Matcher& known) { return known.label == kNameLabel; });
    if (named || !parsed.name.empty()) {
      return tokens_->refuse(offset, "metric name must not be set twice");
    }
    parsed.name = std::move(name);
    return true;
  }

  Parsed<std::int64_t> timestamp() {
    const bool minus = tokens_->current().kind == TokenKind::kSub;
    if (minus || tokens_->current().kind == TokenKind::kAdd) {
      tokens_->take();
    }
    const Token& token = tokens_->current();
    const auto duration = token.kind == TokenKind::kDuration && options_->prometheus3
                              ? parse_duration_ms(token.text)
                              : std::nullopt;
    if (token.kind != TokenKind::kNumber && !duration) {
      return tokens_->unexpected("a time in seconds, start() or end()");
    }
    const double size = duration ? static_cast<double>(*duration)
                                 : std::round(parse_number(token.text).value_or(0) * 1000);
    const double milliseconds = minus ? -size : size;
    if (!(std::abs(milliseconds) < 9.2e18)) {
      return tokens_->refuse(tokens_->current().offset, "timestamp out of bounds for @ modifier");
    }
    tokens_->take();
    return static_cast<std::int64_t>(milliseconds);
  }

  /// (a, b,)
  Parsed<std::vector<std::string>> label_list() {
    CEEMS_TRY(tokens_->expect(TokenKind::kLeftParen));
    std::vector<std::string> labels;
    while (!tokens_->take_if(TokenKind::kRightParen)) {
      if (tokens_->current().kind == TokenKind::kString && options_->prometheus3) {
        CEEMS_TRY(name, quoted_name());
        labels.push_back(std::move(name));
      } else if (tokens_->current().kind == TokenKind::kWord &&
                 (may_name_label(tokens_->current().text) ||
                  is_prometheus3_name(tokens_->current().text))) {
        labels.emplace_back(tokens_->current().text);
      } else {
        return tokens_->unexpected("a label name");
      }
      tokens_->take();
      if (!tokens_->take_if(TokenKind::kComma) &&
          tokens_->current().kind != TokenKind::kRightParen) {
        return tokens_->unexpected("',' or ')' behind a label name");
      }
    }
    return labels;
  }

 private:
  TokenCursor* tokens_;
  const ParseOptions* options_;
};

}  // namespace

Parsed<VectorSelector> read_selector(TokenCursor& tokens,
                                     const ParseOptions& options,
                                     bool allow_empty) {
  return SelectorParser(tokens, options).selector(allow_empty);
}

Parsed<std::vector<std::string>> read_labels(TokenCursor& tokens, const ParseOptions& options) {
  return SelectorParser(tokens, options).label_list();
}

Parsed<std::int64_t> read_timestamp(TokenCursor& tokens, const ParseOptions& options) {
  return SelectorParser(tokens, options).timestamp();
}

}  // namespace ceems::promql
