#include "promql/text/lexer.h"

#include <array>

#include <fmt/format.h>

#include "base/strings.h"
#include "base/utf8.h"
#include "promql/text/characters.h"
#include "promql/text/literal.h"

namespace ceems::promql {
namespace {

bool is_blank(char byte) {
  return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
}

struct Symbol {
  std::string_view text;
  TokenKind kind;
};
/// Sorted by their first byte, longer ones first. None has more than two bytes.
constexpr std::array kSymbols = {
    Symbol{"=~", TokenKind::kMatches},      Symbol{"==", TokenKind::kEqual},
    Symbol{"=", TokenKind::kAssign},        Symbol{"!~", TokenKind::kNotMatches},
    Symbol{"!=", TokenKind::kNotEqual},     Symbol{"<=", TokenKind::kLessEqual},
    Symbol{"</", TokenKind::kTrimUpper},    Symbol{"<", TokenKind::kLess},
    Symbol{">=", TokenKind::kGreaterEqual}, Symbol{">/", TokenKind::kTrimLower},
    Symbol{">", TokenKind::kGreater},       Symbol{"(", TokenKind::kLeftParen},
    Symbol{")", TokenKind::kRightParen},    Symbol{"{", TokenKind::kLeftBrace},
    Symbol{"}", TokenKind::kRightBrace},    Symbol{"[", TokenKind::kLeftBracket},
    Symbol{"]", TokenKind::kRightBracket},  Symbol{",", TokenKind::kComma},
    Symbol{":", TokenKind::kColon},         Symbol{"@", TokenKind::kAt},
    Symbol{"+", TokenKind::kAdd},           Symbol{"-", TokenKind::kSub},
    Symbol{"*", TokenKind::kMul},           Symbol{"/", TokenKind::kDiv},
    Symbol{"%", TokenKind::kMod},           Symbol{"^", TokenKind::kPow},
};

/// The index of the first symbol that starts with a byte, for fast lookup.
constexpr auto kFirstSymbol = [] {
  std::array<std::uint8_t, 256> first{};
  first.fill(kSymbols.size());
  for (std::size_t i = kSymbols.size(); i > 0; --i) {
    first.at(static_cast<unsigned char>(kSymbols.at(i - 1).text.front())) =
        static_cast<std::uint8_t>(i - 1);
  }
  return first;
}();

class Lexer {
 public:
  Lexer(std::string_view query, const LexerOptions& options) : query_(query), options_(options) {}

  Parsed<std::vector<Token>> run() {
    tokens_.reserve(query_.size() / 4);
    if (auto broken = broken_character()) {
      return std::unexpected(std::move(*broken));
    }
    while (true) {
      skip_blanks();
      if (place_ == query_.size()) {
        tokens_.push_back({TokenKind::kEnd, place_, {}});
        return std::move(tokens_);
      }
      if (auto error = next()) {
        return std::unexpected(std::move(*error));
      }
    }
  }

 private:
  [[nodiscard]] SyntaxError error(std::size_t offset, std::string message) const {
    return syntax_error_at(query_, offset, std::move(message));
  }

  [[nodiscard]] std::optional<SyntaxError> broken_character() const {
    if (is_utf8(query_) && !query_.contains('\0')) {
      return std::nullopt;
    }
    for (std::size_t i = 0; i < query_.size();) {
      const std::size_t length = utf8_length(query_.substr(i));
      if (length == 0) {
        return error(i, "invalid UTF-8");
      }
      if (query_[i] == '\0') {
        return error(i, "unexpected character: NUL");
      }
      i += length;
    }
    return std::nullopt;
  }

  [[nodiscard]] char peek(std::size_t ahead = 0) const {
    return place_ + ahead < query_.size() ? query_[place_ + ahead] : '\0';
  }

  void skip_blanks() {
    while (place_ < query_.size()) {
      if (is_blank(query_[place_])) {
        ++place_;
      } else if (query_[place_] == '#') {
        place_ = std::min(query_.find_first_of("\r\n", place_), query_.size());
      } else {
        return;
      }
    }
  }

  void add(TokenKind kind, std::size_t length) {
    tokens_.push_back({kind, place_, query_.substr(place_, length)});
    place_ += length;
  }

  std::optional<SyntaxError> next() {
    const char first = peek();
    if (first == '"' || first == '\'' || first == '`') {
      return string(first);
    }
    if (!in_braces_ && (is_digit(first) || (first == '.' && is_digit(peek(1))))) {
      return number();
    }
    if (is_letter(first) || is_wide(first) || (first == ':' && !in_braces_ && !in_brackets_)) {
      word();
      return std::nullopt;
    }
    return symbol();
  }

  /// Whether the byte may be part of a name only with wide names. Dots do not begin one.
  [[nodiscard]] bool is_wide(char byte) const {
    return options_.wide_names && !in_brackets_ && static_cast<unsigned char>(byte) >= 0x80;
  }

  void word() {
    const ByteSet& in_word = in_braces_ || in_brackets_ ? kInLabel : kInMetric;
    const std::string_view rest = query_.substr(place_);
    std::size_t length = 1;
    const bool dots = options_.wide_names && !in_brackets_;
    while (length < rest.size() && (in_word.contains(rest[length]) || is_wide(rest[length]) ||
                                    (dots && rest[length] == '.'))) {
      ++length;
    }
    // "inf" and "nan" are numbers wherever a name is not possible.
    const bool number = !in_braces_ && length == 3 && parse_number(rest.substr(0, 3)).has_value();
    add(number ? TokenKind::kNumber : TokenKind::kWord, length);
  }

