#include "ingest/manager/batch/text.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "base/strings.h"

namespace ceems::ingest {
namespace {

constexpr std::array<std::string_view, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                      "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
constexpr std::array<std::string_view, 7> kDays = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
constexpr std::size_t kMaxElement = std::size_t{4} << 20U;
constexpr std::int64_t kDayMs = 24LL * 60 * 60 * 1000;

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/// "HH:MM:SS"; the seconds may be missing.
std::optional<std::string> clock_text(std::string_view text) {
  const auto parts = split(text, ':');
  if (parts.size() < 2 || parts.size() > 3) {
    return std::nullopt;
  }
  std::string result;
  for (std::size_t i = 0; i < 3; ++i) {
    const auto number = i < parts.size() ? parse_int<unsigned>(parts[i]) : std::optional(0U);
    if (!number || *number > 60) {
      return std::nullopt;
    }
    result += fmt::format("{}{:02}", i == 0 ? "" : ":", *number);
  }
  return result;
}

int year_of(const TimeZone& zone, std::int64_t ms) {
  return parse_int<int>(std::string_view(zone.local(ms)).substr(0, 4)).value_or(1970);
}

}  // namespace

std::optional<std::int64_t> parse_ctime(std::string_view text,
                                        const TimeZone& zone,
                                        std::int64_t now_ms) {
  std::string_view word = take_word(text);
  if (std::ranges::find(kDays, word) != kDays.end()) {
    word = take_word(text);
  }
  const auto month = std::ranges::find(kMonths, word);
  const auto day = parse_int<unsigned>(take_word(text));
  const auto clock = clock_text(take_word(text));
  if (month == kMonths.end() || !day || *day > 31 || !clock) {
    return std::nullopt;
  }
  const auto in_year = [&](int year) {
    return zone.parse_local(
        fmt::format("{:04}-{:02}-{:02}T{}", year, month - kMonths.begin() + 1, *day, *clock));
  };
  std::string_view rest = take_word(text);
  std::optional<int> year = parse_int<int>(rest);
  if (year) {
    rest = take_word(text);
  }
  if ((!rest.empty() && rest != "L" && rest != "E" && rest != "X") || !trim(text).empty()) {
    return std::nullopt;
  }
  if (year) {
    return *year >= 1970 && *year <= 9999 ? in_year(*year) : std::nullopt;
  }
  const int last = year_of(zone, now_ms + kDayMs);
  for (int candidate = last; candidate > last - 9; --candidate) {  // 29 February may be far back
    const auto time = in_year(candidate);
    if (time && *time <= now_ms + kDayMs) {
      return time;
    }
  }
  return std::nullopt;
}

std::optional<double> parse_size(std::string_view text, double default_unit) {
  text = trim(text);
  const std::size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
  const auto number = parse_double(text.substr(0, digits));
  std::string unit = to_lower(trim(text.substr(digits)));
  if (!number || !(*number >= 0)) {
    return std::nullopt;
  }
  double scale = default_unit;
  if (!unit.empty()) {
    constexpr std::string_view kLetters = "kmgtpe";
    const std::size_t power = kLetters.find(unit.front());
    if (power != std::string_view::npos) {
      scale = std::pow(1024.0, static_cast<double>(power + 1));
      unit.erase(0, 1);
      if (unit == "w") {
        scale *= 8;
        unit.clear();
      }
    } else {
      scale = unit == "w" ? 8 : 1;
      unit = unit == "w" ? "" : unit;
    }
    if (!unit.empty() && unit != "b" && unit != "byte" && unit != "bytes") {
      return std::nullopt;
    }
  }
  constexpr double kMaxBytes = 9e18;
  const double bytes = *number * scale;
  return bytes < kMaxBytes ? std::optional(bytes) : std::nullopt;
}

std::unexpected<Error> JsonCutter::wrong(std::string_view why) const {
  return key_.empty() ? fail(ErrorCode::kParse, "{}", why)
                      : fail(ErrorCode::kParse, "{}, in or after {}", why, printable(key_, 80));
}

Result<> JsonCutter::keep(char c) {
  if (text_.size() >= kMaxElement) {
    return wrong("an element of more than 4 MiB");
  }
  text_ += c;
  return {};
}

Result<> JsonCutter::end_element() {
  if (text_.empty()) {
    return {};
  }
  if (!has_member_ || (depth_ == 2 && keyed_ && !has_key_)) {
    return wrong("a member without a name");
  }
  Result<> taken;
  if (depth_ == 2) {
    taken = take_(keyed_ ? key_ : std::string_view(), text_);
    has_key_ = false;
  }
  text_.clear();
  return taken;
}

Result<> JsonCutter::open(char c) {
  ++depth_;
  if (depth_ == 1) {
    return c == '{' ? Result<>() : wrong("expected a JSON object");
  }
  if (depth_ == 2 && has_member_ && text_.empty() && member_ == name_) {
    inside_ = true;
    keyed_ = c == '{';
    return {};
  }
  return keep(c);
}

Result<> JsonCutter::close(char c) {
  if (!between()) {
    --depth_;
    return depth_ < 0 ? wrong("a bracket too many") : keep(c);
  }
  Result<> taken = end_element();
  if (--depth_ == 1) {
    inside_ = false;
  }
  ended_ = depth_ == 0;
  return taken;
}

Result<> JsonCutter::add_character(char c) {
  if (in_string_) {
    if (!escaped_ && c == '"') {
      in_string_ = false;
    }
    escaped_ = !escaped_ && c == '\\';
    return keep(c);
  }
  if (is_blank(c)) {
    return {};  // insignificant outside of strings
  }
  began_ = true;
  if (ended_) {
    return wrong("text after the JSON document");
  }
  if (depth_ == 0 && c != '{' && c != '[') {
    return wrong("expected a JSON object");
  }
  switch (c) {
    case '"':
      in_string_ = true;
      return keep(c);
    case '{':
    case '[':
      return open(c);
    case '}':
    case ']':
      return close(c);
    case ',':
      if (between()) {
        Result<> taken = end_element();
        has_member_ = has_member_ && depth_ == 2;
        return taken;
      }
      return keep(c);
    case ':': {
      const bool top = depth_ == 1 && !has_member_;
      if (top || (depth_ == 2 && inside_ && keyed_ && !has_key_)) {
        const std::string_view quoted = text_;
        (top ? member_ : key_) =
            quoted.size() < 2 ? std::string() : std::string(quoted.substr(1, quoted.size() - 2));
        text_.clear();
        (top ? has_member_ : has_key_) = true;
        return {};
      }
      return keep(c);
    }
    default:
      return keep(c);
  }
}

Result<> JsonCutter::add(std::string_view part) {
  while (!part.empty()) {
    if (in_string_ && !escaped_) {
      const std::string_view plain = part.substr(0, part.find_first_of("\"\\"));
      if (text_.size() + plain.size() > kMaxElement) {
        return wrong("an element of more than 4 MiB");
      }
      text_ += plain;
      part.remove_prefix(plain.size());
      if (part.empty()) {
        break;
      }
    }
    if (Result<> done = add_character(part.front()); !done) {
      return done;
    }
    part.remove_prefix(1);
  }
  return {};
}

Result<> JsonCutter::finish() const {
  return ended_ ? Result<>() : wrong("the JSON document is incomplete");
}

}  // namespace ceems::ingest
