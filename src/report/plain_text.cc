#include "report/plain_text.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/utf8.h"

namespace ceems::report {
namespace {

// The letters and signs of the catalogues.
constexpr std::array<std::pair<std::string_view, std::string_view>, 34> kSimilar{
    {{"·", "-"},  {"–", "-"},  {"█", "#"},  {"…", "..."}, {"±", "+-"}, {"’", "'"},  {"ä", "ae"},
     {"ö", "oe"}, {"ü", "ue"}, {"ß", "ss"}, {"Ä", "Ae"},  {"Ö", "Oe"}, {"Ü", "Ue"}, {"é", "e"},
     {"è", "e"},  {"ê", "e"},  {"ë", "e"},  {"É", "E"},   {"À", "A"},  {"à", "a"},  {"â", "a"},
     {"ç", "c"},  {"î", "i"},  {"ï", "i"},  {"ô", "o"},   {"ù", "u"},  {"û", "u"},  {"œ", "oe"},
     {"Œ", "OE"}, {"→", "->"}, {"−", "-"},  {"€", "EUR"}, {"²", "2"},  {"₂", "2"}}};

}  // namespace

std::string plain_text(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) {
      out += kReplacementCharacter;
      text.remove_prefix(1);
      continue;
    }
    const std::string_view character = text.substr(0, length);
    out += is_printable(code_point(character)) ? character : kReplacementCharacter;
    text.remove_prefix(length);
  }
  return out;
}

std::size_t columns_of(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U; }));
}

std::string padded(std::string_view text, std::size_t width) {
  const std::size_t columns = columns_of(text);
  return std::string(text) + std::string(width > columns ? width - columns : 0, ' ');
}

std::string to_ascii(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = std::max<std::size_t>(utf8_length(text), 1);
    const std::string_view character = text.substr(0, length);
    const auto* const similar = std::ranges::find(
        kSimilar, character, &std::pair<std::string_view, std::string_view>::first);
    if (length == 1 && static_cast<unsigned char>(character[0]) < 0x80) {
      out += character;
    } else {
      out += similar == kSimilar.end() ? "?" : similar->second;
    }
    text.remove_prefix(length);
  }
  return out;
}

std::vector<std::string> wrap(std::string_view text, std::size_t width) {
  std::vector<std::string> lines;
  std::string line;
  const auto flush = [&] {
    lines.push_back(std::move(line));
    line.clear();
  };
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!line.empty() && columns_of(line) + 1 + columns_of(word) > width) {
      flush();
    }
    if (!line.empty()) {
      line += ' ';
    }
    while (columns_of(word) > width) {
      std::size_t bytes = 0;
      for (std::size_t columns = 0; columns < width; ++columns) {
        bytes += std::max<std::size_t>(utf8_length(word.substr(bytes)), 1);
      }
      line = word.substr(0, bytes);
      word.remove_prefix(bytes);
      flush();
    }
    line += word;
  }
  if (!line.empty() || lines.empty()) {
    flush();
  }
  return lines;
}

}  // namespace ceems::report
