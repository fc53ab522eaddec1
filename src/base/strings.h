#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ceems {

/// Removes white space (blanks, tabs, line ends, form feeds) from both ends.
std::string_view trim(std::string_view text);

/// The parts between separators, including empty ones; "" gives one empty part.
std::vector<std::string_view> split(std::string_view text, char separator);

/// Takes the part before the next separator, and the separator, off the front of `rest`. Without a
/// separator it takes everything. For loops that must not allocate.
std::string_view take_until(std::string_view& rest, char separator);

/// Takes the next word (a run of non-blanks) off the front. Empty at the end of the text.
std::string_view take_word(std::string_view& rest);

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

/// Makes untrusted input safe for a log line or message: control bytes and invalid UTF-8 become
/// \xNN, and text beyond about `limit` bytes becomes "...".
std::string printable(std::string_view text, std::size_t limit = 128);

}  // namespace ceems
