// Units that slow others down.
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/answer/numbers.h"
#include "api/endpoints/all.h"
#include "api/endpoints/find_run.h"
#include "api/tsdb/fleet.h"
#include "base/json.h"
#include "base/log.h"
#include "base/time/durations.h"

namespace ceems::api {
namespace {

constexpr int kNeighbourDigits = 4;
/// A unit on more nodes than that is hardly slowed down by what else runs on one of them.
constexpr std::size_t kMaxNodesOfVictim = 8;

/// Writes rows for admins, or for the owner of a victim, who does not learn whose fault it is.
class NeighbourRows {
 public:
  NeighbourRows(std::string& data, const std::string& cluster_id, std::string_view only_victim)
      : json_(data), cluster_id_(cluster_id), victim_(only_victim) {
    json_.begin_array();
  }
  void end() { json_.end_array(); }

  void add(const std::string& node, const fleet::Neighbour& pair) {
    if (!victim_.empty() && pair.victim != victim_) {
      return;
    }
    begin("node");
    if (victim_.empty()) {
      json_.member("node", node).member("suspect", pair.suspect);
      json_.member("activity", pair.activity);
    }
    json_.member("victim", pair.victim).member("signal", pair.signal);
    number("with", pair.with);
    number("without", pair.without);
    number("correlation", pair.correlation);
    json_.key("bins").begin_array();
    json_.value(static_cast<std::int64_t>(pair.bins_with));
    json_.value(static_cast<std::int64_t>(pair.bins_without)).end_array();
    json_.member("times", static_cast<std::int64_t>(pair.times));
    json_.member("confidence", "likely").end_object();
  }

  void add(const IoLoad& load, const fleet::IoStorm& storm) {
    if (!victim_.empty() && std::ranges::find(storm.victims, victim_) == storm.victims.end()) {
      return;
    }
    // A mount point may be named after a person, such as one of /home.
    const bool shown = victim_.empty() || !storm.file_system.contains('/');
    begin("storm").member("file_system", shown ? std::string_view(storm.file_system) : "");
    if (victim_.empty()) {
      json_.member("suspect", storm.uuid);
      json_.member("victims", static_cast<std::int64_t>(storm.victims.size()));
      json_.member("victims_of", storm.shared ? "file_system" : "cluster");
      number("rate", storm.rate);
    } else {
      json_.member("victim", victim_);
    }
    json_.member("of", storm.kind);
    number("share", storm.share);
    json_.member("since_ts", load.from_ms + static_cast<std::int64_t>(storm.first) * load.step_ms);
    json_.member("seconds", static_cast<std::int64_t>(storm.windows) * load.step_ms / kSecondMs);
    json_.member("confidence", "likely").end_object();
  }

  void add(const FileSystemTop& top) {
    begin("top").member("file_system", top.file_system).member("suspect", top.uuid);
    number("bytes", top.bytes);
    number("requests", top.requests);
    number("metadata", top.metadata);
    number("share", top.share);
    json_.end_object();
  }

 private:
  JsonWriter& begin(std::string_view kind) {
    return json_.begin_object().member("cluster_id", cluster_id_).member("kind", kind);
  }
  void number(std::string_view name, std::optional<double> value) {
    json_.key(name);
    append_number(json_, value ? std::optional(rounded(*value, kNeighbourDigits)) : value);
  }

