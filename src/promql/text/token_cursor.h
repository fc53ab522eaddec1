#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "promql/text/lexer.h"
#include "promql/text/syntax_error.h"

namespace ceems::promql {

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
