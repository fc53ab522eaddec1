// All nodes at once, where they stand and what they did over the last day.
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "api/answer/numbers.h"
#include "api/endpoints/all.h"
#include "api/endpoints/missing_clusters.h"
#include "api/request/list_params.h"
#include "api/request/months.h"
#include "api/tsdb/fleet.h"
#include "base/json.h"
#include "base/strings.h"
#include "base/time/durations.h"

namespace ceems::api {
namespace {

constexpr int kMapDigits = 4;               // as in nodes/admin
constexpr int kPastDigits = 3;              // of watts in the past
constexpr std::size_t kMaxMapNodes = 4096;  // of all clusters together
constexpr std::size_t kMaxMapDevices = 16;  // of a node

struct MapQuestion {
  std::string metric;
  std::vector<std::string> clusters, words;
};

Result<MapQuestion> read_map_question(const Call& call) {
  MapQuestion question{
      .metric = "power", .clusters = split_lists(call.params.clusters), .words = {}};
  const auto metrics = call.params.list(Param::kMetric);
  if (!metrics.empty()) {
    question.metric = metrics.front();
  }
  if (metrics.size() > 1 ||
      std::ranges::find(Fleet::day_metrics(), question.metric) == Fleet::day_metrics().end()) {
    return wrong_parameter(
        fmt::format("'metric': expected one of {}", fmt::join(Fleet::day_metrics(), ", ")));
  }
  const std::string words = to_lower(call.params.text(Param::kWords));
  for (const std::string_view word : split(words, ' ')) {
    if (!word.empty()) {
      question.words.emplace_back(word);
    }
  }
  return question;
}

/// Tenths as digits: 0 is below 10 %, 9 from 90 % on; '-' is not known.
std::string tenths(const HourValues& values) {
  std::string digits;
  for (const auto& value : values) {
    digits +=
        value ? static_cast<char>('0' + static_cast<int>(std::clamp(*value / 10, 0.0, 9.0))) : '-';
  }
  return digits;
}

void append_devices(JsonWriter& json, const std::vector<GpuDay>& gpus) {
  json.begin_array();
  for (std::size_t i = 0; i < std::min(gpus.size(), kMaxMapDevices); ++i) {
    json.begin_array().value(gpus[i].instance.empty()
                                 ? gpus[i].index
                                 : fmt::format("{}/{}", gpus[i].index, gpus[i].instance));
    const std::optional<double>& now = gpus[i].now;
    append_number(json, now ? std::optional(rounded(*now, kMapDigits)) : std::nullopt);
    json.value(tenths(gpus[i].values)).end_array();
  }
  json.end_array();
}

void append_node(JsonWriter& json,
                 const std::string& cluster,
                 const Node& node,
                 const NodeDay& day,
                 const Racks& racks,
                 bool watts) {
  const auto place = racks.find(node.host);
  json.begin_array().value(cluster).value(node.host);
  if (place) {
    json.value(place->rack);
    if (place->slot) {
      json.value(*place->slot);
    } else {
      json.value(nullptr);
    }
  } else {
    json.value(nullptr).value(nullptr);
  }
  json.value(node.state);
  for (const auto& value : {node.units, node.cpu, node.mem, node.gpu, node.gpus, node.watts}) {
    append_number(json, value ? std::optional(rounded(*value, kMapDigits)) : std::nullopt);
  }
  json.value(day.states.empty() ? std::string(kFleetHours, 's') : day.states).begin_array();
  for (const auto& value : day.values) {
    append_number(json, !value  ? std::nullopt
                        : watts ? std::optional(rounded(*value, kPastDigits))
                                : std::optional(std::round(*value)));
  }
  json.end_array();
  append_devices(json, day.gpus);
  json.end_array();
}

void get_nodes_map(const Services& services, Call& call) {
  const auto question = read_map_question(call);
  if (!question) {
    answer_bad_request(call, question.error());
    return;
  }
  const std::int64_t now_ms = services.now_ms();
  const std::int64_t month = month_at(now_ms, services.zone).from_ms;
  std::size_t count = 0;
  std::string data;
  std::vector<MissingCluster> missing;
  std::string times;
  JsonWriter json(data);
  JsonWriter times_json(times);
  json.begin_object().member("metric", question->metric).key("columns").begin_array();
  for (const std::string_view name : {"cluster_id", "host", "rack", "slot", "state", "units", "cpu",
                                      "mem", "gpu", "gpus", "watts", "states", "past", "devices"}) {
    json.value(name);
  }
  json.end_array().key("rows").begin_array();
  for (const SiteCluster& cluster : services.site->clusters) {
    const auto& wanted = question->clusters;
    if (!wanted.empty() && std::ranges::find(wanted, cluster.id) == wanted.end()) {
      continue;
    }
    if (services.fleet == nullptr || !cluster.series) {
      missing.push_back({cluster.id, kNoTsdb});
      continue;
    }
    const auto nodes = services.fleet->nodes(cluster.id, month);
    const auto day =
        nodes ? services.fleet->day(cluster.id, question->metric, now_ms) : fail(nodes.error());
    if (!day) {
      missing.push_back({cluster.id, kUnavailable});
      continue;
    }
    if (times.empty()) {
      times_json.begin_array();
      for (const std::int64_t end_ms : (*day)->ends_ms) {
        times_json.value(end_ms);
      }
      times_json.end_array();
    }
    for (const Node& node : *nodes) {
      const std::string host = to_lower(node.host);
      if (!std::ranges::all_of(question->words,
                               [&host](const std::string& word) { return host.contains(word); })) {
        continue;
      }
      if (++count <= kMaxMapNodes) {
        const auto found = (*day)->nodes.find(node.host);
        append_node(json, cluster.id, node,
                    found == (*day)->nodes.end() ? NodeDay{} : found->second, services.site->racks,
                    question->metric == "power");
      }
    }
  }
  json.end_array().raw_member("times", times.empty() ? "[]" : times);
  json.member("left_off", static_cast<std::int64_t>(count - std::min(count, kMaxMapNodes)));
  json.raw_member("missing", clusters_json(missing));
  json.end_object();
  answer_data(*call.response, data);
}

}  // namespace

Endpoints nodes_map_endpoints() {
  return {
      {.path = "nodes/map/admin",
       .caller = Caller::kAdmin,
       .summary = "All nodes, where they stand, and what they did over the last day.",
       .handler = get_nodes_map,
       .data =
           {.name = "NodeMap",
            .one = true,
            .definitions = R"json("NodeMap": {
        "type": "object",
        "required": ["metric", "columns", "rows", "times", "left_off", "missing"],
        "additionalProperties": false,
        "properties": {
          "metric": {"enum": ["power", "cpu", "memory", "gpu", "state"]},
          "columns": {"type": "array", "items": {"type": "string"}},
          "rows": {"type": "array", "items": {"type": "array"}, "description": "The values of each node; null: not known. `states` has a letter an hour (b busy, i idle, s silent), `past` a value of the metric an hour, `devices` the index, the use now in percent and the tenths of the use by hour of each GPU."},
          "times": {"type": "array", "items": {"type": "integer"}, "description": "The ends of the hours, in milliseconds since 1970."},
          "left_off": {"type": "integer", "description": "Nodes beyond the 4096th."},
          "missing": {"$ref": "#/components/schemas/MissingClusters"}
        }
      })json",
            .example =
                R"({"metric":"gpu","columns":["cluster_id","host","rack","slot","state","gpu","states","past","devices"],)"
                R"("rows":[["hpc-a","g14","R2",14,"busy",48.6,"bb",[51,48],[["0",97.2,"99"],["1",0,"00"]]]],)"
                R"("times":[1933124850000,1933128450000],"left_off":0,)"
                R"("missing":[{"cluster_id":"cloud","reason":"no_tsdb"}]})"},
       .params = {Param::kClusterId, Param::kWords, Param::kMetric},
       .tagged = false,
       .waits = true,
       .audited = false}};
}

}  // namespace ceems::api
