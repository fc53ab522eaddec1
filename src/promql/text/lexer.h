#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
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

}  // namespace ceems::promql
