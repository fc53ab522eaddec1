// Findings of reports: rows for filters and overviews.
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "advice/judge.h"
#include "api/answer/numbers.h"
#include "api/endpoints/all.h"
#include "api/endpoints/unit_filter.h"
#include "api/request/list_params.h"
#include "base/json.h"
#include "store/advice_rules.h"
#include "store/reports.h"

namespace ceems::api {
namespace {

using advice::Severity;

/// Rows of an answer. If there are more, the newest are shown.
constexpr std::size_t kMaxFindings = 1000;

std::optional<Severity> severity_named(std::string_view name) {
  for (const Severity severity :
       {Severity::kGood, Severity::kInfo, Severity::kSuggest, Severity::kImportant}) {
    if (name == advice::to_string(severity)) {
      return severity;
    }
  }
  return name.empty() ? std::optional(Severity::kInfo) : std::nullopt;
}

Result<store::FindingQuery> parse_query(const Call& call) {
  CEEMS_TRY(filter, parse_fact_filter(call.params, call.window));
  const auto severity = severity_named(call.params.text(Param::kSeverity));
  if (!severity) {
    return fail(ErrorCode::kInvalidArgument,
                "query parameter 'severity': expected good, info, suggest or important");
  }
  store::FindingQuery query{.filter = std::move(filter),
                            .rules = call.params.list(Param::kRule),
                            .least_severity = static_cast<int>(*severity),
                            .limit = kMaxFindings + 1};
  for (const std::string& rule : query.rules) {
    query.filter.advice |= store::advice_mask(rule);
  }
  if (query.rules.empty()) {
    query.filter.advice =
        store::any_advice() | (*severity == Severity::kGood ? store::advice_bit("good") : 0);
  }
  return query;
}

void append(JsonWriter& json, const store::UnitFinding& one) {
  json.begin_object().member("cluster_id", one.key.cluster_id).member("uuid", one.key.uuid);
  if (!one.array.empty()) {
    json.member("array", one.array);
  }
  json.member("started_at_ts", one.key.started_at_ts).member("ended_at_ts", one.ended_at_ts);
  json.key("name");
  append_json_cell(json, store::FactKind::kText, one.name, 0);
  json.member("user", one.user).member("project", one.project);
  const store::FindingRow& finding = one.finding;
  json.member("rule", finding.rule);
  json.member("severity", advice::to_string(static_cast<Severity>(finding.severity)));
  json.member("confidence", advice::to_string(static_cast<advice::Confidence>(finding.confidence)));
  json.member("runs", finding.runs).raw_member("values", finding.numbers);
  json.key("saves").begin_object();
  if (finding.saves_kwh) {
    json.member("kwh", *finding.saves_kwh);
  }
  json.end_object().end_object();
}

void get_findings(const Services& services, Call& call) {
  auto query = parse_query(call);
  if (!query) {
    answer_bad_request(call, query.error());
    return;
  }
  set_owners(call, query->filter);
  QueryTimer timer(*services.metrics, Query::kUnits);
  const auto many =
      timer.run([&] { return services.reader->has_more_units(query->filter, kMaxUnits); });
  if (many && *many) {
    answer_too_much(call);
    return;
  }
  auto found = many ? timer.run([&] { return services.reader->findings(*query); })
                    : Result<std::vector<store::UnitFinding>>(fail(many.error()));
  if (!found) {
    answer_failure(*call.response, found.error());
    return;
  }
  const bool more = found->size() > kMaxFindings;
  if (more) {
    found->pop_back();
  }
  std::string data;
  JsonWriter json(data);
  json.begin_object().key("findings").begin_array();
  for (const store::UnitFinding& one : *found) {
    timer.count_row();
    append(json, one);
  }
  json.end_array().member("more", more).end_object();
  answer_data(*call.response, data);
}

}  // namespace

Endpoints units_findings_endpoints() {
  const Endpoint findings{
      .handler = get_findings,
      .data =
          {.name = "Findings",
           .one = true,
           .definitions = R"json("Findings": {
        "type": "object",
        "required": ["findings", "more"],
        "additionalProperties": false,
        "properties": {
          "findings": {
            "type": "array",
            "description": "The newest end first.",
            "items": {
              "type": "object",
              "required": ["cluster_id", "uuid", "started_at_ts", "ended_at_ts", "name", "user", "project", "rule", "severity", "confidence", "runs", "values", "saves"],
              "additionalProperties": false,
              "properties": {
                "cluster_id": {"type": "string", "description": "Cluster of the unit."},
                "uuid": {"type": "string", "description": "Id of the unit."},
                "array": {"type": "string", "description": "The ID that SLURM shows of a task of an array or a part of a heterogeneous job. Absent of others."},
                "started_at_ts": {"type": "integer", "description": "Start of the run, in milliseconds since 1970."},
                "ended_at_ts": {"type": "integer", "description": "Its end."},
                "name": {"type": ["string", "null"], "description": "Name of the unit; null where the caller may not see it."},
                "user": {"type": "string", "description": "Owner of the unit."},
                "project": {"type": "string", "description": "Its project."},
                "rule": {"type": "string", "description": "Id of the rule."},
                "severity": {"enum": ["good", "info", "suggest", "important"], "description": "How much it matters."},
                "confidence": {"enum": ["maybe", "likely", "sure"], "description": "How sure it is."},
                "runs": {"type": "integer", "description": "In how many of the last 8 runs of the family it was true."},
                "values": {"type": "object", "additionalProperties": {"type": "number"}, "description": "Values of the rule, by name."},
                "saves": {"type": "object", "additionalProperties": {"type": "number"}, "description": "What it would save, such as kwh."}
              }
            }
          },
          "more": {"type": "boolean", "description": "Whether there are older ones."}
        }
      })json",
           .example =
               R"({"findings":[{"cluster_id":"hpc-a","uuid":"4711","started_at_ts":1794903120000,)"
               R"("ended_at_ts":1794970436000,"name":"cp2k-water","user":"ada","project":"fluids",)"
               R"("rule":"mem-excess","severity":"suggest","confidence":"sure","runs":8,)"
               R"("values":{"want":10737418240},"saves":{"kwh":0.4}}],"more":false})"},
      .params = {Param::kClusterId, Param::kProject, Param::kUser, Param::kUuid, Param::kFrom,
                 Param::kTo, Param::kRule, Param::kSeverity},
      .window = WindowKind::kEnded};
  return {findings.for_users("units/findings", "What the reports of the caller's units suggest.",
                             {Param::kScope}),
          findings.for_admins("units/findings/admin",
                              "What the reports of everybody's units suggest.")};
}

}  // namespace ceems::api
