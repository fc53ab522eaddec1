#include "api/endpoints/chart_lines.h"

#include "base/json.h"
#include "store/json.h"

namespace ceems::api {

DataSchema lines_of_charts() {
  return {.name = "Series",
          .definitions = R"json("Series": {
        "type": "object",
        "required": ["name", "unit", "points"],
        "additionalProperties": false,
        "properties": {
          "name": {"type": "string", "description": "cpu, memory or power"},
          "unit": {"type": "string", "description": "cores, bytes or watts"},
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
    json.key("points").begin_array();
    for (const auto& [ms, value] : series.points) {
      json.begin_array().value(ms);
      store::append_metric_number(json.begin_value(), value);
      json.end_array();
    }
    json.end_array().end_object();
  }
  json.end_array();
  return out;
}

}  // namespace ceems::api
