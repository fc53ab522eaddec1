// What the grid's carbon intensity will be, judged by the weeks before, and when a start is best.
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/answer/numbers.h"
#include "api/endpoints/all.h"
#include "api/tsdb/fleet.h"
#include "base/json.h"
#include "base/log.h"
#include "base/time/durations.h"

namespace ceems::api {
namespace {

constexpr int kForecastDigits = 4;
constexpr std::size_t kForecastHours = 48;
constexpr std::int64_t kWeeks = 4;
constexpr std::size_t kLeastReadings = 3;
constexpr std::int64_t kWeekMs = 7 * kDayMs;
/// What a mean of an hour may be off the hour: no more than the TSDB's step.
constexpr std::int64_t kOffMs = kMinuteMs;

struct ForecastHour {
  std::int64_t from_ms = 0;
  std::optional<double> median = {};
  double low = 0, high = 0;
};

/// The median and the range of the same hour of the weeks before. `points` are means of the hours
/// that end at their times.
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

void append_window(JsonWriter& json,
                   const std::vector<ForecastHour>& hours,
                   std::size_t length,
                   const TimeZone& zone) {
  std::optional<std::size_t> best;
  double least = 0;
  for (std::size_t first = 0; first + length <= hours.size(); ++first) {
    const auto mean = mean_from(hours, first, length, median_in);
    // The first of those that are equal except for rounding.
    if (mean && (!best || *mean < least * (1 - 1e-9))) {
      best = first;
      least = *mean;
    }
  }
  if (!best) {
    return;
  }
  const auto append = [&json](std::string_view name, std::optional<double> value) {
    json.key(name);
    append_number(json, value ? std::optional(rounded(*value, kForecastDigits)) : std::nullopt);
  };
  const std::int64_t from_ms = hours[*best].from_ms;
  json.begin_object().member("hours", static_cast<std::int64_t>(length));
  json.member("from", from_ms);
  json.member("to", from_ms + static_cast<std::int64_t>(length) * kHourMs);
  json.member("begin", zone.local(from_ms));
  append("g_kwh", least);
  append("low", mean_from(hours, *best, length, [](const auto& hour) { return hour.low; }));
  append("high", mean_from(hours, *best, length, [](const auto& hour) { return hour.high; }));
  append("next", mean_from(hours, 0, length, median_in));
  json.end_object();
}

void append_hours(JsonWriter& json, const std::vector<ForecastHour>& hours) {
  json.key("hours").begin_array();
  for (const ForecastHour& hour : hours) {
    json.begin_array().value(hour.from_ms);
    for (const double value : {median_in(hour), hour.low, hour.high}) {
      append_number(json,
                    hour.median ? std::optional(rounded(value, kForecastDigits)) : std::nullopt);
    }
    json.end_array();
  }
  json.end_array();
}

void get_grid_forecast(const Services& services, Call& call) {
  const std::int64_t first_ms = (services.now_ms() / kHourMs + 1) * kHourMs;
  const std::int64_t length_ms = static_cast<std::int64_t>(kForecastHours) * kHourMs;
  const auto grid = services.fleet != nullptr
                        ? services.fleet->grid_hours(first_ms + kHourMs - kWeeks * kWeekMs,
                                                     first_ms + length_ms - kWeekMs)
                        : Result<std::vector<GridSeries>>();
  if (!grid) {
    log::warn("cannot read the emissions of the grid", {{"err", grid.error().message}});
    answer_tsdb_failure(*call.response);
    return;
  }
  std::vector<ForecastHour> hours;
  bool varies = false;
  if (!grid->empty()) {
    const auto& series = grid->front().points;
    const std::map<std::int64_t, double> points(series.begin(), series.end());
    for (std::int64_t at = first_ms; at < first_ms + length_ms; at += kHourMs) {
      hours.push_back(forecast_of(at, points));
    }
    varies = std::ranges::any_of(hours, [&hours](const ForecastHour& hour) {
      return hour.median && (hour.median != hours.front().median);
    });
    if (std::ranges::none_of(hours, [](const auto& hour) { return hour.median.has_value(); })) {
      hours.clear();
    }
  }
  std::string data;
  JsonWriter json(data);
  json.begin_object().key("provider");
  if (hours.empty()) {
    json.value(nullptr).key("country").value(nullptr);
  } else {
    json.value(grid->front().provider).member("country", grid->front().country);
  }
  append_hours(json, hours);
  json.key("windows").begin_array();
  for (const std::size_t length : {1U, 4U, 12U}) {
    if (varies) {
      append_window(json, hours, length, services.zone);
    }
  }
  json.end_array().end_object();
  answer_data(*call.response, data);
}

}  // namespace

Endpoints grid_forecast_endpoints() {
  return {
      {.path = "grid/forecast",
       .caller = Caller::kUser,
       .summary =
           "Carbon intensity of the grid in the next 48 hours, as the weeks before let expect.",
       .handler = get_grid_forecast,
       .data =
           {.name = "GridForecast",
            .one = true,
            .definitions = R"json("GridForecast": {
        "type": "object",
        "required": ["provider", "country", "hours", "windows"],
        "additionalProperties": false,
        "properties": {
          "provider": {"type": ["string", "null"]},
          "country": {"type": ["string", "null"]},
          "hours": {"type": "array", "items": {"type": "array", "items": {"type": ["number", "null"]}}, "description": "Of each hour its beginning in milliseconds since 1970, and the median, the least and the greatest g/kWh of the same hour of the last four weeks; null with fewer than three of them."},
          "windows": {
            "type": "array",
            "description": "The hours with the lowest mean; none if the intensity does not vary.",
            "items": {
              "type": "object",
              "required": ["hours", "from", "to", "begin", "g_kwh", "low", "high", "next"],
              "additionalProperties": false,
              "properties": {
                "hours": {"type": "integer"},
                "from": {"type": "integer"},
                "to": {"type": "integer"},
                "begin": {"type": "string", "description": "`from` in the server's time zone."},
                "g_kwh": {"type": "number"},
                "low": {"type": "number", "description": "The mean of the least of each hour."},
                "high": {"type": "number"},
                "next": {"type": ["number", "null"], "description": "The mean of as many hours from the next full hour on."}
              }
            }
          }
        }
      })json",
            .example =
                R"({"provider":"rte","country":"FR","hours":[[1933131600000,44.1,39.8,52.3]],)"
                R"("windows":[{"hours":4,"from":1933167600000,"to":1933182000000,)"
                R"("begin":"2031-04-05T13:00:00","g_kwh":33.2,"low":29.1,"high":40.5,"next":44.9}]})"},
       .tagged = false,
       .waits = true,
       .audited = false}};
}

}  // namespace ceems::api
