// Slow members of a unit on many nodes or GPUs.
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "access/lists.h"
#include "api/answer/numbers.h"
#include "api/endpoints/all.h"
#include "api/endpoints/find_run.h"
#include "api/endpoints/missing_clusters.h"
#include "api/request/list_params.h"
#include "api/tsdb/fleet.h"
#include "base/json.h"
#include "base/log.h"
#include "base/time/durations.h"

namespace ceems::api {
namespace {

using fleet::Straggler;
using fleet::StragglerKind;

constexpr std::string_view kCannotRead = "cannot read the slow members of units";

/// The members of an object that names a straggler.
void append_straggler(JsonWriter& json, const Straggler& row) {
  constexpr double kJoulesOfKwh = 3.6e6;
  constexpr int kDigits = 4;
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
  json.member("node", row.node);
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
}

std::string stragglers_json(const std::vector<Straggler>& rows) {
  std::string data;
  JsonWriter json(data);
  json.begin_array();
  for (const Straggler& row : rows) {
    json.begin_object();
    append_straggler(json, row);
    json.end_object();
  }
  json.end_array();
  return data;
}

void answer_failed(Call& call, const std::string& cluster, const Error& error) {
  if (!tsdb::CancelScope::cancelled()) {
    log::warn(kCannotRead, {{"cluster_id", cluster}, {"err", error.message}});
  }
  answer_tsdb_failure(*call.response);
}

struct Owner {
  std::string user, project, partition;
};

/// Whose these units of a cluster are, which ran a moment ago. A unit that the database does not
/// know yet is absent.
Result<std::map<std::string, Owner>> owners_of(const Services& services,
                                               const Call& call,
                                               const std::string& cluster,
                                               const std::vector<StragglersOfUnit>& units) {
  using store::Fact;
  std::map<std::string, Owner> owners;
  store::FactListQuery query;
  query.filter.clusters = {cluster};
  query.filter.ended = store::TimeRange{services.now_ms() - kHourMs, services.now_ms() + kHourMs};
  query.filter.running = true;
  for (const StragglersOfUnit& unit : units) {
    query.filter.uuids.push_back(unit.uuid);
  }
  access::list_everybodys(call.identity, {}, query.filter);
  query.columns = {Fact::kUuid, Fact::kUser, Fact::kProject, Fact::kPartition};
  query.sort = Fact::kStarted;  // the newest run of an ID comes last
  query.descending = false;
  QueryTimer timer(*services.metrics, Query::kUnits);
  CEEMS_TRY(rows, timer.run([&] { return services.reader->unit_facts(query); }));
  while (true) {
    CEEMS_TRY(row, timer.run([&] { return rows->next(); }));
    if (!row) {
      return owners;
    }
    timer.count_row();
    owners[std::string(rows->text(0))] = {.user = std::string(rows->text(1)),
                                          .project = std::string(rows->text(2)),
                                          .partition = std::string(rows->text(3))};
  }
}

/// Appends the rows of a cluster, or of some of its projects.
Result<> append_units(JsonWriter& json,
                      const Services& services,
                      const Call& call,
                      const std::string& cluster,
                      const std::vector<StragglersOfUnit>& units) {
  const auto projects = split_lists(call.params.projects);
  if (units.empty()) {
    return {};
  }
  CEEMS_TRY(owners, owners_of(services, call, cluster, units));
  for (const StragglersOfUnit& unit : units) {
    const auto known = owners.find(unit.uuid);
    const Owner owner = known == owners.end() ? Owner{} : known->second;
    if (!projects.empty() && std::ranges::find(projects, owner.project) == projects.end()) {
      continue;
    }
    for (const Straggler& row : unit.rows) {
      json.begin_object()
          .member("cluster_id", cluster)
          .member("uuid", unit.uuid)
          .member("user", owner.user)
          .member("project", owner.project)
          .member("partition", owner.partition);
      append_straggler(json, row);
      json.end_object();
    }
  }
  return {};
}

/// The slow members of all running units, by cluster and unit.
void list_stragglers(const Services& services, Call& call) {
  const auto wanted = split_lists(call.params.clusters);
  call.foreign = true;
  AskedClusters asked(kCannotRead);
  std::string data;
  JsonWriter json(data);
  json.begin_array();
  for (const SiteCluster& cluster : services.site->clusters) {
    if (!wanted.empty() && std::ranges::find(wanted, cluster.id) == wanted.end()) {
      continue;
    }
    if (services.fleet == nullptr || !cluster.series) {
      asked.without_tsdb(cluster.id);
      continue;
    }
    const auto units = services.fleet->all_stragglers(cluster.id);
    if (!units) {
      asked.failed(cluster.id, units.error());
      continue;
    }
    asked.answered();
    if (const auto done = append_units(json, services, call, cluster.id, **units); !done) {
      answer_failure(*call.response, done.error());
      return;
    }
  }
  json.end_array();
  asked.answer(*call.response, data);
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
    answer_failed(call, unit.cluster_id, rows.error());
  }
}

/// On the path of admins, a unit need not be named.
void get_anybodys_stragglers(const Services& services, Call& call) {
  if (call.params.uuids.empty()) {
    list_stragglers(services, call);
  } else {
    get_stragglers(services, call);
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
          "cluster_id": {"type": "string", "description": "Of the list of all running units: ID of the cluster."},
          "uuid": {"type": "string", "description": "Likewise: ID of the unit."},
          "user": {"type": "string", "description": "Likewise: its user; empty while the database does not have the unit."},
          "project": {"type": "string", "description": "Likewise: its project."},
          "partition": {"type": "string", "description": "Likewise: its partition."},
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
  Endpoint anybodys = stragglers;
  anybodys.handler = get_anybodys_stragglers;
  anybodys.required = {};
  anybodys.by_cluster = true;
  return {
      stragglers.for_users("insight/stragglers",
                           "Slow GPUs and nodes of one of the caller's units."),
      anybodys.for_admins("insight/stragglers/admin",
                          "Slow GPUs and nodes of any unit, or of all running ones without uuid.")};
}

}  // namespace ceems::api
