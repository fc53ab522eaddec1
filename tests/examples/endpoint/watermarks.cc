// To when the data of each cluster was read.
#include <algorithm>
#include <string>

#include "api/endpoints/endpoint.h"
#include "base/json.h"

namespace ceems::api {
namespace {

void get_watermarks(const Services& services, Call& call) {
  QueryTimer timer(*services.metrics, Query::kClusters);
  const auto marks = timer.run([&] { return services.reader->watermarks(); });
  if (!marks) {
    answer_failure(*call.response, marks.error());
    return;
  }
  const auto& wanted = call.params.clusters;
  std::string data;
  JsonWriter json(data);
  json.begin_array();
  for (const auto& [cluster, read_ms] : *marks) {
    if (wanted.empty() || std::ranges::find(wanted, cluster) != wanted.end()) {
      json.begin_object().member("cluster", cluster).member("read_ts", read_ms).end_object();
    }
  }
  json.end_array();
  answer_data(*call.response, data);
}

}  // namespace

Endpoints watermarks_endpoints() {
  return {{.path = "watermarks",
           .caller = Caller::kUser,
           .summary = "To when the data of each cluster was read.",
           .handler = get_watermarks,
           .data = {.name = "Watermark",
                    .definitions = R"json("Watermark": {
        "type": "object",
        "required": ["cluster", "read_ts"],
        "additionalProperties": false,
        "properties": {
          "cluster": {"type": "string", "description": "ID of the cluster."},
          "read_ts": {"type": "integer", "description": "Milliseconds since 1970."}
        }
      })json",
                    .example = R"({"cluster":"hpc-a","read_ts":1767225600000})"},
           .params = {Param::kClusterId}}};
}

}  // namespace ceems::api
