#include "base/time/rfc3339.h"

#include <array>
#include <chrono>

#include "base/strings.h"

namespace ceems {
namespace {

constexpr std::size_t kMaxLength = 64;

/// Three numbers with a separator between them; the first has `width` digits, the others two.
std::optional<std::array<int, 3>> take_three(std::string_view& text,
                                             std::size_t width,
                                             char between) {
  const auto first = take_digits(text, width);
  const bool separated = take(text, between);
  const auto second = take_digits(text, 2);
  const bool again = take(text, between);
  const auto third = take_digits(text, 2);
  if (!first || !second || !third || !separated || !again) {
    return std::nullopt;
  }
  return std::array<int, 3>{*first, *second, *third};
}

/// Minutes east of UTC from "Z" or an offset such as "+02:00", which must be the whole text.
std::optional<int> offset_of(std::string_view text) {
  if (text == "Z" || text == "z") {
    return 0;
  }
  const int sign = text.starts_with('-') ? -1 : 1;
  if (!take(text, '+') && !take(text, '-')) {
    return std::nullopt;
  }
  const auto hours = take_digits(text, 2);
  const bool colon = take(text, ':');
  const auto minutes = take_digits(text, 2);
  if (!hours || !colon || !minutes || !text.empty() || *hours > 23 || *minutes > 59) {
    return std::nullopt;
  }
  return sign * (*hours * 60 + *minutes);
}

}  // namespace

std::optional<std::int64_t> parse_rfc3339_ms(std::string_view text) {
  if (text.size() > kMaxLength) {
    return std::nullopt;
  }
  const auto date = take_three(text, 4, '-');
  const bool time_follows = take(text, 'T') || take(text, 't');
  const auto time = take_three(text, 2, ':');
  if (!date || !time_follows || !time) {
    return std::nullopt;
  }
  std::int64_t ms = 0;
  if (take(text, '.')) {
    std::int64_t weight = 100;
    while (!text.empty() && is_digit(text.front())) {
      ms += weight * (text.front() - '0');
      weight /= 10;
      text.remove_prefix(1);
    }
  }
  const auto offset = offset_of(text);
  const std::chrono::year_month_day day{std::chrono::year((*date)[0]),
                                        std::chrono::month(static_cast<unsigned>((*date)[1])),
                                        std::chrono::day(static_cast<unsigned>((*date)[2]))};
  if (!offset || !day.ok() || (*time)[0] > 23 || (*time)[1] > 59 || (*time)[2] > 60) {
    return std::nullopt;
  }
  const auto moment = std::chrono::sys_days(day) + std::chrono::hours((*time)[0]) +
                      std::chrono::minutes((*time)[1] - *offset) + std::chrono::seconds((*time)[2]);
  ms += std::chrono::duration_cast<std::chrono::milliseconds>(moment.time_since_epoch()).count();
  if (ms < 0) {
    return std::nullopt;
  }
  return ms;
}

}  // namespace ceems
