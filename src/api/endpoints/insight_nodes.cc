// Nodes that are probably sick, with the evidence.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "api/answer/numbers.h"
#include "api/endpoints/all.h"
#include "api/endpoints/missing_clusters.h"
#include "api/node_judge.h"
#include "api/request/list_params.h"
#include "base/json.h"
#include "base/strings.h"

namespace ceems::api {
namespace {

constexpr int kSickDigits = 4;
/// Of a probability, which may be small.
constexpr int kChanceDigits = 3;

std::string day_of(const TimeZone& zone, std::int64_t ms) {
  return zone.local(ms).substr(0, sizeof("2026-11-03") - 1);
}

void append_step(JsonWriter& json,
                 const Services& services,
                 const std::string& cluster,
                 const fleet::ClassStep& step) {
  json.begin_object().member("cluster_id", cluster).member("kind", "step");
  json.member("class", step.node_class).member("effect", rounded(step.effect, kSickDigits));
  json.member("first", day_of(services.zone, step.first_ms)).key("nodes").begin_array();
  for (const std::string& node : step.nodes) {
    json.value(node);
  }
  json.end_array().end_object();
}

void append_sick(JsonWriter& json,
                 const Services& services,
                 const std::string& cluster,
                 const fleet::SickNode& node) {
  json.begin_object().member("cluster_id", cluster).member("kind", "node");
  json.member("node", node.node).member("class", node.node_class);
  json.member("score", std::int64_t{node.score});
  if (const auto& drift = node.drift) {
    json.member("effect", rounded(drift->effect, kSickDigits)).key("before");
    append_number(
        json, drift->before ? std::optional(rounded(*drift->before, kSickDigits)) : std::nullopt);
    json.member("n", static_cast<std::int64_t>(drift->n));
    json.member("users", static_cast<std::int64_t>(drift->users));
    json.member("p", rounded(drift->p, kChanceDigits));
    json.member("first", day_of(services.zone, drift->first_ms));
  } else {
    json.key("effect").value(nullptr);
  }
  json.key("failures");
  if (const auto& failures = node.failures) {
    json.begin_object().member("failed", static_cast<std::int64_t>(failures->failed));
    json.member("jobs", static_cast<std::int64_t>(failures->jobs));
    json.member("users", static_cast<std::int64_t>(failures->users));
    json.member("rate_of_class", rounded(failures->rate_of_class, kSickDigits));
    json.member("p", rounded(failures->p, kChanceDigits));
    json.member("first", day_of(services.zone, failures->first_ms)).end_object();
  } else {
    json.value(nullptr);
  }
  json.key("hints").begin_array();
  for (const auto& [sign, count] : node.signs) {
    json.value(name_of(sign));
  }
  json.end_array().key("signs").begin_object();
  for (const auto& [sign, count] : node.signs) {
    json.member(name_of(sign), static_cast<std::int64_t>(std::llround(count)));
  }
  json.end_object().key("suggested");
  if (node.suggested.empty()) {
    json.value(nullptr);
  } else {
    json.value(node.suggested);
  }
  json.end_object();
}

void get_sick_nodes(const Services& services, Call& call) {
  const auto wanted = split_lists(call.params.clusters);
  std::vector<MissingCluster> missing;  // of which signs of broken hardware are
  std::string data;
  JsonWriter json(data);
  json.begin_array();
  for (const SiteCluster& cluster : services.site->clusters) {
    if (!wanted.empty() && std::ranges::find(wanted, cluster.id) == wanted.end()) {
      continue;
    }
    const auto health = services.nodes->judge(cluster);
    if (!health) {
      answer_failure(*call.response, health.error());
      return;
    }
    if (services.fleet == nullptr || !cluster.series) {
      missing.push_back({cluster.id, kNoTsdb});
    } else if ((*health)->without_signs) {
      missing.push_back({cluster.id, kUnavailable});
    }
    for (const fleet::SickNode& node : (*health)->nodes) {
      append_sick(json, services, cluster.id, node);
    }
    for (const fleet::ClassStep& step : (*health)->steps) {
      append_step(json, services, cluster.id, step);
    }
  }
  json.end_array();
  answer_data(*call.response, data, {}, {}, clusters_json(missing));
}

}  // namespace

Endpoints insight_nodes_endpoints() {
  return {
      {.path = "insight/nodes/admin",
       .caller = Caller::kAdmin,
       .summary = "Nodes that are probably sick, with the evidence.",
       .handler = get_sick_nodes,
       .data =
           {.name = "SickNode",
            .definitions = R"json("SickNode": {
        "type": "object",
        "description": "A node that should be looked at; or, with `kind` `step`, a step that many nodes of a class took within a day.",
        "required": ["cluster_id", "kind", "class", "effect"],
        "additionalProperties": false,
        "properties": {
          "cluster_id": {"type": "string", "description": "ID of the cluster."},
          "kind": {"enum": ["node", "step"]},
          "node": {"type": "string", "description": "Name of the node."},
          "nodes": {"type": "array", "items": {"type": "string"}, "description": "Of a step: the nodes that took it."},
          "class": {"type": "string", "description": "What the node is compared with: nodes of these CPUs and GPUs."},
          "score": {"type": "integer", "description": "From 30 to 100: how much evidence there is."},
          "effect": {"type": ["number", "null"], "description": "Natural logarithm of what the node draws ÷ the median of the nodes of the same jobs, the median over its last jobs; null: as its peers."},
          "before": {"type": ["number", "null"], "description": "The same of its first jobs of the last 90 days."},
          "n": {"type": "integer", "description": "Jobs that `effect` is known from."},
          "users": {"type": "integer", "description": "Their users."},
          "p": {"type": "number", "description": "Probability of so one-sided effects by chance (sign test)."},
          "first": {"type": "string", "description": "Day of the first such job."},
          "failures": {"type": ["object", "null"], "description": "Of the last 40 jobs: those that failed and are not explained, their users, the rate of such jobs on other nodes of the class, the probability of so many by chance (binomial), and the day of the first.", "properties": {
            "failed": {"type": "integer"}, "jobs": {"type": "integer"}, "users": {"type": "integer"},
            "rate_of_class": {"type": "number"}, "p": {"type": "number"}, "first": {"type": "string"}}},
          "hints": {"type": "array", "items": {"enum": ["lost_gpu", "ecc", "xid", "link", "throttle"]}, "description": "Signs of broken hardware, the hardest first."},
          "signs": {"type": "object", "additionalProperties": {"type": "number"}, "description": "Their numbers over the last day; of `throttle`, seconds."},
          "suggested": {"type": ["string", "null"], "description": "A line to drain the node. It is never executed."}
        }
      })json",
            .example =
                R"({"cluster_id":"hpc-a","kind":"node","node":"g14","class":"EPYC 9354, H100","score":50,"effect":0.061,)"
                R"("before":0.002,"n":30,"users":9,"p":0.0002,"first":"2026-11-03","failures":null,"hints":["throttle"],)"
                R"("signs":{"throttle":5400},"suggested":"scontrol update nodename=g14 state=drain reason=\"ceems: )"
                R"(throttled for 5400 s; draws 6.3 % more than its peers in 30 jobs of 9 users\""})"},
       .params = {Param::kClusterId},
       .by_cluster = true,
       .tagged = false,
       .waits = true,
       .audited = false}};
}

}  // namespace ceems::api
