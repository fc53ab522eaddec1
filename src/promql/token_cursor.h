#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "promql/lexer.h"
#include "promql/syntax_error.h"

namespace ceems::promql {

/// A place among the tokens of a query, which moves forward. `query` must outlive it. Not
/// thread-safe.
class TokenCursor {
 public:
  TokenCursor(std::string_view query, std::vector<Token> tokens)
      : query_(query), tokens_(std::move(tokens)) {}

  [[nodiscard]] const Token& current() const { return tokens_[next_]; }
  /// The one behind it; at the end the end.
  [[nodiscard]] const Token& following() const;
  /// Gives the current one and goes on.
  const Token& take();
  bool take_if(TokenKind kind);
  [[nodiscard]] bool at_keyword(std::string_view keyword) const;
  bool take_keyword(std::string_view keyword);

  [[nodiscard]] std::unexpected<SyntaxError> refuse(std::size_t offset, std::string message) const;
  /// "unexpected ')', expected an expression"
  [[nodiscard]] std::unexpected<SyntaxError> unexpected(std::string_view expected) const;
  /// Goes on past a token of this kind, or says that it is missing.
  Parsed<bool> expect(TokenKind kind);

 private:
  std::string_view query_;
  std::vector<Token> tokens_;
  std::size_t next_ = 0;
};

}  // namespace ceems::promql
