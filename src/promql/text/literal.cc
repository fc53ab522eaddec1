#include "promql/text/literal.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "base/strings.h"
#include "base/utf8.h"
#include "promql/text/characters.h"

namespace ceems::promql {
namespace {

int hex_value(char byte) {
  if (is_digit(byte)) {
    return byte - '0';
  }
  if (byte >= 'a' && byte <= 'f') {
    return byte - 'a' + 10;
  }
  if (byte >= 'A' && byte <= 'F') {
    return byte - 'A' + 10;
  }
  return -1;
}

/// The text without underscores; nothing if one is not between two digits.
std::optional<std::string> without_underscores(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      out += text[i];
      continue;
    }
    if (i == 0 || i + 1 == text.size() || hex_value(text[i - 1]) < 0 ||
        hex_value(text[i + 1]) < 0) {
      return std::nullopt;
    }
  }
  return out;
}

/// The number that is all of `text`, in this base; nothing if it is invalid or too large.
std::optional<double> parse_integer(std::string_view text, int base) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return static_cast<double>(value);
}

struct Unit {
  std::string_view name;
  std::int64_t milliseconds;
};
constexpr std::int64_t kSecond = 1000;
constexpr std::int64_t kMinute = 60 * kSecond;
constexpr std::int64_t kHour = 60 * kMinute;
constexpr std::int64_t kDay = 24 * kHour;
constexpr std::array kUnits = {
    Unit{"y", 365 * kDay}, Unit{"w", 7 * kDay}, Unit{"d", kDay}, Unit{"h", kHour},
    Unit{"m", kMinute},    Unit{"s", kSecond},  Unit{"ms", 1},
};
/// Prometheus stores durations as nanoseconds in 63 bits.
constexpr std::int64_t kMaxMilliseconds = std::numeric_limits<std::int64_t>::max() / 1'000'000;

/// The number made of `digits` hexadecimal (or octal) digits at `place`, which moves past them.
std::optional<char32_t> escape_digits(std::string_view text,
                                      std::size_t& place,
                                      std::size_t digits,
                                      int base) {
  char32_t value = 0;
  for (std::size_t i = 0; i < digits; ++i, ++place) {
    const int digit = place < text.size() ? hex_value(text[place]) : -1;
    if (digit < 0 || digit >= base) {
      return std::nullopt;
    }
    value = value * static_cast<char32_t>(base) + static_cast<char32_t>(digit);
  }
  return value;
}

/// The byte that a single character after a backslash stands for; nothing for other characters.
std::optional<char> simple_escape(char name, char quote) {
  constexpr std::string_view kNames = "abfnrtv\\";
  constexpr std::string_view kValues = "\a\b\f\n\r\t\v\\";
  if (const auto at = kNames.find(name); at != std::string_view::npos) {
    return kValues[at];
  }
  return name == quote ? std::optional<char>(quote) : std::nullopt;
}

/// Appends what the escape at `place` (after its backslash) stands for, and moves past it.
bool append_escape(std::string& out, std::string_view text, std::size_t& place, char quote) {
  if (place >= text.size()) {
    return false;
  }
  const char name = text[place];
  if (const auto byte = simple_escape(name, quote)) {
    out += *byte;
    ++place;
    return true;
  }
  std::optional<char32_t> value;
  if (name >= '0' && name <= '7') {
    value = escape_digits(text, place, 3, 8);
  } else if (name == 'x' || name == 'u' || name == 'U') {
    ++place;
    value = escape_digits(text, place, name == 'x' ? 2 : (name == 'u' ? 4 : 8), 16);
  }
  if (!value) {
    return false;
  }
  if (name == 'u' || name == 'U') {
    if (!is_code_point(*value)) {
      return false;
    }
    append_utf8(out, *value);
    return true;
  }
  if (*value > 0xFF) {
    return false;
  }
  out += static_cast<char>(*value);
  return true;
}

/// The bytes that have a special meaning in quotes.
constexpr ByteSet kNotPlain("\\\n\"'");

bool is_shown_as_it_is(char byte) {
  return byte >= 0x20 && byte < 0x7F && byte != '"' && byte != '\\';
}

}  // namespace

std::optional<double> parse_number(std::string_view text) {
  if (text.empty()) {
    return std::nullopt;
  }
  if (!is_digit(text.front()) && text.front() != '.') {
    if (text.size() == 3 && same_in_any_case(text, "inf")) {
      return std::numeric_limits<double>::infinity();
    }
    if (text.size() == 3 && same_in_any_case(text, "nan")) {
      return std::numeric_limits<double>::quiet_NaN();
    }
    return std::nullopt;
  }
  std::optional<std::string> plain;
  if (text.contains('_')) {
    plain = without_underscores(text);
    if (!plain) {
      return std::nullopt;
    }
  }
  const std::string_view digits = plain ? std::string_view(*plain) : text;
  if (digits.starts_with("0x") || digits.starts_with("0X")) {
    return parse_integer(digits.substr(2), 16);
  }
  if (digits.size() > 1 && digits.front() == '0' && is_digit(digits[1])) {
    // To Prometheus, "08" and "00.5" are decimal although "010" is octal. VictoriaMetrics refuses
    // them.
    return parse_integer(digits, 8);
  }
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (end != digits.data() + digits.size()) {
    return std::nullopt;
  }
  if (error == std::errc::result_out_of_range) {
    return std::nullopt;  // Go's parser refuses 1e999 as well
  }
  return error == std::errc() ? std::optional<double>(value) : std::nullopt;
}

