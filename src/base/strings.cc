#include "base/strings.h"

#include <algorithm>
#include <array>

#include "base/utf8.h"

namespace ceems {
namespace {

constexpr std::string_view kBlank = " \t\n\v\f\r";

/// ASCII only; other bytes are returned unchanged.
char lower(char byte) {
  return byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte - 'A' + 'a') : byte;
}

}  // namespace

bool has_only_words(std::string_view text, std::string_view others) {
  return std::ranges::all_of(text, [others](char c) { return is_word(c, others); });
}

bool is_number(std::string_view text, std::size_t max_digits) {
  return !text.empty() && text.size() <= max_digits && std::ranges::all_of(text, is_digit);
}

bool take(std::string_view& rest, char c) {
  if (!rest.starts_with(c)) {
    return false;
  }
  rest.remove_prefix(1);
  return true;
}

std::optional<int> take_digits(std::string_view& rest, std::size_t width) {
  const std::string_view digits = rest.substr(0, width);
  if (digits.size() < width || !is_number(digits)) {
    return std::nullopt;
  }
  rest.remove_prefix(width);
  return parse_int<int>(digits);
}

std::string_view trim(std::string_view text) {
  const auto first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) {
    return {};
  }
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const auto at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) {
      return parts;
    }
    text.remove_prefix(at + 1);
  }
}

std::string_view take_until(std::string_view& rest, char separator) {
  const auto at = rest.find(separator);
  const auto part = rest.substr(0, at);
  rest.remove_prefix(at == std::string_view::npos ? rest.size() : at + 1);
  return part;
}

std::string_view take_word(std::string_view& rest) {
  rest.remove_prefix(std::min(rest.find_first_not_of(kBlank), rest.size()));
  const auto word = rest.substr(0, rest.find_first_of(kBlank));
  rest.remove_prefix(word.size());
  return word;
}

std::string to_lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), lower);
  return out;
}

bool same_in_any_case(std::string_view left, std::string_view right) {
  return std::ranges::equal(left, right, {}, lower, lower);
}

std::optional<double> parse_double(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

std::string shell_quoted(std::string_view text) {
  std::string word = "'";
  for (const char c : text) {
    word += c == '\'' ? std::string_view("'\\''") : std::string_view(&c, 1);
  }
  return word + "'";
}

std::string printable(std::string_view text, std::size_t limit) {
  static constexpr std::array<char, 17> kHex{"0123456789abcdef"};
  std::string out;
  while (!text.empty()) {
    if (out.size() >= limit) {
      return out.append("...");
    }
    const auto byte = static_cast<unsigned char>(text.front());
    const std::size_t length = byte < 0x20 || byte == 0x7F ? 0 : utf8_length(text);
    if (length == 0) {
      out.append("\\x").push_back(kHex[byte >> 4U]);
      out.push_back(kHex[byte & 0xFU]);
      text.remove_prefix(1);
    } else {
      out.append(text.substr(0, length));
      text.remove_prefix(length);
    }
  }
  return out;
}

}  // namespace ceems
