#include "ingest/manager/batch/text.h"

#include <algorithm>
#include <array>
#include <string>

#include <fmt/format.h>

#include "base/strings.h"

namespace ceems::ingest {
namespace {

constexpr std::array<std::string_view, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                      "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
constexpr std::array<std::string_view, 7> kDays = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
constexpr std::int64_t kDayMs = 24LL * 60 * 60 * 1000;

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

}  // namespace ceems::ingest
