// Where a unit spent its CPU time, from Pyroscope.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "api/endpoints/all.h"
#include "api/endpoints/unit_period.h"
#include "api/profiles/pyroscope.h"
#include "base/json.h"
#include "base/log.h"
#include "base/time/durations.h"
#include "tsdb/client.h"

namespace ceems::api {
namespace {

constexpr std::int64_t kResolutionMs = 1000;

/// The last part of the period in which the ID was the caller's alone, of at most a day: the
/// longest query that Pyroscope accepts unless it is configured otherwise
/// (-querier.max-query-length).
store::TimeRange last_part(const UnitPeriod& period) {
  if (period.range.to_ms <= period.range.from_ms) {
    return {};
  }
  const auto parts = gate::own_parts(
      {.start_ms = period.range.from_ms, .end_ms = period.range.to_ms, .step_ms = kResolutionMs},
      {}, 0, period.lives);
  if (parts.empty()) {
    return {};
  }
  const gate::Evaluation& last = parts.back();
  return {.from_ms = std::max(last.start_ms, last.end_ms - kDayMs), .to_ms = last.end_ms};
}

void answer_profile(Call& call, const store::TimeRange& range, const Flame* flame) {
  std::string data;
  JsonWriter json(data);
  const bool found = flame != nullptr && !flame->levels.empty();
  json.begin_object()
      .member("state", flame == nullptr ? "none"
                       : found          ? "profile"
                                        : "empty")
      .member("from", range.from_ms)
      .member("to", range.to_ms)
      .member("total", found ? flame->levels.front().front().total : std::int64_t{0})
      .member("left_out", found ? static_cast<std::int64_t>(flame->left_out) : std::int64_t{0});
  json.key("names").begin_array();
  for (const std::string& name : found ? flame->names : std::vector<std::string>()) {
    json.value(name);
  }
  json.end_array().key("levels").begin_array();
  for (const auto& level : found ? flame->levels : std::vector<std::vector<Flame::Node>>()) {
    json.begin_array();
    for (const Flame::Node& node : level) {
      json.begin_array()
          .value(node.start)
          .value(node.total)
          .value(node.self)
          .value(static_cast<std::int64_t>(node.name))
          .end_array();
    }
    json.end_array();
  }
  json.end_array().end_object();
  answer_data(*call.response, data);
}

void get_profile(const Services& services, Call& call) {
  const auto period = period_of_unit(services, call);
  if (!period) {
    return;
  }
  const std::string& cluster = call.params.clusters.front();
  const store::TimeRange range = last_part(*period);
  if (services.profiles == nullptr || !services.profiles->has(cluster)) {
    answer_profile(call, range, nullptr);
    return;
  }
  if (range.to_ms <= range.from_ms) {
    const Flame nothing;
    answer_profile(call, range, &nothing);
    return;
  }
  const auto flame = services.profiles->profile({.cluster_id = cluster,
                                                 .uuid = call.params.uuids.front(),
                                                 .from_ms = range.from_ms,
                                                 .to_ms = range.to_ms});
  if (flame) {
    answer_profile(call, range, &*flame);
    return;
  }
  if (!tsdb::CancelScope::cancelled()) {
    log::warn("cannot read the profile of a unit",
              {{"cluster_id", cluster}, {"err", flame.error().message}});
  }
  switch (flame.error().code) {
    case ErrorCode::kInvalidArgument:
      answer_error(*call.response, ApiErrorType::kBadData,
                   "the profile server cannot name this id");
      return;
    case ErrorCode::kPermissionDenied:
      answer_error(*call.response, ApiErrorType::kInternal,
                   "the profile server refuses the credentials of this server");
      return;
    case ErrorCode::kParse:
      answer_error(*call.response, ApiErrorType::kInternal,
                   "the profile server sent something that is not a profile");
      return;
    default:
      call.response->set_header("Retry-After", "10");
      answer_error(*call.response, ApiErrorType::kTimeout,
                   "the profile server sent no profile of at most 4 MiB within 10 s");
  }
}

}  // namespace

Endpoints units_profile_endpoints() {
  return {{.path = "units/profile",
           .caller = Caller::kUser,
           .summary = "Which functions used the CPU time of one of the caller's units.",
           .handler = get_profile,
           .data = {.name = "Profile",
                    .one = true,
                    .definitions = R"json("Profile": {
        "type": "object",
        "required": ["state", "from", "to", "total", "left_out", "names", "levels"],
        "additionalProperties": false,
        "properties": {
          "state": {"type": "string", "enum": ["profile", "empty", "none"], "description": "`empty`: nothing was profiled in this period; `none`: the cluster has no profile server."},
          "from": {"type": "integer", "description": "Milliseconds since 1970."},
          "to": {"type": "integer", "description": "Milliseconds since 1970; at most a day after `from`."},
          "total": {"type": "integer", "description": "CPU time of all samples in nanoseconds."},
          "left_out": {"type": "integer", "description": "How many nodes are missing, because only the 2,000 with the highest totals are sent."},
          "names": {"type": "array", "items": {"type": "string"}, "description": "Of functions, as programs have them."},
          "levels": {
            "type": "array",
            "description": "The nodes by depth, from left to right; the first level is the root alone.",
            "items": {
              "type": "array",
              "items": {
                "type": "array",
                "description": "Start, total and self in nanoseconds, and the index of the name. A node lies within its parent: from its start, as far as its total.",
                "items": {"type": "integer"},
                "minItems": 4,
                "maxItems": 4
              }
            }
          }
        }
      })json",
                    .example =
                        R"({"state":"profile","from":1933128450000,"to":1933128510000,"total":50,)"
                        R"("left_out":0,"names":["total","main","solve"],)"
                        R"("levels":[[[0,50,0,0]],[[0,50,10,1]],[[10,40,40,2]]]})"},
           .params = {Param::kClusterId, Param::kProject, Param::kUuid, Param::kFrom, Param::kTo},
           .required = {Param::kClusterId, Param::kUuid},
           .window = WindowKind::kOwn,
           .tagged = false,
           .waits = true,
           .refusals = {ApiErrorType::kForbidden}}};
}

}  // namespace ceems::api
