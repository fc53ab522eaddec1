#include "cacct/time_words.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <optional>
#include <utility>

#include "base/strings.h"

namespace ceems::cacct {
namespace {

constexpr std::int64_t kDay = 86400;

std::tm local_parts(std::int64_t seconds) {
  const std::time_t time = seconds;
  std::tm parts{};
  ::localtime_r(&time, &parts);
  return parts;
}

/// A wall-clock time. Its members are as in std::tm, with the year in full and months from 1.
struct Wall {
  int year = 0;
  int month = 0;
  int day = 0;
  int hour = 0;
  int minute = 0;
  int second = 0;
};

/// Nothing if the calendar or the clock has no such time. One that occurs twice in autumn is either
/// of the two; one that was skipped in spring is the moment of the change.
std::optional<std::int64_t> seconds_of(const Wall& wall) {
  if (wall.hour > 23 || wall.minute > 59 || wall.second > 60 || wall.year < 1970) {
    return std::nullopt;
  }
  std::tm parts{};
  parts.tm_year = wall.year - 1900;
  parts.tm_mon = wall.month - 1;
  parts.tm_mday = wall.day;
  parts.tm_hour = wall.hour;
  parts.tm_min = wall.minute;
  parts.tm_sec = wall.second;
  parts.tm_isdst = -1;
  // mktime() turns February 30 into March 1, so check the day by itself.
  std::tm noon = parts;
  noon.tm_hour = 12;
  noon.tm_min = 0;
  noon.tm_sec = 0;
  if (std::mktime(&noon) == -1 || noon.tm_mon != parts.tm_mon || noon.tm_mday != parts.tm_mday) {
    return std::nullopt;
  }
  const std::time_t time = std::mktime(&parts);
  return time < 0 ? std::nullopt : std::optional<std::int64_t>(time);
}

Wall day_of(std::int64_t seconds) {
  const std::tm parts = local_parts(seconds);
  return {.year = parts.tm_year + 1900, .month = parts.tm_mon + 1, .day = parts.tm_mday};
}

bool take(std::string_view& text, char c) {
  if (!text.starts_with(c)) {
    return false;
  }
  text.remove_prefix(1);
  return true;
}

/// "HH:MM" or "HH:MM:SS", and nothing behind it.
bool take_clock(std::string_view text, Wall& wall) {
  const auto hour = take_digits(text, 2);
  const bool colon = take(text, ':');
  const auto minute = take_digits(text, 2);
  if (!hour || !colon || !minute) {
    return false;
  }
  wall.hour = *hour;
  wall.minute = *minute;
  wall.second = 0;
  if (text.empty()) {
    return true;
  }
  const bool second_colon = take(text, ':');
  const auto second = take_digits(text, 2);
  wall.second = second.value_or(0);
  return second_colon && second && text.empty();
}

/// "YYYY-MM-DD", and "THH:MM[:SS]" or " HH:MM[:SS]" behind it.
std::optional<Wall> iso_time(std::string_view text) {
  const auto year = take_digits(text, 4);
  const bool first = take(text, '-');
  const auto month = take_digits(text, 2);
  const bool second = take(text, '-');
  const auto day = take_digits(text, 2);
  if (!year || !first || !month || !second || !day) {
    return std::nullopt;
  }
  Wall wall{.year = *year, .month = *month, .day = *day};
  if (!text.empty() && !((take(text, 'T') || take(text, ' ')) && take_clock(text, wall))) {
    return std::nullopt;
  }
  return wall;
}

/// "MMDD[YY]", or with a separator "MM/DD[/YY]" or "MM.DD[.YY]", and "-HH:MM[:SS]" behind it.
std::optional<Wall> american_time(std::string_view text, int this_year) {
  const auto month = take_digits(text, 2);
  const char separator = text.starts_with('/') || text.starts_with('.') ? text.front() : '\0';
  const bool separated = separator != '\0' && take(text, separator);
  const auto day = take_digits(text, 2);
  if (!month || !day) {
    return std::nullopt;
  }
  Wall wall{.year = this_year, .month = *month, .day = *day};
  if (!text.empty() && text.front() != '-') {
    const bool again = !separated || take(text, separator);
    const auto year = take_digits(text, 2);
    if (!again || !year) {
      return std::nullopt;
    }
    wall.year = 2000 + *year;
  }
  if (!text.empty() && !(take(text, '-') && take_clock(text, wall))) {
    return std::nullopt;
  }
  return wall;
}

/// The seconds in "2hours", "30minutes", "1day" or "90".
std::optional<std::int64_t> span_of(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, std::int64_t>, 5> kUnits{{
      {"second", 1},
      {"minute", 60},
      {"hour", 3600},
      {"day", kDay},
      {"week", 7 * kDay},
  }};
  const std::size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto count = parse_int<std::uint32_t>(text.substr(0, end));
  const std::string_view unit = text.substr(end);
  if (!count) {
    return std::nullopt;
  }
  if (unit.empty()) {
    return *count;
  }
  for (const auto& [name, seconds] : kUnits) {
    if (unit == name || (unit.ends_with('s') && unit.substr(0, unit.size() - 1) == name)) {
      return *count * seconds;
    }
  }
  return std::nullopt;
}

std::optional<std::int64_t> word_time(std::string_view text, std::int64_t now) {
  const std::string word = to_lower(text);
  const auto at = [&](std::int64_t moment, int hour) {
    Wall wall = day_of(moment);
    wall.hour = hour;
    return seconds_of(wall);
  };
  if (word == "today" || word == "midnight") {
    return day_start(now);
  }
  if (word == "yesterday") {
    return day_start(day_start(now) - 1);
  }
  if (word == "tomorrow") {
    return day_start(day_start(now) + kDay + kDay / 2);
  }
  if (word == "noon") {
    return at(now, 12);
  }
  if (word == "teatime") {
    return at(now, 16);
  }
  if (!word.starts_with("now")) {
    return std::nullopt;
  }
  std::string_view rest = std::string_view(word).substr(3);
  if (rest.empty()) {
    return now;
  }
  const bool minus = rest.front() == '-';
  if (!minus && rest.front() != '+') {
    return std::nullopt;
  }
  const auto span = span_of(rest.substr(1));
  return span ? std::optional(minus ? now - *span : now + *span) : std::nullopt;
}

std::optional<std::int64_t> clock_or_date(std::string_view text, std::int64_t now) {
  Wall today = day_of(now);
  if (take_clock(text, today)) {
    return seconds_of(today);
  }
  if (const auto wall = iso_time(text)) {
    return seconds_of(*wall);
  }
  if (const auto wall = american_time(text, today.year)) {
    return seconds_of(*wall);
  }
  return std::nullopt;
}

}  // namespace

std::int64_t day_start(std::int64_t now) {
  return seconds_of(day_of(now)).value_or(now - now % kDay);
}

Result<std::int64_t> parse_time(std::string_view text, std::int64_t now) {
  const std::string_view trimmed = trim(text);
  auto time = word_time(trimmed, now);
  if (!time) {
    time = clock_or_date(trimmed, now);
  }
  if (!time || *time < 0) {
    return fail(ErrorCode::kInvalidArgument,
                "invalid time format '{}'; expected YYYY-MM-DD[THH:MM[:SS]], HH:MM, yesterday, "
                "now-2hours or another form of sacct",
                printable(text));
  }
  return *time;
}

}  // namespace ceems::cacct
