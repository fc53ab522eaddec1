#include "api/endpoints/chart_lines.h"

#include "base/json.h"

namespace ceems::api {

DataSchema lines_of_charts() {
  return {.name = "Series",
          .definitions = R"json("Series": {
        "type": "object",
        "required": ["name", "unit", "points"],
        "additionalProperties": false,
        "properties": {
          "name": {"type": "string", "description": "The name of the chart."},
          "unit": {"type": "string", "description": "Of the values, such as cores, bytes, watts or percent."},
          "labels": {
            "type": "object",
            "description": "With `by`, what the line is of: `hostname`, `index`, `gpuuuid`, `gpuiid`, `domain`; or `quantile`, where there are too many lines.",
            "additionalProperties": {"type": "string"}
          },
          "limit": {"type": "number", "description": "What was reserved."},
          "none": {"type": "string", "enum": ["not_collected", "too_short"], "description": "Why the chart has no points."},
          "collector": {"type": "string", "description": "The collector of ceems_exporter that would measure it."},
          "points": {
            "type": "array",
            "description": "Pairs of milliseconds since 1970 and value.",
            "items": {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}
          }
        }
      })json",
          .example =
              R"({"name":"cpu","unit":"cores","points":[[1933128450000,1.5],[1933128480000,2]]})"};
}

std::string series_json(const std::vector<Series>& all) {
  std::string out;
  JsonWriter json(out);
  json.begin_array();
  for (const Series& series : all) {
    json.begin_object().member("name", series.name).member("unit", series.unit);
    if (!series.labels.empty()) {
      json.key("labels").begin_object();
      for (const auto& [name, value] : series.labels) {
        json.member(name, value);
      }
      json.end_object();
    }
    if (series.limit) {
      json.member("limit", *series.limit);
    }
    if (series.none) {
      json.member("none", *series.none == NoLine::kTooShort ? "too_short" : "not_collected");
    }
    if (!series.collector.empty()) {
      json.member("collector", series.collector);
    }
    json.key("points").begin_array();
    for (const auto& [ms, value] : series.points) {
      json.begin_array().value(ms).value(value).end_array();
    }
    json.end_array().end_object();
  }
  json.end_array();
  return out;
}

}  // namespace ceems::api
