#include "base/time/time_text.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include <date/date.h>
#include <fmt/format.h>

#include "base/strings.h"

namespace ceems {
namespace {

/// A date and time of day as a clock in some time zone shows it.
struct WallTime {
  int year = 1970;
  unsigned month = 1;
  unsigned day = 1;
  int hour = 0;
  int minute = 0;
  int second = 0;
};

date::year_month_day date_of(const WallTime& wall) {
  return date::year(wall.year) / date::month(wall.month) / date::day(wall.day);
}

date::local_seconds to_local(const WallTime& wall) {
  return date::local_days(date_of(wall)) + std::chrono::hours(wall.hour) +
         std::chrono::minutes(wall.minute) + std::chrono::seconds(wall.second);
}

/// Takes a date and, if one follows, a time of day with or without seconds.
std::optional<WallTime> take_wall_time(std::string_view& text) {
  WallTime wall;
  const auto year = take_digits(text, 4);
  const bool dash1 = take(text, '-');
  const auto month = take_digits(text, 2);
  const bool dash2 = take(text, '-');
  const auto day = take_digits(text, 2);
  if (!year || !dash1 || !month || !dash2 || !day) {
    return std::nullopt;
  }
  wall.year = *year;
  wall.month = static_cast<unsigned>(*month);
  wall.day = static_cast<unsigned>(*day);
  if (!date_of(wall).ok()) {
    return std::nullopt;
  }
  if (!take(text, 'T')) {
    return wall;
  }
  const auto hour = take_digits(text, 2);
  const bool colon = take(text, ':');
  const auto minute = take_digits(text, 2);
  if (!hour || !colon || !minute || *hour > 23 || *minute > 59) {
    return std::nullopt;
  }
  wall.hour = *hour;
  wall.minute = *minute;
  if (take(text, ':')) {
    const auto second = take_digits(text, 2);
    if (!second || *second > 60) {
      return std::nullopt;
    }
    wall.second = *second;
  }
  return wall;
}

}  // namespace

std::optional<std::int64_t> parse_localz(std::string_view text) {
  const std::size_t size = text.size();
  const auto wall = take_wall_time(text);
  // The text must have been a complete YYYY-MM-DDTHH:MM:SS.
  if (!wall || size - text.size() != 19 || text.empty()) {
    return std::nullopt;
  }
  const bool west = text.front() == '-';
  if (!west && text.front() != '+') {
    return std::nullopt;
  }
  text.remove_prefix(1);
  const auto hours = take_digits(text, 2);
  const auto minutes = take_digits(text, 2);
  if (!hours || !minutes || !text.empty() || *minutes > 59) {
    return std::nullopt;
  }
  const std::int64_t offset = (*hours * 60 + *minutes) * 60'000LL;
  const auto local = std::chrono::milliseconds(to_local(*wall).time_since_epoch()).count();
  return west ? local + offset : local - offset;
}

std::optional<std::string> complete_local(std::string_view text) {
  const auto wall = take_wall_time(text);
  if (!wall || !text.empty()) {
    return std::nullopt;
  }
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", wall->year, wall->month, wall->day,
                     wall->hour, wall->minute, wall->second);
}

std::string elapsed_text(std::int64_t seconds) {
  seconds = std::max<std::int64_t>(seconds, 0);
  const std::string time =
      fmt::format("{:02}:{:02}:{:02}", seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
  return seconds < 86400 ? time : fmt::format("{}-{}", seconds / 86400, time);
}

std::string duration_text(double seconds, std::string_view day, char comma) {
  constexpr std::int64_t kMinute = 60;
  constexpr std::int64_t kHour = 3600;
  constexpr std::int64_t kDay = 86400;
  constexpr double kMax = 1e15;  // beyond it, times come from damaged data
  constexpr double kTwoDigits = 10;
  seconds = seconds > 0 ? std::min(seconds, kMax) : 0;
  if (seconds < kTwoDigits && seconds != std::floor(seconds)) {
    const int before = static_cast<int>(std::floor(std::log10(seconds))) + 1;
    std::string text = fmt::format("{:.{}f}", seconds, std::clamp(2 - before, 0, 9));
    if (text.find('.') != std::string::npos) {
      text.erase(text.find_last_not_of('0') + 1);
      text.erase(text.find_last_not_of('.') + 1);
    }
    std::ranges::replace(text, '.', comma);
    return text + " s";
  }
  const std::int64_t total = std::llround(seconds);
  const auto parts = [total](std::int64_t size, std::string_view first, std::int64_t part,
                             std::string_view second, int width) {
    const std::int64_t rest = total % size / part;
    std::string text = fmt::format("{} {}", total / size, first);
    return rest == 0 ? text : fmt::format("{} {:0{}} {}", text, rest, width, second);
  };
  if (total < kMinute) {
    return fmt::format("{} s", total);
  }
  if (total < kHour) {
    return parts(kMinute, "min", 1, "s", 2);
  }
  return total < kDay ? parts(kHour, "h", kMinute, "min", 2) : parts(kDay, day, kHour, "h", 1);
}

}  // namespace ceems
