#include "promql/text/syntax_error.h"

#include <algorithm>

namespace ceems::promql {
namespace {

std::size_t characters(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U; }));
}

}  // namespace

SyntaxError syntax_error_at(std::string_view query, std::size_t offset, std::string message) {
  const std::size_t place = std::min(offset, query.size());
  const std::string_view before = query.substr(0, place);
  const std::size_t newline = before.rfind('\n');
  const std::size_t line_start = newline == std::string_view::npos ? 0 : newline + 1;
  SyntaxError error;
  error.offset = place;
  error.line = 1 + static_cast<std::size_t>(std::ranges::count(before, '\n'));
  error.column = 1 + characters(before.substr(line_start));
  error.message = std::move(message);
  return error;
}

}  // namespace ceems::promql
