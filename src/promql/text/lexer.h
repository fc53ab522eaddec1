#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "promql/text/syntax_error.h"

namespace ceems::promql {

enum class TokenKind : std::uint8_t {
  kEnd,
  kWord,  ///< a name or a keyword; keywords are case-insensitive
  kNumber,
  kDuration,
  kString,  ///< with its quotes
  kLeftParen,
  kRightParen,
  kLeftBrace,
  kRightBrace,
  kLeftBracket,
  kRightBracket,
  kComma,
  kColon,
  kAt,
  kAssign,    // =
  kNotEqual,  // !=, in matchers and comparisons
  kMatches,
  kNotMatches,
  kEqual,  // ==
  kAdd,
  kSub,
  kMul,
  kDiv,
  kMod,
  kPow,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kTrimUpper,  // </
  kTrimLower,  // >/
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::size_t offset = 0;  ///< bytes from the start of the query
  std::string_view text;   ///< part of the query
};

/// The name of a token in messages: "','", "number", "end of query".
std::string_view describe(TokenKind kind);

/// What tokens may contain besides the usual.
struct LexerOptions {
  bool wide_names = false;  ///< dots, and characters outside ASCII
  bool steps = false;       ///< durations in steps: "5i"
};

/// The tokens of a query without comments and blanks. The last one is kEnd. Names may contain ':'
/// outside braces only; within brackets ':' is a token. Errors: invalid UTF-8, unterminated
/// strings, unknown escapes and characters that begin no token. `query` must outlive the tokens.
Parsed<std::vector<Token>> tokenize(std::string_view query, const LexerOptions& options = {});

/// A position among the tokens of a query that moves forward. `query` must outlive it. Not
/// thread-safe.
class TokenCursor {
 public:
  TokenCursor(std::string_view query, std::vector<Token> tokens)
      : query_(query), tokens_(std::move(tokens)) {}

  [[nodiscard]] const Token& current() const { return tokens_[next_]; }
  /// The token after the current one; at the end, the kEnd token.
  [[nodiscard]] const Token& following() const { return tokens_[behind()]; }
  /// Returns the current token and moves to the next.
  const Token& take() { return tokens_[std::exchange(next_, behind())]; }
  bool take_if(TokenKind kind) {
    if (current().kind != kind) {
      return false;
    }
    take();
    return true;
  }
  [[nodiscard]] bool at_keyword(std::string_view keyword) const;
  bool take_keyword(std::string_view keyword);

  [[nodiscard]] std::unexpected<SyntaxError> refuse(std::size_t offset, std::string message) const;
  /// "unexpected ')', expected an expression"
  [[nodiscard]] std::unexpected<SyntaxError> unexpected(std::string_view expected) const;
  /// Moves past a token of this kind; an error if it is not there.
  Parsed<bool> expect(TokenKind kind);

 private:
  [[nodiscard]] std::size_t behind() const { return std::min(next_ + 1, tokens_.size() - 1); }

  std::string_view query_;
  std::vector<Token> tokens_;
  std::size_t next_ = 0;
};

}  // namespace ceems::promql
