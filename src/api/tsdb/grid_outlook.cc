#include "api/tsdb/grid_outlook.h"

#include <algorithm>
#include <map>

#include "base/time/durations.h"

namespace ceems::api {
namespace {

constexpr std::int64_t kWeeks = 4;
constexpr std::size_t kLeastReadings = 3;
constexpr std::int64_t kWeekMs = 7 * kDayMs;
/// What a mean of an hour may be off the hour: no more than the TSDB's step.
constexpr std::int64_t kOffMs = kMinuteMs;

/// `points` are means of the hours that end at their times.
ForecastHour forecast_of(std::int64_t from_ms, const std::map<std::int64_t, double>& points) {
  std::vector<double> past;
  for (std::int64_t week = 1; week <= kWeeks; ++week) {
    const std::int64_t end_ms = from_ms + kHourMs - week * kWeekMs;
    const auto found = points.lower_bound(end_ms - kOffMs);
    if (found != points.end() && found->first <= end_ms + kOffMs) {
      past.push_back(found->second);
    }
  }
  ForecastHour hour{.from_ms = from_ms};
  if (past.size() >= kLeastReadings) {
    std::ranges::sort(past);
    hour.median = (past[past.size() / 2] + past[(past.size() - 1) / 2]) / 2;
    hour.low = past.front();
    hour.high = past.back();
  }
  return hour;
}

/// The mean of as many hours; nothing if one of them is not known.
template <typename Value>
std::optional<double> mean_from(const std::vector<ForecastHour>& hours,
                                std::size_t first,
                                std::size_t count,
                                const Value& value) {
  double sum = 0;
  for (std::size_t i = first; i < first + count; ++i) {
    if (i >= hours.size() || !hours[i].median) {
      return std::nullopt;
    }
    sum += value(hours[i]);
  }
  return sum / static_cast<double>(count);
}

double median_in(const ForecastHour& hour) {
  return hour.median.value_or(0);
}

}  // namespace

Result<GridOutlook> read_outlook(Fleet& fleet, std::int64_t now_ms) {
  const std::int64_t first_ms = (now_ms / kHourMs + 1) * kHourMs;
  const std::int64_t length_ms = static_cast<std::int64_t>(kForecastHours) * kHourMs;
  CEEMS_TRY(grid, fleet.grid_hours(first_ms + kHourMs - kWeeks * kWeekMs,
                                   first_ms + length_ms - kWeekMs));
  GridOutlook outlook;
  if (grid.empty()) {
    return outlook;
  }
  const auto& series = grid.front().points;
  const std::map<std::int64_t, double> points(series.begin(), series.end());
  for (std::int64_t at = first_ms; at < first_ms + length_ms; at += kHourMs) {
    outlook.hours.push_back(forecast_of(at, points));
  }
  auto& hours = outlook.hours;
  if (std::ranges::none_of(hours, [](const auto& hour) { return hour.median.has_value(); })) {
    return GridOutlook{};
  }
  outlook.varies = std::ranges::any_of(hours, [&hours](const ForecastHour& hour) {
    return hour.median && (hour.median != hours.front().median);
  });
  outlook.provider = grid.front().provider;
  outlook.country = grid.front().country;
  return outlook;
}

std::optional<GridWindow> greenest(const std::vector<ForecastHour>& hours,
                                   std::size_t length,
                                   std::size_t starts) {
  std::optional<GridWindow> best;
  for (std::size_t first = 0; first < starts && first + length <= hours.size(); ++first) {
    const auto mean = mean_from(hours, first, length, median_in);
    // The first of those that are equal except for rounding.
    if (mean && (!best || *mean < best->mean * (1 - 1e-9))) {
      const auto low = mean_from(hours, first, length, [](const auto& hour) { return hour.low; });
      const auto high = mean_from(hours, first, length, [](const auto& hour) { return hour.high; });
      best = GridWindow{.from_ms = hours[first].from_ms,
                        .mean = *mean,
                        .low = low.value_or(*mean),
                        .high = high.value_or(*mean)};
    }
  }
  if (best) {
    best->next = mean_from(hours, 0, length, median_in);
  }
  return best;
}

}  // namespace ceems::api
