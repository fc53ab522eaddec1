#include "promql/syntax_error.h"

#include <algorithm>

namespace ceems::promql {
namespace {

constexpr std::size_t kExcerptAround = 60;  // bytes shown on each side of the place

bool continues_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U;
}

std::size_t characters(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char byte) { return !continues_character(byte); }));
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

std::string SyntaxError::excerpt(std::string_view query) const {
  const std::size_t place = std::min(offset, query.size());
  const std::size_t newline = place == 0 ? std::string_view::npos : query.rfind('\n', place - 1);
  std::size_t begin = newline == std::string_view::npos ? 0 : newline + 1;
  std::size_t end = std::min(query.find('\n', place), query.size());
  if (place - begin > kExcerptAround) {
    begin = place - kExcerptAround;
    while (begin < place && continues_character(query[begin])) {
      ++begin;
    }
  }
  if (end - place > kExcerptAround) {
    end = place + kExcerptAround;
    while (end > place && continues_character(query[end])) {
      --end;
    }
  }
  std::string shown(query.substr(begin, end - begin));
  std::ranges::replace_if(
      shown, [](char byte) { return static_cast<unsigned char>(byte) < 0x20 || byte == 0x7F; },
      ' ');
  return fmt::format("{}\n{}^", shown,
                     std::string(characters(query.substr(begin, place - begin)), ' '));
}

}  // namespace ceems::promql
