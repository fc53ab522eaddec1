#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ceems {

/// Without blanks, tabs, line ends, form feeds at both ends.
std::string_view trim(std::string_view text);

/// The parts between separators, empty ones included; "" gives one empty part.
std::vector<std::string_view> split(std::string_view text, char separator);

/// Takes the part before the next separator off the front of `rest`; the separator goes too. At the
/// end of the text it gives all that is left. For loops without allocation.
std::string_view take_until(std::string_view& rest, char separator);

/// Takes the next word (run of non-blanks) off the front; empty at the end.
std::string_view take_word(std::string_view& rest);

/// ASCII letters in lower case; other bytes as they are.
std::string to_lower(std::string_view text);
/// Equal but for the case of ASCII letters, as names of HTTP headers and keywords are compared?
/// Allocates nothing.
bool same_in_any_case(std::string_view left, std::string_view right);

/// Whole text as a decimal number, no sign, no blanks; nothing on anything else or overflow.
template <typename Int = std::uint64_t>
std::optional<Int> parse_int(std::string_view text) {
  Int value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

/// Whole text as a floating-point number, independent of the locale.
std::optional<double> parse_double(std::string_view text);

/// Text for a log line or message from input that may hold anything: control bytes and invalid
/// UTF-8 become \xNN, at most `limit` bytes, then "...".
std::string printable(std::string_view text, std::size_t limit = 128);

}  // namespace ceems
