// What units did on GPUs.
#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "access/lists.h"
#include "api/answer/numbers.h"
#include "api/endpoints/all.h"
#include "api/endpoints/missing_clusters.h"
#include "api/request/list_params.h"
#include "api/tsdb/fleet.h"
#include "base/json.h"

namespace ceems::api {
namespace {

constexpr int kGpuDigits = 3;
constexpr std::size_t kAtOnce = 200;  // ids in one query

/// One life of a unit that the caller may see; 0: it has not ended.
struct Life {
  std::int64_t started_ms = 0, ended_ms = 0;
  std::string user;
  std::string array;  ///< the id that SLURM shows, where it is not the uuid
};
using Lives = std::multimap<std::string, Life, std::less<>>;  ///< by uuid

/// The lives of the units on the board that the caller may see.
Result<Lives> visible_lives(const Services& services,
                            const Call& call,
                            const std::string& cluster_id,
                            const GpuBoard& board) {
  using store::Fact;
  std::set<std::string> ids;
  for (const GpuRow& row : board.rows) {
    for (const GpuRow::Cell& cell : row.cells) {
      for (const GpuPart& part : cell.parts) {
        ids.insert(part.uuid);
      }
    }
  }
  store::FactListQuery query;
  if (call.admin_route) {
    access::list_everybodys(call.identity, {}, query.filter);
  } else {
    access::list_own(call.identity, access::Part::kAll, query.filter);
  }
  query.columns = {Fact::kUuid, Fact::kStarted, Fact::kEnded, Fact::kUser, Fact::kArray};
  query.filter.clusters = {cluster_id};
  const std::int64_t first_ms = board.ends_ms.front() - kGpuPeriodMs;
  query.filter.ended = store::TimeRange{first_ms, services.now_ms() + kGpuPeriodMs};
  query.filter.running = true;
  query.sort = Fact::kStarted;
  QueryTimer timer(*services.metrics, Query::kUnits);
  Lives lives;
  for (auto next = ids.begin(); next != ids.end();) {
    query.filter.uuids.clear();
    while (next != ids.end() && query.filter.uuids.size() < kAtOnce) {
      query.filter.uuids.push_back(*next++);
    }
    CEEMS_TRY(rows, timer.run([&] { return services.reader->unit_facts(query); }));
    while (true) {
      CEEMS_TRY(row, timer.run([&] { return rows->next(); }));
      if (!row) {
        break;
      }
      timer.count_row();
      lives.emplace(rows->text(0), Life{.started_ms = rows->integer(1),
                                        .ended_ms = rows->integer(2),
                                        .user = std::string(rows->text(3)),
                                        .array = std::string(rows->text(4))});
    }
  }
  return lives;
}

/// The life of the unit in a period that ends at this time, or null.
const Life* life_in(const Lives& lives, const std::string& uuid, std::int64_t end_ms) {
  const auto [begin, end] = lives.equal_range(uuid);
  const auto found = std::find_if(begin, end, [&](const auto& life) {
    return life.second.started_ms < end_ms &&
           (life.second.ended_ms == 0 || life.second.ended_ms > end_ms - kGpuPeriodMs);
  });
  return found == end ? nullptr : &found->second;
}

void append_share(JsonWriter& json, std::string_view name, std::optional<double> share) {
  json.key(name);
  append_number(json, share ? std::optional(rounded(*share, kGpuDigits)) : std::nullopt);
}

void append_cell(
    JsonWriter& json, const GpuRow::Cell& cell, std::int64_t end_ms, const Lives& lives, bool all) {
  if (!cell.seen) {
    json.value(nullptr);
    return;
  }
  bool others = false;
  json.begin_object().key("units").begin_array();
  for (const GpuPart& part : cell.parts) {
    const Life* const life = life_in(lives, part.uuid, end_ms);
    if (life == nullptr && !all) {
      others = true;
      continue;
    }
    json.begin_object().member("uuid", part.uuid).key("user");
    if (life != nullptr) {
      json.value(life->user);
    } else {
      json.value(nullptr);
    }
    if (life != nullptr && !life->array.empty()) {
      json.member("array", life->array);
    }
    append_share(json, "busy", part.busy);
    append_share(json, "sm", part.sm);
    json.end_object();
  }
  json.end_array().member("others", others).end_object();
}

void append_rows(JsonWriter& json,
                 const std::string& cluster_id,
                 const GpuBoard& board,
                 const Lives& lives,
                 bool all) {
  for (const GpuRow& row : board.rows) {
    json.begin_object().member("cluster_id", cluster_id).member("host", row.host);
    json.member("gpu", row.index).member("instance", row.instance).key("cells").begin_array();
    for (std::size_t i = 0; i < row.cells.size(); ++i) {
      append_cell(json, row.cells[i], board.ends_ms[i], lives, all);
    }
    json.end_array().end_object();
  }
}

void get_gpus(const Services& services, Call& call) {
  const auto wanted = split_lists(call.params.clusters);
  std::vector<MissingCluster> missing;
  std::string rows;
  JsonWriter json(rows);
  json.begin_array();
  std::vector<std::int64_t> times;
  const std::int64_t now_ms = services.now_ms();
  for (const SiteCluster& cluster : services.site->clusters) {
    if (!wanted.empty() && std::ranges::find(wanted, cluster.id) == wanted.end()) {
      continue;
    }
    if (services.fleet == nullptr || !cluster.series) {
      missing.push_back({cluster.id, kNoTsdb});
      continue;
    }
    const auto board = services.fleet->gpus(cluster.id, now_ms);
    if (!board) {
      missing.push_back({cluster.id, kUnavailable});
      continue;
    }
    const auto lives = visible_lives(services, call, cluster.id, **board);
    if (!lives) {
      answer_failure(*call.response, lives.error());
      return;
    }
    times = (*board)->ends_ms;
    append_rows(json, cluster.id, **board, *lives, call.admin_route);
  }
  json.end_array();
  std::string data;
  JsonWriter answer(data);
  answer.begin_object().member("step_s", kGpuPeriodMs / 1000).key("times").begin_array();
  for (const std::int64_t time : times) {
    answer.value(time);
  }
  answer.end_array().raw_member("rows", rows);
  answer.raw_member("missing", clusters_json(missing));
  answer.end_object();
  answer_data(*call.response, data);
}

}  // namespace

Endpoints gpus_endpoints() {
  const Endpoint gpus{
      .handler = get_gpus,
      .data =
          {.name = "GpuBoard",
           .one = true,
           .definitions = R"json("GpuBoard": {
        "type": "object",
        "required": ["step_s", "times", "rows", "missing"],
        "additionalProperties": false,
        "properties": {
          "step_s": {"type": "integer", "description": "Length of a period in seconds."},
          "times": {"type": "array", "items": {"type": "integer"}, "description": "Ends of the periods in milliseconds since 1970."},
          "rows": {
            "type": "array",
            "items": {
              "type": "object",
              "required": ["cluster_id", "host", "gpu", "instance", "cells"],
              "additionalProperties": false,
              "properties": {
                "cluster_id": {"type": "string"},
                "host": {"type": "string"},
                "gpu": {"type": "string", "description": "Index of the GPU on its node."},
                "instance": {"type": "string", "description": "Instance of the GPU, or empty."},
                "cells": {
                  "type": "array",
                  "description": "One for each period; null if nothing is known of it.",
                  "items": {
                    "type": ["object", "null"],
                    "required": ["units", "others"],
                    "additionalProperties": false,
                    "properties": {
                      "units": {
                        "type": "array",
                        "items": {
                          "type": "object",
                          "required": ["uuid", "user", "busy", "sm"],
                          "additionalProperties": false,
                          "properties": {
                            "uuid": {"type": "string"},
                            "array": {"type": "string", "description": "The ID that SLURM shows of a task of an array or a part of a heterogeneous job. Absent of others."},
                            "user": {"type": ["string", "null"], "description": "Null if the database does not know the unit yet."},
                            "busy": {"type": ["number", "null"], "description": "Share of the period in which the unit had a kernel on the GPU."},
                            "sm": {"type": ["number", "null"], "description": "Share of the SMs that worked, over the period."}
                          }
                        }
                      },
                      "others": {"type": "boolean", "description": "Units that the caller may not see used the GPU."}
                    }
                  }
                }
              }
            }
          },
          "missing": {"$ref": "#/components/schemas/MissingClusters"}
        }
      })json",
           .example =
               R"({"step_s":600,"times":[1933128450000],"rows":[{"cluster_id":"hpc-a","host":"g14",)"
               R"("gpu":"0","instance":"","cells":[{"units":[{"uuid":"7001","user":"ada","busy":0.66,)"
               R"("sm":0.33}],"others":false}]}],"missing":[]})"},
      .params = {Param::kClusterId},
      .tagged = false,
      .waits = true,
      .refusals = {ApiErrorType::kBadData}};
  return {
      gpus.for_users("gpus", "GPUs in the last 70 minutes, with the use by the caller's units."),
      gpus.for_admins("gpus/admin", "GPUs in the last 70 minutes, with their use by all units.")};
}

}  // namespace ceems::api