  JsonWriter json_;
  const std::string& cluster_id_;
  std::string_view victim_;
};

/// A cluster without a TSDB has no rows.
void answer_neighbour_failure(Call& call, const std::string& cluster_id, const Error& error) {
  if (error.code == ErrorCode::kNotFound) {
    answer_data(*call.response, "[]");
    return;
  }
  if (!tsdb::CancelScope::cancelled()) {
    log::warn("cannot read which units slow others down",
              {{"cluster_id", cluster_id}, {"err", error.message}});
  }
  answer_tsdb_failure(*call.response);
}

void get_neighbours(const Services& services, Call& call) {
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
  const std::int64_t until_ms = running ? services.now_ms() : unit.ended_at_ts;
  const auto nodes = services.fleet->nodes_of(unit.cluster_id, unit.uuid, until_ms);
  if (!nodes) {
    answer_neighbour_failure(call, unit.cluster_id, nodes.error());
    return;
  }
  std::vector<NodeNeighbours> pairs;
  if (nodes->size() <= kMaxNodesOfVictim) {
    auto read = services.fleet->neighbours(unit.cluster_id, *nodes, until_ms);
    if (!read) {
      answer_neighbour_failure(call, unit.cluster_id, read.error());
      return;
    }
    pairs = *std::move(read);
  }
  std::string data;
  NeighbourRows rows(data, unit.cluster_id, unit.uuid);
  for (const NodeNeighbours& node : pairs) {
    for (const fleet::Neighbour& pair : node.pairs) {
      rows.add(node.node, pair);
    }
  }
  if (running) {
    const auto load = services.fleet->io_load(unit.cluster_id);
    if (!load) {
      answer_neighbour_failure(call, unit.cluster_id, load.error());
      return;
    }
    for (const fleet::IoStorm& storm : (*load)->storms) {
      rows.add(**load, storm);
    }
  }
  rows.end();
  answer_data(*call.response, data);
}

void get_everybodys_neighbours(const Services& services, Call& call) {
  if (call.params.clusters.size() != 1) {
    answer_error(*call.response, ApiErrorType::kBadData, "one cluster_id is needed");
    return;
  }
  const std::string& cluster_id = call.params.clusters.front();
  if (services.fleet == nullptr) {
    answer_data(*call.response, "[]");
    return;
  }
  std::string data;
  NeighbourRows rows(data, cluster_id, "");
  if (const std::string node(call.params.text(Param::kHost)); !node.empty()) {
    const auto read = services.fleet->neighbours(cluster_id, {node}, services.now_ms());
    if (!read) {
      answer_neighbour_failure(call, cluster_id, read.error());
      return;
    }
    for (const NodeNeighbours& one : *read) {
      for (const fleet::Neighbour& pair : one.pairs) {
        rows.add(one.node, pair);
      }
    }
  } else {
    const auto load = services.fleet->io_load(cluster_id);
    if (!load) {
      answer_neighbour_failure(call, cluster_id, load.error());
      return;
    }
    for (const fleet::IoStorm& storm : (*load)->storms) {
      rows.add(**load, storm);
    }
    for (const FileSystemTop& top : (*load)->top) {
      rows.add(top);
    }
  }
  rows.end();
  answer_data(*call.response, data);
}

}  // namespace

Endpoints insight_neighbours_endpoints() {
  const Endpoint neighbours{
      .data =
          {.name = "Neighbour",
           .definitions = R"json("Neighbour": {
        "type": "object",
        "description": "A unit that slows another one down on a node (`node`), a unit that asks so much of a file system that others wait (`storm`), or, for admins, a unit that asks most of a file system (`top`).",
        "required": ["cluster_id", "kind"],
        "additionalProperties": false,
        "properties": {
          "cluster_id": {"type": "string", "description": "ID of the cluster."},
          "kind": {"enum": ["node", "storm", "top"]},
          "node": {"type": "string", "description": "Name of the node. For admins only, as `suspect`."},
          "victim": {"type": "string", "description": "ID of the unit that is slower."},
          "suspect": {"type": "string", "description": "ID of the unit that is probably the cause, or that asks most."},
          "signal": {"enum": ["cpi", "io", "memory"], "description": "Of the victim: cycles per instruction, or the share of the time in which it waited for I/O or memory."},
          "activity": {"enum": ["cpu", "bytes", "requests"], "description": "Of the suspect, with which the signal changes."},
          "with": {"type": "number", "description": "Median of the signal while the suspect is active."},
          "without": {"type": "number", "description": "The same while it is not."},
          "correlation": {"type": "number", "description": "Of signal and activity, over the ten minutes in which it was highest."},
          "bins": {"type": "array", "items": {"type": "integer"}, "description": "Minutes with and without."},
          "times": {"type": "integer", "description": "How often the suspect began or paused."},
          "confidence": {"enum": ["likely"]},
          "file_system": {"type": "string", "description": "Name or mount point; empty: it is not known which."},
          "victims": {"type": "integer", "description": "Of a storm: units that waited more than twice as long as otherwise."},
          "victims_of": {"enum": ["file_system", "cluster"], "description": "Of a storm: which units were counted, those that use the file system, or, if that is not known, all of the cluster."},
          "of": {"enum": ["requests", "metadata"], "description": "Of a storm: what it asks for."},
          "share": {"type": ["number", "null"], "description": "Share of what all units asked for; of `top`, the highest of the three."},
          "rate": {"type": "number", "description": "Of a storm: requests a second."},
          "since_ts": {"type": "integer", "description": "When the storm began, in milliseconds since 1970."},
          "seconds": {"type": "integer", "description": "How long it lasted."},
          "bytes": {"type": ["number", "null"], "description": "Of `top`: bytes a second over the last hour."},
          "requests": {"type": ["number", "null"], "description": "Likewise, reads and writes."},
          "metadata": {"type": ["number", "null"], "description": "Likewise, requests of metadata."}
        }
      })json",
           .example =
               R"({"cluster_id":"hpc-a","kind":"node","node":"c017","suspect":"5102","activity":"bytes","victim":"5098",)"
               R"("signal":"cpi","with":1.31,"without":0.83,"correlation":0.71,"bins":[12,9],)"
               R"("times":3,"confidence":"likely"})"},
      .tagged = false,
      .waits = true};
  Endpoint own = neighbours.for_users(
      "insight/neighbours", "Whether a neighbour slows one of the caller's units down.",
      {Param::kClusterId, Param::kProject, Param::kUuid, Param::kStart});
  own.handler = get_neighbours;
  own.required = {Param::kClusterId, Param::kUuid};
  Endpoint all =
      neighbours.for_admins("insight/neighbours/admin",
                            "Units that slow others down, on a node or through a file system.",
                            {Param::kClusterId, Param::kHost});
  all.handler = get_everybodys_neighbours;
  all.required = {Param::kClusterId};
  return {own, all};
}

}  // namespace ceems::api
