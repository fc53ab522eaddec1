// What followed suggestions brought.
#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "access/lists.h"
#include "advice/rule.h"
#include "api/answer/numbers.h"
#include "api/endpoints/all.h"
#include "api/endpoints/unit_filter.h"
#include "api/request/list_params.h"
#include "base/json.h"
#include "report/helped.h"
#include "store/advice_rules.h"
#include "store/unit_name.h"

namespace ceems::api {
namespace {

using report::HelpedSum;
using store::Fact;
using store::FactKind;

constexpr std::array kColumns{Fact::kClusterId, Fact::kUser,      Fact::kProject, Fact::kName,
                              Fact::kEnded,     Fact::kCpus,      Fact::kGpus,    Fact::kNodes,
                              Fact::kMemory,    Fact::kTimeLimit, Fact::kWall,    Fact::kNotUsed,
                              Fact::kAdvice,    Fact::kVerdict};
constexpr int kHelpedDigits = 6;

const std::vector<report::HelpingRule>& helping_rules() {
  static const auto kRules = [] {
    std::vector<report::HelpingRule> rules;
    for (const store::RuleBit& bit : store::rule_bits()) {
      const advice::Rule* rule = advice::core_rules().find(bit.id);
      if (rule != nullptr && rule->suggests != advice::Suggests::kNothing) {
        rules.push_back(
            {.id = bit.id, .mask = store::advice_mask(bit.id), .suggests = rule->suggests});
      }
    }
    return rules;
  }();
  return kRules;
}

report::HelpedRun run_of(const store::Cursor& row) {
  constexpr double kSecondsOfHour = 3600;
  const auto number = [&row](std::size_t place, FactKind kind) {
    return value_of(kind, row.integer(place));
  };
  report::HelpedRun run{.cluster = std::string(row.text(0)),
                        .user = std::string(row.text(1)),
                        .project = std::string(row.text(2)),
                        .name = store::normal_name(row.text(3)),
                        .ended_ms = row.integer(4),
                        .request = {.cpus = number(5, FactKind::kMilli),
                                    .gpus = number(6, FactKind::kMilli),
                                    .nodes = number(7, FactKind::kCount),
                                    .memory = number(8, FactKind::kCount),
                                    .time_limit = number(9, FactKind::kCount)},
                        .not_used_kwh = number(11, FactKind::kEnergy),
                        .advice = row.integer(12),
                        .judged = row.integer(13) > static_cast<int>(store::Verdict::kUnknown)};
  if (const auto seconds = number(10, FactKind::kCount)) {
    run.hours = *seconds / kSecondsOfHour;
  }
  return run;
}

/// A row of the answer. Without a project it is of all.
struct Row {
  std::optional<std::pair<std::string, std::string>> project = {};  ///< cluster and name
  std::string_view rule;
  HelpedSum sum = {};
};

std::vector<Row> by_project(const std::map<report::HelpedKey, HelpedSum>& sums) {
  std::vector<Row> rows;
  for (const auto& [key, sum] : sums) {
    const auto& [cluster, project, rule] = key;
    rows.push_back({.project = std::pair(cluster, project), .rule = rule, .sum = sum});
  }
  return rows;
}

std::vector<Row> by_rule(const std::map<report::HelpedKey, HelpedSum>& sums) {
  std::map<std::string_view, HelpedSum> totals;
  for (const auto& [key, sum] : sums) {
    totals[std::get<2>(key)] += sum;
  }
  std::vector<Row> rows;
  rows.reserve(totals.size());
  for (const auto& [rule, sum] : totals) {
    rows.push_back({.rule = rule, .sum = sum});
  }
  return rows;
}

void append(JsonWriter& json, const Row& row) {
  const auto number = [&json](std::string_view name, std::optional<double> value) {
    json.key(name);
    append_number(json, value ? std::optional(rounded(*value, kHelpedDigits)) : value);
  };
  json.begin_object();
  if (row.project) {
    json.member("cluster_id", row.project->first).member("project", row.project->second);
  }
  const HelpedSum& sum = row.sum;
  json.member("rule", row.rule).member("kinds", sum.kinds).member("runs", sum.runs);
  number("core_hours", sum.core_hours);
  number("gpu_hours", sum.gpu_hours);
  number("gib_hours", sum.gib_hours);
  number("kwh", sum.kwh_runs > 0 ? std::optional(sum.kwh) : std::nullopt);
  json.end_object();
}

struct Question {
  bool of_all = false;  ///< sums over all projects
  store::TimeRange period = {};
  store::FactFilter runs = {};  ///< also those before the period
};

Result<Question> parse_question(const Services& services, Call& call) {
  const std::string_view by = call.params.text(Param::kBy);
  if (!by.empty() && by != "project" && by != "rule") {
    return wrong_parameter("'by': expected project or rule");
  }
  CEEMS_TRY(period, parse_days(call.params, services.now_ms()));
  Question question{.of_all = by == "rule", .period = period};
  question.runs.clusters = split_lists(call.params.clusters);
  question.runs.projects = split_lists(call.params.projects);
  question.runs.ended = store::TimeRange{period.from_ms - report::kHelpedMs, period.to_ms};
  if (call.admin_route) {
    access::list_statistics(question.runs);  // names tell kinds apart, and none is shown
    call.foreign = true;
  } else {
    access::list_own(call.identity, access::parse_part(call.params.scope), question.runs);
  }
  return question;
}

/// Reads the runs of the question.
Result<std::map<report::HelpedKey, HelpedSum>> sums_of(const Services& services,
                                                       const Question& question,
                                                       QueryTimer& timer) {
  const store::FactListQuery query{
      .filter = question.runs, .columns = {kColumns.begin(), kColumns.end()}, .descending = false};
  report::HelpedCounter counter(helping_rules(), question.period.from_ms);
  CEEMS_TRY(rows, timer.run([&] { return services.reader->unit_facts(query); }));
  while (true) {
    CEEMS_TRY(row, timer.run([&] { return rows->next(); }));
    if (!row) {
      return counter.sums();
    }
    counter.add(run_of(*rows));
  }
}

void get_helped(const Services& services, Call& call) {
  const auto question = parse_question(services, call);
  if (!question) {
    answer_bad_request(call, question.error());
    return;
  }
  QueryTimer timer(*services.metrics, Query::kUnits);
  const auto many =
      timer.run([&] { return services.reader->has_more_units(question->runs, kMaxUnits); });
  if (many && *many) {
    answer_too_much(call);
    return;
  }
  const auto sums = many ? sums_of(services, *question, timer) : fail(many.error());
  if (!sums) {
    answer_failure(*call.response, sums.error());
    return;
  }
  std::string data;
  JsonWriter json(data);
  json.begin_array();
  for (const Row& row : question->of_all ? by_rule(*sums) : by_project(*sums)) {
    timer.count_row();
    append(json, row);
  }
  json.end_array();
  answer_data(*call.response, data);
}

}  // namespace

Endpoints insight_helped_endpoints() {
  const Endpoint helped{
      .handler = get_helped,
      .data =
          {.name = "Helped",
           .definitions = R"json("Helped": {
        "type": "object",
        "description": "What runs had reserved less after a suggestion than the last run with the finding, over their time.",
        "required": ["rule", "kinds", "runs", "core_hours", "gpu_hours", "gib_hours", "kwh"],
        "additionalProperties": false,
        "properties": {
          "cluster_id": {"type": "string", "description": "ID of the cluster. Absent with `by=rule`."},
          "project": {"type": "string", "description": "Project. Absent with `by=rule`."},
          "rule": {"type": "string", "description": "Id of the rule whose suggestion was followed."},
          "kinds": {"type": "integer", "description": "Kinds of units that followed it."},
          "runs": {"type": "integer", "description": "Their runs in the period."},
          "core_hours": {"type": "number", "description": "Core-hours that they reserved less."},
          "gpu_hours": {"type": "number", "description": "GPU-hours that they reserved less."},
          "gib_hours": {"type": "number", "description": "GiB of memory times hours that they reserved less."},
          "kwh": {"type": ["number", "null"], "description": "Idle power of what they did not use, less than before; null: of no run known. A run that follows several rules counts for each with an equal part."}
        }
      })json",
           .example =
               R"({"cluster_id":"hpc-a","project":"fluids","rule":"gpu-unused","kinds":3,"runs":41,)"
               R"("core_hours":0,"gpu_hours":1230,"gib_hours":0,"kwh":210.4})"},
      .params = {Param::kClusterId, Param::kProject, Param::kFrom, Param::kTo, Param::kBy},
      .window = WindowKind::kOwn,
      .tagged = false};
  return {
      helped.for_users("insight/helped", "What followed suggestions brought in the caller's units.",
                       {Param::kScope}),
      helped.for_admins("insight/helped/admin",
                        "What followed suggestions brought in everybody's units.")};
}

}  // namespace ceems::api
