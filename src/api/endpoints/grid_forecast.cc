// What the grid's carbon intensity will be, judged by the weeks before, and when a start is best.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/answer/numbers.h"
#include "api/endpoints/all.h"
#include "api/tsdb/grid_outlook.h"
#include "base/json.h"
#include "base/log.h"
#include "base/time/durations.h"

namespace ceems::api {
namespace {

constexpr int kForecastDigits = 4;

void append_window(JsonWriter& json,
                   const std::vector<ForecastHour>& hours,
                   std::size_t length,
                   const TimeZone& zone) {
  const auto best = greenest(hours, length);
  if (!best) {
    return;
  }
  const auto append = [&json](std::string_view name, std::optional<double> value) {
    json.key(name);
    append_number(json, value ? std::optional(rounded(*value, kForecastDigits)) : std::nullopt);
  };
  json.begin_object().member("hours", static_cast<std::int64_t>(length));
  json.member("from", best->from_ms);
  json.member("to", best->from_ms + static_cast<std::int64_t>(length) * kHourMs);
  json.member("begin", zone.local(best->from_ms));
  append("g_kwh", best->mean);
  append("low", best->low);
  append("high", best->high);
  append("next", best->next);
  json.end_object();
}

void append_hours(JsonWriter& json, const std::vector<ForecastHour>& hours) {
  json.key("hours").begin_array();
  for (const ForecastHour& hour : hours) {
    json.begin_array().value(hour.from_ms);
    for (const double value : {hour.median.value_or(0), hour.low, hour.high}) {
      append_number(json,
                    hour.median ? std::optional(rounded(value, kForecastDigits)) : std::nullopt);
    }
    json.end_array();
  }
  json.end_array();
}

void get_grid_forecast(const Services& services, Call& call) {
  const auto outlook = services.fleet != nullptr ? read_outlook(*services.fleet, services.now_ms())
                                                 : Result<GridOutlook>(GridOutlook{});
  if (!outlook) {
    log::warn("cannot read the emissions of the grid", {{"err", outlook.error().message}});
    answer_tsdb_failure(*call.response);
    return;
  }
  std::string data;
  JsonWriter json(data);
  json.begin_object().key("provider");
  if (outlook->hours.empty()) {
    json.value(nullptr).key("country").value(nullptr);
  } else {
    json.value(outlook->provider).member("country", outlook->country);
  }
  append_hours(json, outlook->hours);
  json.key("windows").begin_array();
  for (const std::size_t length : {1U, 4U, 12U}) {
    if (outlook->varies) {
      append_window(json, outlook->hours, length, services.zone);
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
