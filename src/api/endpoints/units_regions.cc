// What a unit has marked: regions, results and figures of merit (docs/marks.md).
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/answer/numbers.h"
#include "api/endpoints/all.h"
#include "api/endpoints/unit_period.h"
#include "api/report/maker.h"
#include "api/report/marks.h"
#include "base/json.h"
#include "base/log.h"
#include "base/time/durations.h"
#include "gate/shared_ids.h"
#include "tsdb/client.h"

namespace ceems::api {
namespace {

constexpr std::int64_t kLifeResolutionMs = 1000;
constexpr std::size_t kMaxRegions = 64;
constexpr std::size_t kMaxNodesOfRegion = 64;
constexpr int kDigitsOfMarks = 6, kDigitsOfCounts = 12;

/// The caller's last life of the ID, with a minute after it for the last samples. Nothing if all of
/// it may be somebody else's.
std::optional<UnitRun> last_run(const Services& services,
                                const std::string& uuid,
                                const UnitPeriod& period) {
  const std::int64_t until_ms = std::min(period.range.to_ms + kMinuteMs, services.now_ms());
  if (until_ms <= period.range.from_ms) {
    return std::nullopt;
  }
  const auto parts = gate::own_parts(
      {.start_ms = period.range.from_ms, .end_ms = until_ms, .step_ms = kLifeResolutionMs}, {}, 0,
      period.lives);
  if (parts.empty()) {
    return std::nullopt;
  }
  const gate::Evaluation& last = parts.back();
  return UnitRun{.uuid = uuid,
                 .started_ms = last.start_ms,
                 .ended_ms = std::min(last.end_ms, period.range.to_ms),
                 .until_ms = last.end_ms};
}

void append_measured(JsonWriter& json,
                     std::string_view name,
                     const report::Number& number,
                     int digits = kDigitsOfMarks) {
  json.key(name);
  append_number(json, number ? report::Number(rounded(*number, digits)) : std::nullopt);
}

void append_region(JsonWriter& json, const RegionSum& region, const UnitMarks& marks) {
  json.begin_object().member("region", region.name);
  append_measured(json, "count", region.count, kDigitsOfCounts);
  append_measured(json, "seconds", region.seconds);
  append_measured(json, "mean_seconds", region.mean_seconds);
  append_measured(json, "energy_j", region.joules);
  append_measured(json, "self_energy_j", region.self_joules);
  append_measured(json, "watts", region.watts);
  json.key("domains").begin_object();
  for (const auto& [domain, joules] : region.domains) {
    append_measured(json, domain, joules);
  }
  json.end_object().key("nodes").begin_array();
  const std::size_t shown = std::min(region.nodes.size(), kMaxNodesOfRegion);
  for (std::size_t i = 0; i < shown; ++i) {
    const UnitMarks::Node& node = marks.nodes[region.nodes[i]];
    const UnitMarks::Region& here = node.regions.find(region.name)->second;
    json.begin_object().member("node", node.name);
    append_measured(json, "count", here.count, kDigitsOfCounts);
    append_measured(json, "seconds", here.seconds);
    append_measured(json, "energy_j", all_joules(here.joules));
    json.end_object();
  }
  json.end_array()
      .member("nodes_left_out", static_cast<std::int64_t>(region.nodes.size() - shown))
      .end_object();
}

std::string marks_json(const UnitRun& run, const UnitMarks& marks) {
  const report::Number joules = joules_of_unit(marks);
  const std::vector<RegionSum> regions = regions_of(marks);
  const std::size_t shown = std::min(regions.size(), kMaxRegions);
  std::string text;
  JsonWriter json(text);
  json.begin_object().member("from", run.started_ms).member("to", run.ended_ms);
  append_measured(json, "energy_j", joules);
  json.key("regions").begin_array();
  for (std::size_t i = 0; i < shown; ++i) {
    append_region(json, regions[i], marks);
  }
  json.end_array()
      .member("regions_left_out", static_cast<std::int64_t>(regions.size() - shown))
      .key("results")
      .begin_array();
  for (const UnitMarks::Result& result : marks.results) {
    json.begin_object().member("result", result.name).member("unit", result.unit);
    append_measured(json, "n", result.n, kDigitsOfCounts);
    append_measured(json, "joules_per",
                    joules && result.n > 0 ? report::Number(*joules / result.n) : std::nullopt);
    json.end_object();
  }
  json.end_array().key("fom").begin_array();
  for (const UnitMarks::Merit& merit : marks.merits) {
    json.begin_object()
        .member("fom", merit.name)
        .member("unit", merit.unit)
        .member("nodes", static_cast<std::int64_t>(merit.nodes));
    append_measured(json, "last", merit.last);
    append_measured(json, "mean", merit.mean);
    json.end_object();
  }
  json.end_array().end_object();
  return text;
}

void get_regions(const Services& services, Call& call) {
  const auto period = period_of_unit(services, call);
  if (!period) {
    return;
  }
  const std::string& cluster = call.params.clusters.front();
  const auto run = last_run(services, call.params.uuids.front(), *period);
  if (!run || !services.reports->measures(cluster)) {
    answer_data(*call.response, marks_json(run.value_or(UnitRun{.uuid = {},
                                                                .started_ms = period->range.from_ms,
                                                                .ended_ms = period->range.to_ms}),
                                           {}));
    return;
  }
  const auto marks = services.reports->marks(cluster, *run);
  if (marks) {
    answer_data(*call.response, marks_json(*run, *marks));
    return;
  }
  if (!tsdb::CancelScope::cancelled()) {
    log::warn("cannot read what a unit has marked",
              {{"cluster_id", cluster}, {"err", marks.error().message}});
  }
  answer_tsdb_failure(*call.response);
}

}  // namespace

Endpoints units_regions_endpoints() {
  return {
      {.path = "units/regions",
       .caller = Caller::kUser,
       .summary = "The regions, results and figures of merit that one of the caller's units "
                  "has marked.",
       .handler = get_regions,
       .data = {.name = "Marks",
                .one = true,
                .definitions = R"json("Marks": {
        "type": "object",
        "description": "Null means not measured, which is not the same as 0.",
        "required": ["from", "to", "energy_j", "regions", "regions_left_out", "results", "fom"],
        "additionalProperties": false,
        "properties": {
          "from": {"type": "integer", "description": "Start of the unit's life, milliseconds since 1970."},
          "to": {"type": "integer", "description": "Its end, or now."},
          "energy_j": {"type": ["number", "null"], "description": "Energy of the unit on all nodes in joules, as the exporters have counted it."},
          "regions": {
            "type": "array",
            "description": "The longest first, at most 64. Each node counts time and energy from its own begin of the region to its own end.",
            "items": {
              "type": "object",
              "required": ["region", "count", "seconds", "mean_seconds", "energy_j", "self_energy_j", "watts", "domains", "nodes", "nodes_left_out"],
              "additionalProperties": false,
              "properties": {
                "region": {"type": "string", "description": "As the program calls it."},
                "count": {"type": ["number", "null"], "description": "How often it ended, on the node where that was most."},
                "seconds": {"type": ["number", "null"], "description": "Time in it, on the node that took longest."},
                "mean_seconds": {"type": ["number", "null"], "description": "Mean of the nodes that were in it."},
                "energy_j": {"type": ["number", "null"], "description": "Of all nodes, with that of regions within it."},
                "self_energy_j": {"type": ["number", "null"], "description": "The same without regions within it."},
                "watts": {"type": ["number", "null"], "description": "Mean power of the unit on a node that was in it."},
                "domains": {"type": "object", "additionalProperties": {"type": ["number", "null"]}, "description": "energy_j by domain."},
                "nodes": {
                  "type": "array",
                  "description": "The slowest first, at most 64.",
                  "items": {
                    "type": "object",
                    "required": ["node", "count", "seconds", "energy_j"],
                    "additionalProperties": false,
                    "properties": {
                      "node": {"type": "string"},
                      "count": {"type": ["number", "null"]},
                      "seconds": {"type": ["number", "null"]},
                      "energy_j": {"type": ["number", "null"]}
                    }
                  }
                },
                "nodes_left_out": {"type": "integer"}
              }
            }
          },
          "regions_left_out": {"type": "integer"},
          "results": {
            "type": "array",
            "items": {
              "type": "object",
              "required": ["result", "unit", "n", "joules_per"],
              "additionalProperties": false,
              "properties": {
                "result": {"type": "string"},
                "unit": {"type": "string", "description": "Empty if the program said none."},
                "n": {"type": ["number", "null"], "description": "What all nodes have reported."},
                "joules_per": {"type": ["number", "null"], "description": "energy_j for each, so also what was used outside of regions."}
              }
            }
          },
          "fom": {
            "type": "array",
            "items": {
              "type": "object",
              "required": ["fom", "unit", "nodes", "last", "mean"],
              "additionalProperties": false,
              "properties": {
                "fom": {"type": "string"},
                "unit": {"type": "string"},
                "nodes": {"type": "integer", "description": "How many nodes reported it; the numbers are means of them."},
                "last": {"type": ["number", "null"]},
                "mean": {"type": ["number", "null"], "description": "Over the time from the first report on."}
              }
            }
          }
        }
      })json",
                .example =
                    R"({"from":1794903120000,"to":1794970436000,"energy_j":35000000,"regions":[)"
                    R"({"region":"solve","count":1250,"seconds":5882,"mean_seconds":5410.5,)"
                    R"("energy_j":32472000,"self_energy_j":32472000,"watts":690,)"
                    R"("domains":{"package":30000000,"dram":2472000},"nodes":[)"
                    R"({"node":"n07","count":1250,"seconds":5882,"energy_j":4110000}],)"
                    R"("nodes_left_out":7}],"regions_left_out":0,"results":[)"
                    R"({"result":"step","unit":"","n":1250,"joules_per":28000}],"fom":[)"
                    R"({"fom":"speed","unit":"ns/day","nodes":1,"last":83.2,"mean":81.4}]})"},
       .params = {Param::kClusterId, Param::kProject, Param::kUuid},
       .required = {Param::kClusterId, Param::kUuid},
       .tagged = false,
       .waits = true,
       .refusals = {ApiErrorType::kForbidden}}};
}

}  // namespace ceems::api
