// Kinds of units: runs of one user and project whose names differ in numbers only, with one
// suggestion.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "advice/judge.h"
#include "api/answer/numbers.h"
#include "api/endpoints/all.h"
#include "api/endpoints/unit_filter.h"
#include "api/request/list_params.h"
#include "base/json.h"
#include "base/strings.h"
#include "store/advice_rules.h"
#include "store/reports.h"
#include "store/unit_name.h"

namespace ceems::api {
namespace {

constexpr std::size_t kKindsShown = 20, kMaxKinds = 100;
constexpr int kKindDigits = 4;
/// Findings of units that ended at one moment.
constexpr std::size_t kMaxAtOnce = 50;

using Sort = store::KindQuery::Sort;
struct SortName {
  std::string_view name;
  Sort sort;
};
constexpr std::array<SortName, 5> kSorts{{{"unused", Sort::kUnused},
                                          {"not_used", Sort::kNotUsed},
                                          {"kwh", Sort::kEnergy},
                                          {"units", Sort::kUnits},
                                          {"ended", Sort::kEnded}}};

Result<store::KindQuery> parse_kinds(const Call& call) {
  CEEMS_TRY(filter, parse_fact_filter(call.params, call.window));
  store::KindQuery query{.filter = std::move(filter), .failed = failed_states()};
  query.limit = kKindsShown;
  const std::string sort = call.params.sort.empty() ? "not_used" : call.params.sort;
  const auto* const found = std::ranges::find(kSorts, std::string_view(sort), &SortName::name);
  if (found == kSorts.end()) {
    return wrong_parameter("'sort': expected unused, not_used, kwh, units or ended");
  }
  query.sort = found->sort;
  if (const std::string_view top = call.params.text(Param::kTop); !top.empty()) {
    const auto limit = parse_int<std::size_t>(top);
    if (!limit || *limit < 1 || *limit > kMaxKinds) {
      return wrong_parameter(fmt::format("'top': expected a number from 1 to {}", kMaxKinds));
    }
    query.limit = *limit;
  }
  return query;
}

/// The most important finding of the last run of a kind that has any.
Result<std::optional<store::UnitFinding>> finding_of(const Services& services,
                                                     const store::FactFilter& filter,
                                                     const store::UnitKind& kind) {
  if (kind.last_advised_ms == 0) {
    return std::optional<store::UnitFinding>();
  }
  store::FindingQuery query{.filter = filter,
                            .rules = {},
                            .least_severity = static_cast<int>(advice::Severity::kInfo),
                            .limit = kMaxAtOnce};
  query.filter.clusters = {kind.cluster_id};
  query.filter.users = {kind.user};
  query.filter.projects = {kind.project};
  query.filter.ended = store::TimeRange{kind.last_advised_ms, kind.last_advised_ms};
  query.filter.running = false;
  query.filter.advice = store::any_advice();
  CEEMS_TRY(findings, services.reader->findings(query));
  std::erase_if(findings, [&kind](const store::UnitFinding& one) {
    return store::normal_name(one.name) != kind.name;
  });
  const auto best = std::ranges::max_element(
      findings, {}, [](const store::UnitFinding& one) { return one.finding.severity; });
  return best == findings.end() ? std::nullopt : std::optional(std::move(*best));
}

void append_optional(JsonWriter& json, std::string_view name, std::optional<double> value) {
  json.key(name);
  append_number(json, value ? std::optional(rounded(*value, kKindDigits)) : std::nullopt);
}

void append(JsonWriter& json,
            const store::UnitKind& kind,
            const std::optional<store::UnitFinding>& best) {
  json.begin_object().member("cluster_id", kind.cluster_id).member("user", kind.user);
  json.member("project", kind.project).key("name");
  append_json_cell(json, store::FactKind::kText, kind.name, 0);
  json.member("units", kind.units).member("running", kind.running).member("failed", kind.failed);
  const auto known = [&json](std::string_view name, double value, std::int64_t units) {
    append_optional(json, name, units > 0 ? std::optional(value) : std::nullopt);
  };
  json.member("measured", kind.measured);
  known("kwh", kind.kwh, kind.measured);
  known("unused", kind.idle_kwh, kind.idle_units);
  append_optional(json, "unused_of", kind.idle_of_kwh);
  known("not_used", kind.not_used_kwh, kind.not_used_units);
  append_optional(json, "not_used_of", kind.not_used_of_kwh);
  known("grams", kind.grams, kind.grams_known);
  append_optional(json, "cpu", kind.cpu);
  append_optional(json, "mem", kind.mem);
  append_optional(json, "gpu", kind.gpu);
  append_optional(json, "kwh_before", kind.kwh_before);
  append_optional(json, "kwh_since", kind.kwh_since);
  json.key("ended");
  append_json_cell(json, store::FactKind::kMoment, "", kind.last_ended_ms);
  json.key("finding");
  if (!best) {
    json.value(nullptr).end_object();
    return;
  }
  const store::FindingRow& finding = best->finding;
  json.begin_object().member("uuid", best->key.uuid);
  json.member("started_at_ts", best->key.started_at_ts).member("rule", finding.rule);
  json.member("severity", advice::to_string(static_cast<advice::Severity>(finding.severity)));
  json.member("runs", finding.runs).raw_member("values", finding.numbers);
  append_optional(json, "saves_kwh", finding.saves_kwh);
  json.end_object().end_object();
}

void get_kinds(const Services& services, Call& call) {
  auto query = parse_kinds(call);
  if (!query) {
    answer_bad_request(call, query.error());
    return;
  }
  set_owners(call, query->filter);
  const auto notes = notes_if_answerable(services, call, query->filter);
  if (!notes) {
    return;
  }
  const std::size_t limit = query->limit;
  query->limit = limit + 1;
  QueryTimer timer(*services.metrics, Query::kUnits);
  auto kinds = timer.run([&] { return services.reader->unit_kinds(*query); });
  if (!kinds) {
    answer_failure(*call.response, kinds.error());
    return;
  }
  const bool more = kinds->size() > limit;
  if (more) {
    kinds->pop_back();
  }
  std::string data;
  JsonWriter json(data);
  json.begin_object().key("kinds").begin_array();
  for (const store::UnitKind& kind : *kinds) {
    timer.count_row();
    const auto best = timer.run([&] { return finding_of(services, query->filter, kind); });
    if (!best) {
      answer_failure(*call.response, best.error());
      return;
    }
    append(json, kind, *best);
  }
  json.end_array().member("more", more);
  data += *notes;
  json.end_object();
  answer_data(*call.response, data);
}

}  // namespace

Endpoints units_kinds_endpoints() {
  const Endpoint kinds{
      .handler = get_kinds,
      .data =
          {.name = "Kinds",
           .one = true,
           .definitions = R"json("Kinds": {
        "type": "object",
        "required": ["kinds", "more"],
        "additionalProperties": false,
        "properties": {
          "kinds": {
            "type": "array",
            "items": {
              "type": "object",
              "required": ["cluster_id", "user", "project", "name", "units", "running", "failed", "measured", "kwh", "unused", "unused_of", "not_used", "not_used_of", "grams", "cpu", "mem", "gpu", "kwh_before", "kwh_since", "ended", "finding"],
              "additionalProperties": false,
              "properties": {
                "cluster_id": {"type": "string", "description": "Cluster of the runs."},
                "user": {"type": "string", "description": "Their owner."},
                "project": {"type": "string", "description": "Their project."},
                "name": {"type": ["string", "null"], "description": "Their name, with # for numbers; null where the caller may not see it."},
                "units": {"type": "integer", "description": "Number of runs."},
                "running": {"type": "integer", "description": "Of them, those that run."},
                "failed": {"type": "integer", "description": "Of them, those that failed."},
                "measured": {"type": "integer", "description": "Of them, those whose energy is known."},
                "kwh": {"type": ["number", "null"], "description": "Energy of these runs; null: known of none."},
                "unused": {"type": ["number", "null"], "description": "Energy in kWh of the idle power of what was reserved, of the runs for which it is known; null: of none."},
                "unused_of": {"type": "number", "description": "Energy of these runs in kWh."},
                "not_used": {"type": ["number", "null"], "description": "The part of it of what was not used at that time, of the runs for which it is known; null: of none."},
                "not_used_of": {"type": "number", "description": "Energy of these runs in kWh."},
                "grams": {"type": ["number", "null"], "description": "Emissions in g CO2e; null: known of no run."},
                "cpu": {"type": ["number", "null"], "description": "Mean CPU use in percent."},
                "mem": {"type": ["number", "null"], "description": "Mean memory use in percent."},
                "gpu": {"type": ["number", "null"], "description": "Mean GPU use in percent."},
                "kwh_before": {"type": ["number", "null"], "description": "Mean energy of a run that ended in the first half of the period."},
                "kwh_since": {"type": ["number", "null"], "description": "The same of the second half."},
                "ended": {"type": ["integer", "null"], "description": "The last end, in milliseconds since 1970."},
                "finding": {
                  "type": ["object", "null"],
                  "description": "The most important suggestion of the last run that has any.",
                  "required": ["uuid", "started_at_ts", "rule", "severity", "runs", "values", "saves_kwh"],
                  "additionalProperties": false,
                  "properties": {
                    "uuid": {"type": "string", "description": "Id of that run."},
                    "started_at_ts": {"type": "integer", "description": "Its start, in milliseconds since 1970."},
                    "rule": {"type": "string", "description": "Id of the rule."},
                    "severity": {"enum": ["info", "suggest", "important"], "description": "How much it matters."},
                    "runs": {"type": "integer", "description": "In how many of the last 8 runs it was true."},
                    "values": {"type": "object", "additionalProperties": {"type": "number"}, "description": "Values of the rule, by name."},
                    "saves_kwh": {"type": ["number", "null"], "description": "Energy that it would save in a run."}
                  }
                }
              }
            }
          },
          "more": {"type": "boolean", "description": "Whether there are more kinds."},
          "partial": {"const": true, "description": "Units of an old database are still missing."},
          "searched": {"const": "ids", "description": "Only ids were searched for the words."}
        }
      })json",
           .example =
               R"({"kinds":[{"cluster_id":"hpc-a","user":"ada","project":"fluids",)"
               R"("name":"train_#","units":60,"running":1,"failed":2,"measured":60,"kwh":297,"unused":38,"unused_of":297,)"
               R"("not_used":21,"not_used_of":280,)"
               R"("grams":132000,"cpu":46.1,"mem":29.8,"gpu":46.2,"kwh_before":4.9,)"
               R"("kwh_since":5.1,"ended":1794970436000,"finding":{"uuid":"4711",)"
               R"("started_at_ts":1794903120000,"rule":"gpu-unused","severity":"important",)"
               R"("runs":8,"values":{"want":2},"saves_kwh":0.63}}],"more":false})"},
      .params = kUnitFilterParams.with({Param::kSort, Param::kTop}),
      .window = WindowKind::kListed};
  return {
      kinds.for_users("units/kinds", "The caller's units by kind, the most unused energy first.",
                      {Param::kScope}),
      kinds.for_admins("units/kinds/admin",
                       "Everybody's units by kind, the most unused energy first.")};
}

}  // namespace ceems::api