  /// Numbers and durations: everything up to the next other character.
  std::optional<SyntaxError> number() {
    std::size_t length = 0;
    const bool hexadecimal = peek() == '0' && (peek(1) == 'x' || peek(1) == 'X');
    while (
        is_digit(peek(length)) || is_letter(peek(length)) || peek(length) == '.' ||
        (!hexadecimal && (peek(length) == '+' || peek(length) == '-') && after_exponent(length))) {
      ++length;
    }
    const std::string_view text = query_.substr(place_, length);
    if (parse_number(text)) {
      add(TokenKind::kNumber, length);
    } else if (parse_duration_ms(text) || (options_.steps && is_steps(text))) {
      add(TokenKind::kDuration, length);
    } else {
      return error(place_, fmt::format("bad number or duration syntax: '{}'", text));
    }
    return std::nullopt;
  }

  /// Whether the byte before this one is the 'e' of a number.
  [[nodiscard]] bool after_exponent(std::size_t length) const {
    const char before = length > 0 ? peek(length - 1) : '\0';
    return (before == 'e' || before == 'E') && is_digit(peek(length + 1)) &&
           std::ranges::all_of(query_.substr(place_, length - 1),
                               [](char byte) { return is_digit(byte) || byte == '.'; });
  }

  std::optional<SyntaxError> string(char quote) {
    const std::string_view rest = query_.substr(place_);
    const bool raw = quote == '`';
    bool escapes = false;
    std::size_t length = 1;
    for (; length < rest.size(); ++length) {
      const char byte = rest[length];
      if (byte == quote || (byte == '\n' && !raw)) {
        break;
      }
      if (byte == '\\' && !raw) {
        escapes = true;
        ++length;
      }
    }
    if (length >= rest.size() || rest[length] != quote) {
      return error(place_, "string without an end");
    }
    if (escapes && !unquote(rest.substr(0, length + 1))) {
      return error(place_, "string with an escape that does not exist");
    }
    add(TokenKind::kString, length + 1);
    return std::nullopt;
  }

  std::optional<SyntaxError> symbol() {
    const std::string_view rest = query_.substr(place_);
    const char first = rest.front();
    const char second = peek(1);
    const auto* const found = std::find_if(
        kSymbols.begin() + kFirstSymbol[static_cast<unsigned char>(first)], kSymbols.end(),
        [&](const Symbol& known) {
          return known.text[0] == first && (known.text.size() == 1 || known.text[1] == second);
        });
    if (found == kSymbols.end()) {
      const std::string_view shown = rest.substr(0, utf8_length(rest));
      return error(place_, fmt::format("unexpected character: '{}'", shown));
    }
    if (found->kind == TokenKind::kLeftBrace || found->kind == TokenKind::kRightBrace) {
      in_braces_ = found->kind == TokenKind::kLeftBrace;
    }
    if (found->kind == TokenKind::kLeftBracket || found->kind == TokenKind::kRightBracket) {
      in_brackets_ = found->kind == TokenKind::kLeftBracket;
    }
    add(found->kind, found->text.size());
    return std::nullopt;
  }

  std::string_view query_;
  LexerOptions options_;
  std::size_t place_ = 0;
  bool in_braces_ = false;
  bool in_brackets_ = false;
  std::vector<Token> tokens_;
};

constexpr std::size_t kMaxShownBytes = 40;

}  // namespace

std::string_view describe(TokenKind kind) {
  switch (kind) {
    case TokenKind::kEnd:
      return "end of query";
    case TokenKind::kWord:
      return "name";
    case TokenKind::kNumber:
      return "number";
    case TokenKind::kDuration:
      return "duration";
    case TokenKind::kString:
      return "string";
    default:
      break;
  }
  const auto* const found =
      std::ranges::find_if(kSymbols, [&](const Symbol& known) { return known.kind == kind; });
  return found == kSymbols.end() ? "token" : found->text;
}

Parsed<std::vector<Token>> tokenize(std::string_view query, const LexerOptions& options) {
  return Lexer(query, options).run();
}

bool TokenCursor::at_keyword(std::string_view keyword) const {
  return current().kind == TokenKind::kWord && same_in_any_case(current().text, keyword);
}

bool TokenCursor::take_keyword(std::string_view keyword) {
  if (!at_keyword(keyword)) {
    return false;
  }
  take();
  return true;
}

std::unexpected<SyntaxError> TokenCursor::refuse(std::size_t offset, std::string message) const {
  return std::unexpected(syntax_error_at(query_, offset, std::move(message)));
}

std::unexpected<SyntaxError> TokenCursor::unexpected(std::string_view expected) const {
  const Token& token = current();
  const std::string shown = token.kind == TokenKind::kEnd
                                ? std::string(describe(token.kind))
                                : fmt::format("'{}'", token.text.substr(0, kMaxShownBytes));
  return refuse(token.offset, fmt::format("unexpected {}, expected {}", shown, expected));
}

Parsed<bool> TokenCursor::expect(TokenKind kind) {
  if (!take_if(kind)) {
    return unexpected(fmt::format("'{}'", describe(kind)));
  }
  return true;
}

}  // namespace ceems::promql
