#include "tsdb/settings.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/strings.h"

namespace ceems::tsdb {
namespace {

struct DurationUnit {
  std::string_view name;
  std::int64_t milliseconds;
};

// The largest unit first, which is the order required in a duration.
constexpr std::array<DurationUnit, 7> kUnits{{
    {"y", 365LL * 86'400'000},
    {"w", 7LL * 86'400'000},
    {"d", 86'400'000},
    {"h", 3'600'000},
    {"m", 60'000},
    {"s", 1000},
    {"ms", 1},
}};

void take_interval(std::string_view text, std::chrono::milliseconds& target) {
  const auto value = parse_duration(text);
  if (value && *value > std::chrono::milliseconds(0)) {
    target = *value;
  }
}

}  // namespace

std::optional<std::chrono::milliseconds> parse_duration(std::string_view text) {
  if (text == "0") {
    return std::chrono::milliseconds(0);
  }
  if (text.empty()) {
    return std::nullopt;
  }
  std::int64_t total = 0;
  std::size_t next_unit = 0;
  while (!text.empty()) {
    const std::size_t digits = text.find_first_not_of("0123456789");
    if (digits == 0 || digits == std::string_view::npos) {
      return std::nullopt;
    }
    const auto number = parse_int<std::int64_t>(text.substr(0, digits));
    text.remove_prefix(digits);
    const std::size_t letters = std::min(text.find_first_of("0123456789"), text.size());
    const std::string_view name = text.substr(0, letters);
    text.remove_prefix(letters);
    while (next_unit < kUnits.size() && kUnits.at(next_unit).name != name) {
      ++next_unit;
    }
    if (!number || next_unit == kUnits.size()) {
      return std::nullopt;
    }
    const std::int64_t unit = kUnits.at(next_unit++).milliseconds;
    if (*number > (std::numeric_limits<std::int64_t>::max() - total) / unit) {
      return std::nullopt;
    }
    total += *number * unit;
  }
  return std::chrono::milliseconds(total);
}

void apply_config(std::string_view yaml, Settings& settings) {
  bool in_global = false;
  while (!yaml.empty()) {
    const std::string_view line = take_until(yaml, '\n');
    if (line.empty() || line.front() == '#') {
      continue;
    }
    if (line.front() != ' ') {
      in_global = trim(line) == "global:";
      continue;
    }
    const std::size_t colon = line.find(':');
    if (!in_global || colon == std::string_view::npos) {
      continue;
    }
    const std::string_view key = trim(line.substr(0, colon));
    const std::string_view value = trim(line.substr(colon + 1));
    if (key == "scrape_interval") {
      take_interval(value, settings.scrape_interval);
    } else if (key == "evaluation_interval") {
      take_interval(value, settings.evaluation_interval);
    }
  }
}

void apply_flag(std::string_view name, std::string_view value, Settings& settings) {
  if (name == "query.lookback-delta") {
    take_interval(value, settings.lookback_delta);
  } else if (name == "query.timeout") {
    take_interval(value, settings.query_timeout);
  } else if (name == "query.max-samples") {
    const auto number = parse_int<std::uint64_t>(value);
    if (number && *number > 0) {
      settings.max_samples = *number;
    }
  }
}

void apply_retention(std::string_view text, Settings& settings) {
  while (!text.empty()) {
    const auto duration = parse_duration(take_word(text));
    if (duration && *duration > std::chrono::milliseconds(0)) {
      settings.retention = *duration;
      return;
    }
  }
}

}  // namespace ceems::tsdb