void append_number(std::string& out, double value) {
  if (std::isnan(value)) {
    out += "NaN";
  } else if (std::isinf(value)) {
    out += value < 0 ? "-Inf" : "Inf";
  } else {
    fmt::format_to(std::back_inserter(out), "{}", value);
    if (out.ends_with(".0")) {
      out.resize(out.size() - 2);
    }
  }
}

std::optional<std::int64_t> parse_duration_ms(std::string_view text) {
  std::int64_t total = 0;
  auto unit = kUnits.begin();
  while (!text.empty()) {
    std::int64_t count = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
    if (error != std::errc() || !is_digit(text.front())) {
      return std::nullopt;
    }
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    const auto letters =
        static_cast<std::size_t>(std::ranges::find_if(text, is_digit) - text.begin());
    const std::string_view name = text.substr(0, letters);
    unit = std::find_if(unit, kUnits.end(), [&](const Unit& known) { return known.name == name; });
    if (unit == kUnits.end() || count > (kMaxMilliseconds - total) / unit->milliseconds) {
      return std::nullopt;
    }
    total += count * unit->milliseconds;
    text.remove_prefix(letters);
    ++unit;
    if (text.empty()) {
      return total;
    }
  }
  return std::nullopt;
}

std::optional<std::int64_t> duration_ms_of_seconds(double seconds) {
  const double milliseconds = seconds * 1000;
  if (!(std::abs(milliseconds) <= static_cast<double>(kMaxMilliseconds))) {
    return std::nullopt;
  }
  const double whole = std::round(milliseconds);
  if (std::abs(whole - milliseconds) > 1e-6) {
    return std::nullopt;
  }
  return static_cast<std::int64_t>(whole);
}

bool is_steps(std::string_view text) {
  return text.size() > 1 && text.ends_with('i') &&
         std::ranges::all_of(text.substr(0, text.size() - 1), is_digit);
}

void append_duration(std::string& out, std::int64_t milliseconds) {
  if (milliseconds == 0) {
    out += "0s";
    return;
  }
  for (const Unit& unit : kUnits) {
    if (unit.name == "y" || unit.name == "w") {
      continue;
    }
    if (const std::int64_t count = milliseconds / unit.milliseconds; count > 0) {
      const fmt::format_int digits(count);
      out.append(digits.data(), digits.size()).append(unit.name);
      milliseconds %= unit.milliseconds;
    }
  }
}

std::optional<std::string> unquote(std::string_view quoted) {
  if (quoted.size() < 2 || quoted.front() != quoted.back()) {
    return std::nullopt;
  }
  const char quote = quoted.front();
  const std::string_view text = quoted.substr(1, quoted.size() - 2);
  if (quote == '`') {
    return text.find('`') == std::string_view::npos ? std::optional<std::string>(text)
                                                    : std::nullopt;
  }
  if (quote != '"' && quote != '\'') {
    return std::nullopt;
  }
  const auto* const plain =
      std::ranges::find_if(text, [](char byte) { return kNotPlain.contains(byte); });
  if (plain == text.end()) {
    return std::string(text);
  }
  std::string out;
  out.reserve(text.size());
  out.append(text.begin(), plain);
  for (std::size_t place = out.size(); place < text.size();) {
    const char byte = text[place++];
    if (byte == quote || byte == '\n') {
      return std::nullopt;
    }
    if (byte != '\\') {
      out += byte;
    } else if (!append_escape(out, text, place, quote)) {
      return std::nullopt;
    }
  }
  return out;
}

void append_quoted(std::string& out, std::string_view value) {
  out += '"';
  while (true) {
    const auto* const odd = std::ranges::find_if_not(value, is_shown_as_it_is);
    out.append(value.begin(), odd);
    value.remove_prefix(static_cast<std::size_t>(odd - value.begin()));
    if (value.empty()) {
      break;
    }
    const char byte = value.front();
    const std::size_t length = utf8_length(value);
    if (byte == '"' || byte == '\\') {
      out += '\\';
      out += byte;
    } else if (byte == '\n') {
      out += "\\n";
    } else if (byte == '\t') {
      out += "\\t";
    } else if (static_cast<unsigned char>(byte) < 0x20 || byte == 0x7F || length == 0) {
      fmt::format_to(std::back_inserter(out), "\\x{:02x}", static_cast<unsigned char>(byte));
    } else if (value.starts_with(kReplacementCharacter)) {
      out += "\\ufffd";  // Prometheus takes an unescaped one for an invalid character
    } else {
      out += value.substr(0, length);
    }
    value.remove_prefix(std::max<std::size_t>(length, 1));
  }
  out += '"';
}

bool is_plain_label(std::string_view name) {
  return !name.empty() && !is_digit(name.front()) && kInLabel.contains_all(name);
}

bool is_plain_metric(std::string_view name) {
  return !name.empty() && !is_digit(name.front()) && kInMetric.contains_all(name);
}

}  // namespace ceems::promql
