#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "promql/text/syntax_error.h"

namespace ceems::promql {

enum class TokenKind : std::uint8_t {
  kEnd,
  kWord,  ///< a name or keyword; keywords are in any case
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
  kNotEqual,  // !=, both of matchers and of comparisons
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
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::size_t offset = 0;  ///< bytes from the start of the query
  std::string_view text;   ///< part of the query
};

/// What a token is called in messages: "','", "number", "end of query".
std::string_view describe(TokenKind kind);

/// The tokens of a query, the last of which is kEnd; comments and blanks are left out. Names hold
/// ':' outside braces only, and within brackets ':' stands alone. Refuses what is no UTF-8, strings
/// without an end or with escapes that do not exist, and characters that begin nothing. `query`
/// must outlive the tokens.
Parsed<std::vector<Token>> tokenize(std::string_view query);

}  // namespace ceems::promql
