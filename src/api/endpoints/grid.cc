// The grid: how much CO2 a kWh stands for.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "api/answer/numbers.h"
#include "api/endpoints/all.h"
#include "api/tsdb/fleet.h"
#include "base/json.h"
#include "base/log.h"
#include "base/strings.h"
#include "base/time/durations.h"

namespace ceems::api {
namespace {
constexpr int kGridDigits = 4;

/// The hours of the day with the lowest mean of the last week.
void append_best(JsonWriter& json,
                 const std::vector<GridSeries>& all,
                 const TimeZone& zone,
                 std::int64_t now_ms) {
  constexpr std::size_t kHours = 24;
  json.key("best").begin_array();
  std::array<double, kHours> sums{};
  std::array<int, kHours> counts{};
  if (!all.empty()) {
    for (const auto& [ms, value] : all.front().points) {
      if (ms >= now_ms - 7 * kDayMs) {
        const auto hour = parse_int<std::size_t>(zone.local(ms).substr(11, 2)).value_or(0) % kHours;
        sums.at(hour) += value;
        counts.at(hour) += 1;
      }
    }
  }
  const bool whole = std::ranges::find(counts, 0) == counts.end();
  for (const std::size_t length : {1U, 4U, 12U}) {
    if (!whole) {
      break;
    }
    std::size_t best = 0;
    double least = 0;
    for (std::size_t start = 0; start < kHours; ++start) {
      double mean = 0;
      for (std::size_t i = 0; i < length; ++i) {
        const std::size_t hour = (start + i) % kHours;
        mean += sums.at(hour) / counts.at(hour) / static_cast<double>(length);
      }
      if (start == 0 || mean < least) {
        least = mean;
        best = start;
      }
    }
    json.begin_object().member("hours", static_cast<std::int64_t>(length));
    json.member("from", static_cast<std::int64_t>(best));
    json.member("to", static_cast<std::int64_t>((best + length) % kHours)).key("mean");
    append_number(json, rounded(least, kGridDigits));
    json.end_object();
  }
  json.end_array();
}

void append_provider(JsonWriter& json, const GridSeries& series) {
  json.member("provider", series.provider).member("country", series.country);
}

void get_grid(const Services& services, Call& call) {
  constexpr std::int64_t kMaxDays = 92;
  const auto from = parse_seconds("from", call.params.from);
  const auto to = parse_seconds("to", call.params.to);
  if (!from || !to) {
    answer_bad_request(call, (from ? to : from).error());
    return;
  }
  const std::int64_t now_ms = services.now_ms();
  const std::int64_t until = to->value_or(now_ms / kSecondMs) * kSecondMs;
  const std::optional<std::int64_t>& first = *from;
  const std::int64_t since = first ? *first * kSecondMs : until - 7 * kDayMs;
  if (since >= until || since < 0 || until - since > kMaxDays * kDayMs) {
    answer_bad_request(call, Error{.code = ErrorCode::kInvalidArgument,
                                   .message = fmt::format("query parameter 'from': expected at most"
                                                          " {} days before 'to'",
                                                          kMaxDays)});
    return;
  }
  const auto grid = services.fleet != nullptr ? services.fleet->grid(since, until)
                                              : Result<std::vector<GridSeries>>();
  if (!grid) {
    log::warn("cannot read the emissions of the grid", {{"err", grid.error().message}});
    answer_tsdb_failure(*call.response);
    return;
  }
  constexpr std::int64_t kRecentMs = 6 * kHourMs;
  std::string data;
  JsonWriter json(data);
  json.begin_object().key("now");
  const bool known = !grid->empty() && grid->front().points.back().first >= now_ms - kRecentMs;
  if (known) {
    const auto& [at, value] = grid->front().points.back();
    json.begin_object();
    append_provider(json, grid->front());
    json.key("g_kwh");
    append_number(json, rounded(value, kGridDigits));
    json.member("at", at).end_object();
  } else {
    json.value(nullptr);
  }
  json.key("providers").begin_array();
  for (const GridSeries& series : *grid) {
    json.begin_object();
    append_provider(json, series);
    json.key("g_kwh");
    append_number(json, rounded(series.points.back().second, kGridDigits));
    json.end_object();
  }
  json.end_array().key("series").begin_array();
  for (const GridSeries& series : *grid) {
    json.begin_object();
    append_provider(json, series);
    json.key("points").begin_array();
    for (const auto& [ms, value] : series.points) {
      json.begin_array().value(ms);
      append_number(json, rounded(value, kGridDigits));
      json.end_array();
    }
    json.end_array().end_object();
  }
  json.end_array();
  append_best(json, *grid, services.zone, now_ms);
  json.end_object();
  answer_data(*call.response, data);
}

}  // namespace

Endpoints grid_endpoints() {
  return {
      {.path = "grid",
       .caller = Caller::kUser,
       .summary = "Carbon intensity of the grid.",
       .handler = get_grid,
       .data =
           {.name = "Grid",
            .one = true,
            .definitions = R"json("GridProvider": {
        "type": "object",
        "required": ["provider", "country"],
        "additionalProperties": false,
        "properties": {
          "provider": {"type": "string"},
          "country": {"type": "string"},
          "g_kwh": {"type": "number", "description": "g CO2e per kWh."},
          "at": {"type": "integer"},
          "points": {"type": "array", "items": {"type": "array", "items": {"type": "number"}}, "description": "Milliseconds since 1970 and g/kWh."}
        }
      },
      "Grid": {
        "type": "object",
        "required": ["now", "providers", "series", "best"],
        "additionalProperties": false,
        "properties": {
          "now": {"type": ["object", "null"]},
          "providers": {"type": "array", "items": {"$ref": "#/components/schemas/GridProvider"}},
          "series": {"type": "array", "items": {"$ref": "#/components/schemas/GridProvider"}},
          "best": {
            "type": "array",
            "description": "The hours of the day with the lowest mean of the last 7 days.",
            "items": {
              "type": "object",
              "required": ["hours", "from", "to", "mean"],
              "additionalProperties": false,
              "properties": {
                "hours": {"type": "integer"},
                "from": {"type": "integer"},
                "to": {"type": "integer"},
                "mean": {"type": "number"}
              }
            }
          }
        }
      })json",
            .example =
                R"({"now":{"provider":"rte","country":"FR","g_kwh":48.2,"at":1933128450000},)"
                R"("providers":[{"provider":"rte","country":"FR","g_kwh":48.2}],)"
                R"("series":[{"provider":"rte","country":"FR","points":[[1933128450000,48.2]]}],)"
                R"("best":[{"hours":4,"from":11,"to":15,"mean":33}]})"},
       .params = {Param::kFrom, Param::kTo},
       .window = WindowKind::kOwn,
       .tagged = false,
       .waits = true,
       .audited = false}};
}

}  // namespace ceems::api
