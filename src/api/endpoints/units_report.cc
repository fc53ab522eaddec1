// Reports of units.
#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "api/endpoints/all.h"
#include "api/endpoints/find_run.h"
#include "api/endpoints/text_forms.h"
#include "api/report/final_report.h"
#include "api/report/maker.h"
#include "report/report.h"
#include "store/reports.h"

namespace ceems::api {
namespace {

/// Reports of one answer.
constexpr std::size_t kMaxReports = 100;

struct Request {
  TextForm form;
  std::optional<std::int64_t> start_ms = {};
};

Result<Request> parse_request(const Services& services, const Params& params, Format last) {
  CEEMS_TRY(form, parse_text_form(services, params, last));
  Request request{.form = std::move(form)};
  CEEMS_TRY(start_ms, parse_start(params));
  request.start_ms = start_ms;
  return request;
}

/// A report, and the entity tag of its answer; empty: the answer may change.
struct Answer {
  report::Report report = {};
  std::string tag = {};
};

/// The final report that is stored of a unit; nothing if there is none.
Result<std::optional<Answer>> stored_report(const Services& services,
                                            const Call& call,
                                            const StoredUnit& unit,
                                            const store::Scope& members) {
  const store::ReportKey key{.cluster_id = unit.unit.cluster_id,
                             .uuid = unit.unit.uuid,
                             .started_at_ts = unit.unit.started_at_ts};
  QueryTimer timer(*services.metrics, Query::kUnits);
  CEEMS_TRY(stored, timer.run([&] {
    return read_final_report(*services.reader, key, unit.unit.project, members);
  }));
  auto& known = stored;
  if (!known) {
    return std::nullopt;
  }
  const bool written = access::sees_written(call.identity, unit.unit.username, unit.unit.cluster_id,
                                            unit.unit.project);
  return Answer{
      .report = std::move(known->report),
      .tag = services.tags->make({call.route, call.request->query, call.identity.user,
                                  access::role_name(call.identity.role), key.cluster_id, key.uuid,
                                  std::to_string(key.started_at_ts), std::to_string(known->made_ms),
                                  written ? "written" : "", known->member ? "member" : ""})};
}

/// The report as the caller may see it. kNoData if the unit still runs.
Result<Answer> make_report(const Services& services,
                           Call& call,
                           const std::string& uuid,
                           std::optional<std::int64_t> start_ms) {
  CEEMS_TRY(unit, find_run(services, call, uuid, start_ms));
  if (unit.unit.ended_at_ts <= 0 && !call.params.so_far) {
    return fail(ErrorCode::kNoData, "not ended");
  }
  const store::Scope members = call.admin_route ? access::chosen_rows(call.identity, {}, {})
                                                : access::own_projects(call.identity);
  Answer answer;
  CEEMS_TRY(stored, unit.unit.ended_at_ts > 0 ? stored_report(services, call, unit, members)
                                              : Result<std::optional<Answer>>());
  if (auto& known = stored) {
    answer = std::move(*known);
    services.reports->add_cost(unit, services.now_ms(), answer.report);
  } else {
    CEEMS_TRY(made, services.reports->make(unit, members, services.now_ms()));
    answer.report = std::move(made);
  }
  if (!access::sees_written(call.identity, unit.unit.username, unit.unit.cluster_id,
                            unit.unit.project)) {
    report::withhold_written(answer.report);
  }
  return answer;
}

/// Sets the entity tag. Whether the client has that answer already.
bool is_known(const Services& services, Call& call, std::initializer_list<std::string_view> tags) {
  if (std::ranges::any_of(tags, &std::string_view::empty)) {
    return false;
  }
  const std::string tag = tags.size() == 1 ? std::string(*tags.begin()) : services.tags->make(tags);
  call.response->set_header("ETag", tag);
  call.response->set_header("Cache-Control", "private, no-cache");
  if (!client_has(*call.request, tag)) {
    return false;
  }
  call.response->status = 304;
  return true;
}

void answer_problem(Call& call, const Error& error) {
  switch (error.code) {
    case ErrorCode::kNotFound:
      answer_error(*call.response, ApiErrorType::kNotFound, error.message);
      break;
    case ErrorCode::kNoData:
      answer_error(*call.response, ApiErrorType::kConflict, error.message);
      break;
    default:
      answer_failure(*call.response, error);
  }
}

std::string text_of(const report::Report& report, const TextForm& request) {
  switch (request.format) {
    case Format::kText:
    case Format::kAscii:
      return report::to_text(report, request.view);
    case Format::kMarkdown:
      return report::to_markdown(report, request.view);
    case Format::kHtml:
      return report::to_html(report, request.view);
    case Format::kJs1:
      return report::to_js1(report) + "\n";
    case Format::kJs1Json:
      return report::to_js1_json(report) + "\n";
    case Format::kJson:
      break;
  }
  return report::to_json(report, request.view);
}

/// The reports of the units of a range such as 7100_[4-5], one after the other. Those that have not
/// ended are left out while others have.
void get_reports(const Services& services, Call& call, const Request& request) {
  if (request.form.format != Format::kJson && request.form.format != Format::kText &&
      request.form.format != Format::kAscii && request.form.format != Format::kMarkdown) {
    answer_error(*call.response, ApiErrorType::kBadData,
                 "this format has one unit; several are known as json, text, ascii and markdown");
    return;
  }
  std::string all;
  std::optional<Error> problem;
  for (const std::string& uuid : call.params.uuids) {
    const auto made = make_report(services, call, uuid, request.start_ms);
    if (made) {
      const bool json = request.form.format == Format::kJson;
      all += all.empty() ? "" : json ? "," : "\n";
      all += text_of(made->report, request.form);
    } else if (made.error().code == ErrorCode::kNoData ||
               made.error().code == ErrorCode::kNotFound) {
      problem = made.error();
    } else {
      answer_problem(call, made.error());
      return;
    }
  }
  if (all.empty()) {
    answer_problem(call, problem.value_or(Error{ErrorCode::kNotFound, "no such unit"}));
  } else if (request.form.format == Format::kJson) {
    answer_data(*call.response, "[" + all + "]");
  } else {
    answer_text(call, request.form.format, std::move(all));
  }
}

void get_report(const Services& services, Call& call) {
  const Params& params = call.params;
  const bool range = params.found_ids && params.uuids.size() > 1;
  if ((params.uuids.size() != 1 && !range) || params.clusters.size() != 1) {
    answer_error(*call.response, ApiErrorType::kBadData, "one cluster_id and one uuid are needed");
    return;
  }
  if (params.uuids.size() > kMaxReports) {
    answer_error(
        *call.response, ApiErrorType::kBadData,
        fmt::format("{} units: at most {} reports at a time", params.uuids.size(), kMaxReports));
    return;
  }
  const auto request = parse_request(services, params, Format::kJs1Json);
  if (!request) {
    answer_bad_request(call, request.error());
    return;
  }
  if (range) {
    get_reports(services, call, *request);
    return;
  }
  const auto report = make_report(services, call, params.uuids.front(), request->start_ms);
  if (!report) {
    answer_problem(call, report.error());
  } else if (is_known(services, call, {report->tag})) {
    return;
  } else if (request->form.format == Format::kJson) {
    answer_data(*call.response, "[" + report::to_json(report->report, request->form.view) + "]");
  } else {
    answer_text(call, request->form.format, text_of(report->report, request->form));
  }
}

void compare_units(const Services& services, Call& call) {
  const Params& params = call.params;
  if (params.uuids.size() != 2 || params.clusters.size() != 1) {
    answer_error(*call.response, ApiErrorType::kBadData,
                 "one cluster_id and two different uuids are needed");
    return;
  }
  const auto request = parse_request(services, params, Format::kAscii);
  if (!request) {
    answer_bad_request(call, request.error());
    return;
  }
  const auto first = make_report(services, call, params.uuids[0], std::nullopt);
  const auto second = first ? make_report(services, call, params.uuids[1], std::nullopt)
                            : Result<Answer>(fail(first.error()));
  if (!second) {
    answer_problem(call, second.error());
  } else if (is_known(services, call, {first->tag, second->tag})) {
    return;
  } else if (request->form.format == Format::kJson) {
    answer_data(*call.response, "[" + report::to_json(first->report, request->form.view) + "," +
                                    report::to_json(second->report, request->form.view) + "]");
  } else {
    answer_text(call, request->form.format,
                report::compare_text(first->report, second->report, request->form.view));
  }
}

}  // namespace

Endpoints units_report_endpoints() {
  Endpoint report{
      .handler = get_report,
      .data =
          {.name = "Report",
           .definitions = R"json("Report": {
        "type": "object",
        "description": "What a run of a unit used and cost, and what would help. Null means not measured, which is not the same as 0. Shares are from 0 to 1, memory is in bytes.",
        "required": ["v", "cluster_id", "uuid", "started_at_ts", "ended_at_ts", "state", "coverage", "job", "use", "nodes", "energy", "co2", "cost", "compared", "phases", "results", "fom", "findings"],
        "additionalProperties": false,
        "properties": {
          "v": {"const": 1},
          "cluster_id": {"type": "string"},
          "uuid": {"type": "string"},
          "started_at_ts": {"type": ["integer", "null"]},
          "ended_at_ts": {"type": ["integer", "null"]},
          "state": {"type": "string", "enum": ["so_far", "partial", "final"], "description": "`so_far`: the unit runs. `partial`: less than 90 % of its time is covered by measurements, or nothing is known of that."},
          "coverage": {"type": ["number", "null"], "description": "Share of the node time that is covered by measurements."},
          "source": {"const": "js1", "description": "Present if the use of nodes and GPUs comes from the summary of jobstats, because the TSDB has nothing of the unit."},
          "job": {"type": "object", "description": "The request and the run, times in seconds."},
          "use": {"type": "object", "description": "Shares of the allocation that were used."},
          "nodes": {"type": "array", "items": {"type": "object"}, "description": "Use by node and GPU."},
          "energy": {"type": "object", "description": "Energy in kWh, by domain, and how it was found."},
          "co2": {"type": "object", "description": "Emissions in grams, and the source of the factor."},
          "cost": {"type": "object", "description": "By the prices of the site: amount, rounded to two decimals, and currency; null without a price."},
          "compared": {"type": "object", "description": "Earlier runs of the same job, and the share of the project's month."},
          "phases": {"type": "array", "items": {"type": "object"}, "description": "Regions of the program that the unit marked, the longest first: their time on the node that took longest, their energy on all nodes, with regions within them and without, and the node that took longest."},
          "results": {"type": "array", "items": {"type": "object"}, "description": "What the unit produced by its own count, the joules of the whole unit for each, and the same in the earlier runs of the same job (`family`, the newest first) with their median."},
          "fom": {"type": "array", "items": {"type": "object"}, "description": "Figures of merit that the unit reported."},
          "findings": {"type": "array", "items": {"type": "object"}, "description": "Suggestions, the most useful first, with lines to type in the language of the manager."}
        }
      })json",
           .example =
               R"({"v":1,"cluster_id":"hpc-a","uuid":"4711","started_at_ts":1794903120000,)"
               R"("ended_at_ts":1794970436000,"state":"final","coverage":0.998,)"
               R"("job":{"name":"cp2k-water","user":"ada","project":"fluids","partition":"cpu",)"
               R"("state":"COMPLETED","nodes":1,"cpus":32,"gpus":0,"elapsed_s":67316,"limit_s":345600,)"
               R"("waited_s":null,"array":null},"use":{"cpu":0.94,"mem":0.05,)"
               R"("mem_peak_node_bytes":8482560000,"mem_alloc_node_bytes":137438953472,"gpu_busy":null,)"
               R"("gpu_sm":null,"gpu_mem":null},"nodes":[{"node":"n14","cpus":32,"cpu_seconds":2023000.5,)"
               R"("mem_peak_bytes":8482560000,"mem_alloc_bytes":137438953472,"gpus":[]}],)"
               R"("energy":{"kwh":6.3,"idle_kwh":1.2,"not_used_kwh":0.4,)"
               R"("domains":{"package":5.1,"dram":0.9,"other":0.3},)"
               R"("method":"measured"},"co2":{"g":182,"provider":"rte_total"},)"
               R"("cost":{"amount":1.51,"currency":"EUR"},"compared":{"family_n":20,)"
               R"("family_median_kwh":6.4,"family_cpu_low":0.92,"family_cpu_high":0.95,)"
               R"("family_mem_median":0.06,"family_gpu_low":null,"family_gpu_high":null,)"
               R"("project_month_share":0.014},"phases":[{"region":"solve","count":1250,"nodes":1,)"
               R"("seconds":58822,"share":0.87,"kwh":5.6,"self_kwh":5.6,"watts":343,)"
               R"("slowest":null,"longer":null}],"results":[{"result":"step","unit":null,"n":1250,)"
               R"("joules_per":18100,"family_joules_per":18400,"family":[{"uuid":"4705",)"
               R"("started_at_ts":1794803120000,"joules_per":18400}]}],"fom":[],"findings":[{"rule":"mem-excess","severity":"suggest",)"
               R"("confidence":"sure","runs":8,"values":{"want":10737418240},"text":"Memory: 7.9 GiB a node )"
               R"(at most, 128 GiB reserved.","lines":[{"type":"#SBATCH --mem=10G","was":"--mem=128G"}],)"
               R"("sbatch":["--mem=10G"],"was":["--mem=128G"],"saves":{}}]})"},
      .params = {Param::kClusterId, Param::kProject, Param::kUuid, Param::kStart, Param::kSoFar,
                 Param::kLanguage, Param::kFormat, Param::kWidth, Param::kAllFindings},
      .required = {Param::kClusterId, Param::kUuid},
      .tagged = false,
      .waits = true};
  Endpoint compared = report;
  compared.handler = compare_units;
  return {
      report.for_users("units/report",
                       "What one of the caller's units used and cost, and what would help."),
      report.for_admins("units/report/admin", "What a unit used and cost, and what would help."),
      compared.for_users("units/compare", "Two of the caller's units, compared."),
      compared.for_admins("units/compare/admin", "Two units, compared.")};
}

}  // namespace ceems::api
