// Slow members of a unit on many nodes or GPUs.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "api/answer/numbers.h"
#include "api/endpoints/all.h"
#include "api/endpoints/find_run.h"
#include "api/tsdb/fleet.h"
#include "base/json.h"
#include "base/log.h"

namespace ceems::api {
namespace {

using fleet::Straggler;
using fleet::StragglerKind;

std::string stragglers_json(const std::vector<Straggler>& rows) {
  constexpr double kJoulesOfKwh = 3.6e6;
  constexpr int kDigits = 4;
  std::string data;
  JsonWriter json(data);
  const auto number = [&json](std::string_view name, std::optional<double> value) {
    json.key(name);
    append_number(json, value ? std::optional(rounded(*value, kDigits)) : value);
  };
  const auto text = [&json](std::string_view name, const std::string& value) {
    json.key(name);
    if (value.empty()) {
      json.value(nullptr);
    } else {
      json.value(value);
    }
  };
  json.begin_array();
  for (const Straggler& row : rows) {
    json.begin_object().member("node", row.node);
    text("device", row.device);
    json.member("metric", row.metric);
    number("z", row.z);
    number("deviation", row.deviation);
    json.member("windows", fmt::format("{}/{}", row.counted, row.windows));
    json.member("kind", fleet::name_of(row.kind));
    text("cause", row.cause);
    json.key("your_code");
    // What waits may have less work, or wait for the network.
    if (row.kind == StragglerKind::kWaits) {
      json.value(nullptr);
    } else {
      json.value(row.kind == StragglerKind::kImbalance);
    }
    number("waiting_kwh_max", row.waiting_joules_max
                                  ? std::optional(*row.waiting_joules_max / kJoulesOfKwh)
                                  : std::nullopt);
    json.end_object();
  }
  json.end_array();
  return data;
}

void get_stragglers(const Services& services, Call& call) {
  const auto found = find_asked_run(services, call);
  if (!found) {
    return;
  }
  const model::Unit& unit = found->unit;
  if (services.fleet == nullptr || unit.started_at_ts <= 0) {
    answer_data(*call.response, "[]");
    return;
  }
  const bool running = unit.ended_at_ts <= 0;
  const auto rows = services.fleet->stragglers(
      unit.cluster_id, {.uuid = unit.uuid,
                        .started_ms = unit.started_at_ts,
                        .until_ms = running ? services.now_ms() : unit.ended_at_ts,
                        .running = running});
  if (rows) {
    answer_data(*call.response, stragglers_json(*rows));
  } else if (rows.error().code == ErrorCode::kNotFound) {  // a cluster without a TSDB
    answer_data(*call.response, "[]");
  } else {
    if (!tsdb::CancelScope::cancelled()) {
      log::warn("cannot read the slow members of a unit",
                {{"cluster_id", unit.cluster_id}, {"err", rows.error().message}});
    }
    answer_tsdb_failure(*call.response);
  }
}

}  // namespace

Endpoints insight_stragglers_endpoints() {
  const Endpoint stragglers{
      .handler = get_stragglers,
      .data = {.name = "Straggler",
               .definitions = R"json("Straggler": {
        "type": "object",
        "description": "A GPU or node of a unit that differs from its peers, of units on at least 4 nodes or 8 GPUs that have run for 15 minutes.",
        "properties": {
          "node": {"type": "string", "description": "Name of the node."},
          "device": {"type": ["string", "null"], "description": "Index of the GPU; `null`: the node, or all of its GPUs."},
          "metric": {"type": "string", "description": "What differs: `gpu_clock`, `gpu_power`, `activity`, `power`, or a kind of error."},
          "z": {"type": ["number", "null"], "description": "Modified z-score among the peers, the median of the windows that count."},
          "deviation": {"type": ["number", "null"], "description": "Share by which it differs from the median of its peers, likewise."},
          "windows": {"type": "string", "description": "How many windows count, of ten in a row."},
          "kind": {"type": "string", "description": "`slow_device`, `imbalance` (it has more work), `waits` (it waits, or has less work) or `fabric_or_disk`."},
          "cause": {"type": ["string", "null"], "description": "The reason that kept the clock down, such as `hardware_thermal`, or the kind of errors."},
          "your_code": {"type": ["boolean", "null"], "description": "Whether the program is the cause rather than the hardware."},
          "waiting_kwh_max": {"type": ["number", "null"], "description": "At most what others drew while they waited for it, or it for them."}
        }
      })json",
               .example =
                   R"({"node":"g14","device":"3","metric":"gpu_clock","z":-6.1,"deviation":-0.11,)"
                   R"("windows":"8/10","kind":"slow_device","cause":"hardware_thermal",)"
                   R"("your_code":false,"waiting_kwh_max":0.4})"},
      .params = {Param::kClusterId, Param::kProject, Param::kUuid, Param::kStart},
      .required = {Param::kClusterId, Param::kUuid},
      .tagged = false,
      .waits = true};
  return {stragglers.for_users("insight/stragglers",
                               "Slow GPUs and nodes of one of the caller's units."),
          stragglers.for_admins("insight/stragglers/admin", "Slow GPUs and nodes of any unit.")};
}

}  // namespace ceems::api
