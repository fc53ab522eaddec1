#include "promql/text/token_cursor.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/strings.h"

namespace ceems::promql {
namespace {

constexpr std::size_t kMaxShownBytes = 40;

}  // namespace

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
