#include "jobscript/amounts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <string>

#include "base/strings.h"

namespace ceems::jobscript {
namespace {

constexpr std::int64_t kMaxAsked = 1'000'000;

}  // namespace

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
  const double bytes = *number * scale;
  return bytes < kMaxBytes ? std::optional(bytes) : std::nullopt;
}

std::int64_t clock_seconds(std::string_view text) {
  std::int64_t seconds = 0;
  for (int parts = 0; parts < 3 && !text.empty(); ++parts) {
    const auto part = parse_int<std::int64_t>(take_until(text, ':'));
    if (!part || *part < 0 || *part > kMaxSeconds) {
      return 0;
    }
    seconds = 60 * seconds + *part;
  }
  return text.empty() && seconds <= kMaxSeconds ? seconds : 0;
}

std::optional<std::int64_t> slurm_seconds(std::string_view text) {
  const std::size_t dash = text.find('-');
  const bool days = dash != std::string_view::npos;
  // What the parts mean, in seconds: from the largest unit that the form has.
  constexpr std::array<std::int64_t, 3> kParts{3600, 60, 1};
  std::int64_t seconds = 0;
  if (days) {
    const auto number = parse_int<std::int64_t>(text.substr(0, dash));
    if (!number || *number < 0 || *number > kMaxSeconds / 86400) {
      return std::nullopt;
    }
    seconds = *number * 86400;
    text.remove_prefix(dash + 1);
  }
  const auto parts = split(text, ':');
  if (parts.size() > kParts.size()) {
    return std::nullopt;
  }
  std::size_t unit = days || parts.size() == 3 ? 0 : 1;
  for (const std::string_view part : parts) {
    const auto number = parse_int<std::int64_t>(part);
    if (!number || *number < 0 || *number > kMaxSeconds) {
      return std::nullopt;
    }
    seconds += *number * kParts.at(unit++);
  }
  return seconds > 0 && seconds <= kMaxSeconds ? std::optional(seconds) : std::nullopt;
}

std::optional<std::int64_t> array_tasks(std::string_view text) {
  text = text.substr(0, text.find('%'));
  std::int64_t sum = 0;
  for (std::string_view part : split(text, ',')) {
    std::string_view range = take_until(part, ':');
    const bool stepped = !part.empty();
    const auto step = stepped ? count_in(part) : std::optional<std::int64_t>(1);
    const bool many = range.contains('-');
    const auto first = parse_int<std::int64_t>(take_until(range, '-'));
    const auto last = many ? parse_int<std::int64_t>(range) : first;
    if (!step || !first || !last || *first < 0 || *last < *first || *last > kMaxAsked * 10) {
      return std::nullopt;
    }
    sum += (*last - *first) / *step + 1;
  }
  return sum <= kMaxAsked ? std::optional(sum) : std::nullopt;
}

std::optional<std::int64_t> count_in(std::string_view text) {
  const auto number = parse_int<std::int64_t>(text);
  return number && *number >= 1 && *number <= kMaxAsked ? number : std::nullopt;
}

double reserved_memory(std::string_view requirement, std::int64_t hosts, std::int64_t slots) {
  double sum = 0;
  for (std::size_t at = requirement.find("rusage["); at != std::string_view::npos;
       at = requirement.find("rusage[")) {
    requirement.remove_prefix(at + 7);
    std::string_view inner = requirement.substr(0, requirement.find(']'));
    while (!inner.empty()) {
      const std::size_t end = std::min(inner.find_first_of(",:|"), inner.size());
      std::string_view item = trim(inner.substr(0, end));
      inner.remove_prefix(std::min(end + 1, inner.size()));
      if (!item.starts_with("mem=")) {
        continue;
      }
      item.remove_prefix(4);
      const std::string_view size = take_until(item, '/');
      const auto times = item == "task" ? slots : item == "job" ? 1 : hosts;
      sum = std::max(sum, parse_size(size, kMebi).value_or(0) *
                              static_cast<double>(std::max<std::int64_t>(times, 1)));
    }
  }
  return sum;
}

}  // namespace ceems::jobscript
