#include "kube/quantity.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <string>
#include <utility>

#include "base/strings.h"

namespace ceems::kube {
namespace {

constexpr std::size_t kLongest = 64;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::optional<double> factor_of(std::string_view suffix) {
  constexpr std::array<std::pair<std::string_view, double>, 16> kFactors = {{
      {"", 1},
      {"n", 1e-9},
      {"u", 1e-6},
      {"m", 1e-3},
      {"k", 1e3},
      {"M", 1e6},
      {"G", 1e9},
      {"T", 1e12},
      {"P", 1e15},
      {"E", 1e18},
      {"Ki", 0x1p10},
      {"Mi", 0x1p20},
      {"Gi", 0x1p30},
      {"Ti", 0x1p40},
      {"Pi", 0x1p50},
      {"Ei", 0x1p60},
  }};
  const auto* const found =
      std::ranges::find(kFactors, suffix, &std::pair<std::string_view, double>::first);
  if (found == kFactors.end()) {
    return std::nullopt;
  }
  return found->second;
}

/// "e3", "E-3", "e+3"; a bare "E" is a suffix.
bool is_exponent(std::string_view suffix) {
  if (suffix.size() < 2 || (suffix.front() != 'e' && suffix.front() != 'E')) {
    return false;
  }
  suffix.remove_prefix(suffix[1] == '+' || suffix[1] == '-' ? 2 : 1);
  return !suffix.empty() && std::ranges::all_of(suffix, is_digit);
}

/// A number of exactly `width` digits off the front.
std::optional<int> take_number(std::string_view& text, std::size_t width) {
  if (text.size() < width || !std::ranges::all_of(text.substr(0, width), is_digit)) {
    return std::nullopt;
  }
  const auto number = parse_int<int>(text.substr(0, width));
  text.remove_prefix(width);
  return number;
}

bool take(std::string_view& text, char c) {
  if (text.empty() || text.front() != c) {
    return false;
  }
  text.remove_prefix(1);
  return true;
}

/// Three numbers with a separator between them; the first has `width` digits, the others two.
std::optional<std::array<int, 3>> take_three(std::string_view& text,
                                             std::size_t width,
                                             char between) {
  const auto first = take_number(text, width);
  const bool separated = take(text, between);
  const auto second = take_number(text, 2);
  const bool again = take(text, between);
  const auto third = take_number(text, 2);
  if (!first || !second || !third || !separated || !again) {
    return std::nullopt;
  }
  return std::array<int, 3>{*first, *second, *third};
}

/// Minutes east of UTC: "Z", "+02:00"; all that is left of the text.
std::optional<int> offset_of(std::string_view text) {
  if (text == "Z" || text == "z") {
    return 0;
  }
  const int sign = text.starts_with('-') ? -1 : 1;
  if (!take(text, '+') && !take(text, '-')) {
    return std::nullopt;
  }
  const auto hours = take_number(text, 2);
  const bool colon = take(text, ':');
  const auto minutes = take_number(text, 2);
  if (!hours || !colon || !minutes || !text.empty() || *hours > 23 || *minutes > 59) {
    return std::nullopt;
  }
  return sign * (*hours * 60 + *minutes);
}

}  // namespace

std::optional<double> parse_quantity(std::string_view text) {
  if (text.size() > kLongest) {
    return std::nullopt;
  }
  if (text.starts_with('+')) {
    text.remove_prefix(1);
  }
  const auto* const end =
      std::ranges::find_if_not(text, [](char c) { return is_digit(c) || c == '.'; });
  const auto length = static_cast<std::size_t>(end - text.begin());
  std::string number(text.substr(0, length));
  const std::string_view suffix = text.substr(length);
  if (std::ranges::none_of(number, is_digit) || std::ranges::count(number, '.') > 1) {
    return std::nullopt;
  }
  std::optional<double> factor = 1;
  if (is_exponent(suffix)) {
    number += suffix;
  } else {
    factor = factor_of(suffix);
  }
  const auto value = parse_double(number.front() == '.' ? "0" + number : number);
  if (!value || !factor || !std::isfinite(*value * *factor)) {
    return std::nullopt;
  }
  // "100m" is the double nearest to 0.1, as a division gives it.
  return *factor < 1 ? *value / std::round(1 / *factor) : *value * *factor;
}

std::optional<std::int64_t> parse_time(std::string_view text) {
  if (text.size() > kLongest) {
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

}  // namespace ceems::kube
