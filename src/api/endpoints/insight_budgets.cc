// What projects used of their budgets.
#include <algorithm>
#include <string>
#include <vector>

#include "api/accounting/accounting.h"
#include "api/answer/numbers.h"
#include "api/endpoints/all.h"
#include "api/endpoints/own_projects.h"
#include "base/json.h"

namespace ceems::api {
namespace {

bool wanted(const std::vector<std::string>& names, const std::string& name) {
  return names.empty() || std::ranges::find(names, name) != names.end();
}

void append_budget(JsonWriter& json, const UsedBudget& one) {
  constexpr int kDigits = 6;
  const auto number = [&json](std::string_view name, double value) {
    json.key(name);
    append_number(json, rounded(value, kDigits));
  };
  const ProjectBudget& budget = *one.budget;
  json.begin_object().member("project", budget.project).key("cluster_id");
  if (budget.cluster.empty()) {
    json.value(nullptr);
  } else {
    json.value(budget.cluster);
  }
  json.member("unit", name_of(budget.unit));
  number("amount", budget.amount);
  json.key("used");
  append_number(
      json, one.state.complete ? std::optional(rounded(one.state.used, kDigits)) : std::nullopt);
  json.key("used_share");
  append_number(json, one.state.complete
                          ? std::optional(rounded(one.state.used / budget.amount, kDigits))
                          : std::nullopt);
  number("burn", one.state.burn);
  json.key("forecast").begin_array();
  for (const double value : {one.state.forecast_low, one.state.forecast_high}) {
    append_number(json, one.state.complete ? std::optional(rounded(value, kDigits)) : std::nullopt);
  }
  json.end_array().member("period", one.period.name);
  json.member("from_ts", one.period.from_ms).member("to_ts", one.period.to_ms);
  json.key("warn").begin_array();
  for (const double share : budget.warn) {
    append_number(json, share);
  }
  json.end_array().member("state", one.state.complete ? one.state.state : "unknown").end_object();
}

void get_budgets(const Services& services, Call& call) {
  const std::string_view format = call.params.text(Param::kFormat);
  const bool sacctmgr = format == "sacctmgr";
  if (!format.empty() && format != "json" && !sacctmgr) {
    answer_bad_request(call, Error{.code = ErrorCode::kInvalidArgument,
                                   .message = "query parameter 'format': expected 'json' or"
                                              " 'sacctmgr'"});
    return;
  }
  const auto clusters = split_lists(call.params.clusters);
  const auto projects = split_lists(call.params.projects);
  const SeenBudgets seen(services, call);
  std::vector<const ProjectBudget*> budgets;
  for (const ProjectBudget& budget : services.accounting->options().budgets) {
    if (seen.sees(budget.cluster, budget.project) && wanted(projects, budget.project) &&
        (budget.cluster.empty() || wanted(clusters, budget.cluster))) {
      budgets.push_back(&budget);
    }
  }
  const bool all = access::admin_area(call.identity) == access::Decision::kAllow;
  const store::Scope members =
      all ? access::chosen_rows(call.identity, {}, {}) : access::own_projects(call.identity);
  QueryTimer timer(*services.metrics, Query::kCurrentUsage);
  const auto used = timer.run([&] {
    return services.accounting->used(budgets, members, services.zone, services.now_ms());
  });
  if (!used) {
    answer_failure(*call.response, used.error());
    return;
  }
  if (sacctmgr) {
    std::string& text = call.response->body;
    for (const UsedBudget& one : *used) {
      text += sacctmgr_line(*one.budget, one.state);
    }
    call.response->set_header("Content-Type", "text/plain; charset=utf-8");
    call.response->set_header("X-Content-Type-Options", "nosniff");
    return;
  }
  std::string data;
  JsonWriter json(data);
  json.begin_array();
  for (const UsedBudget& one : *used) {
    append_budget(json, one);
  }
  json.end_array();
  answer_data(*call.response, data);
}

}  // namespace

Endpoints insight_budgets_endpoints() {
  return {
      {.path = "insight/budgets",
       .caller = Caller::kUser,
       .summary = "What projects used of their budgets, and will have used at the end.",
       .handler = get_budgets,
       .data =
           {.name = "Budget",
            .definitions = R"json("Budget": {
        "type": "object",
        "required": ["project", "cluster_id", "unit", "amount", "used", "used_share", "burn", "forecast", "period", "from_ts", "to_ts", "warn", "state"],
        "additionalProperties": false,
        "properties": {
          "project": {"type": "string", "description": "Project; `*`: all projects together."},
          "cluster_id": {"type": ["string", "null"], "description": "Its cluster; null: all clusters together."},
          "unit": {"type": "string", "enum": ["kwh", "kgco2", "cost"], "description": "What is counted."},
          "amount": {"type": "number", "description": "What may be used in the period."},
          "used": {"type": ["number", "null"], "description": "Used so far; null if the price of a day is not known."},
          "used_share": {"type": ["number", "null"], "description": "That by the amount."},
          "burn": {"type": "number", "description": "Median of the last 28 days, a day."},
          "forecast": {"type": "array", "items": {"type": ["number", "null"]}, "description": "Least and most that will be used at the end."},
          "period": {"type": "string", "description": "Name of the period."},
          "from_ts": {"type": "integer", "description": "Its beginning, in milliseconds since 1970."},
          "to_ts": {"type": "integer", "description": "Its end."},
          "warn": {"type": "array", "items": {"type": "number"}, "description": "Shares of the amount that are warned of."},
          "state": {"type": "string", "description": "`ok`, `warn_0.8` for the share that was passed, `over`, `ended` or `unknown`."}
        }
      })json",
            .example =
                R"({"project":"fluids","cluster_id":"hpc-a","unit":"kgco2","amount":1500,"used":1104,)"
                R"("used_share":0.736,"burn":3.4,"forecast":[1420,1580],"period":"2026",)"
                R"("from_ts":1767222000000,"to_ts":1798758000000,"warn":[0.5,0.8,1],"state":"warn_0.5"})"},
       .params = {Param::kClusterId, Param::kProject, Param::kFormat},
       .tagged = false,
       .priced = true,
       .audited = false,
       .refusals = {ApiErrorType::kBadData}}};
}

}  // namespace ceems::api
