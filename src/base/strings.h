#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ceems {

// Classes of ASCII characters. No other byte is in any of them.
constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
constexpr bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
/// A hexadecimal digit in small letters.
constexpr bool is_hex_digit(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f');
}
/// A letter, a digit, or one of `others`.
constexpr bool is_word(char c, std::string_view others = {}) {
  return is_letter(c) || is_digit(c) || others.find(c) != std::string_view::npos;
}
/// Whether the text has only letters, digits and `others`. True for "".
bool has_only_words(std::string_view text, std::string_view others);
/// Whether the text has one or more digits, at most `max_digits`, and nothing else.
bool is_number(std::string_view text, std::size_t max_digits = std::string_view::npos);

/// Removes white space (blanks, tabs, line ends, form feeds) from both ends.
std::string_view trim(std::string_view text);

/// The parts between separators, including empty ones; "" gives one empty part.
std::vector<std::string_view> split(std::string_view text, char separator);

/// Takes the part before the next separator, and the separator, off the front of `rest`. Without a
/// separator it takes everything. For loops that must not allocate.
std::string_view take_until(std::string_view& rest, char separator);

/// Takes the next word (a run of non-blanks) off the front. Empty at the end of the text.
std::string_view take_word(std::string_view& rest);

/// Takes the character off the front if it is there.
bool take(std::string_view& rest, char c);
/// Takes a number of exactly `width` digits off the front.
std::optional<int> take_digits(std::string_view& rest, std::size_t width);

/// Converts ASCII letters to lower case and keeps all other bytes.
std::string to_lower(std::string_view text);
/// Compares without regard to the case of ASCII letters, as HTTP does with header names. Does not
/// allocate.
bool same_in_any_case(std::string_view left, std::string_view right);

/// The whole text as a decimal integer; nothing if it has blanks, a plus sign or anything else, or
/// if the number does not fit in Int.
template <typename Int = std::uint64_t>
std::optional<Int> parse_int(std::string_view text) {
  Int value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

/// The whole text as a floating-point number, regardless of the locale; nothing on anything else.
std::optional<double> parse_double(std::string_view text);

/// The text in single quotes, as one word of a POSIX shell.
std::string shell_quoted(std::string_view text);

/// Makes untrusted input safe for a log line or message: control bytes and invalid UTF-8 become
/// \xNN, and text beyond about `limit` bytes becomes "...".
std::string printable(std::string_view text, std::size_t limit = 128);

}  // namespace ceems
