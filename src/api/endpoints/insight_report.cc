// Reports of a year or a month that rules ask for, as `ceems_tool report` prints them.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "api/accounting/accounting.h"
#include "api/endpoints/all.h"
#include "api/endpoints/ask_series.h"
#include "api/statements/all.h"
#include "api/statements/kept.h"
#include "base/json.h"
#include "base/strings.h"
#include "base/version.h"

namespace ceems::api {
namespace {

bool may_see(Call& call) {
  if (access::see_bill(call.identity) == access::Decision::kAllow) {
    return true;
  }
  answer_error(*call.response, ApiErrorType::kForbidden,
               "current user does not have admin privileges");
  return false;
}

void get_kinds(const Services& /*services*/, Call& call) {
  if (!may_see(call)) {
    return;
  }
  std::string data;
  JsonWriter json(data);
  json.begin_array();
  for (const StatementSpec& spec : statements()) {
    json.begin_object().member("kind", spec.name).member("title", spec.title);
    json.member("help", spec.help);
    json.member("year", is_of_years(spec)).member("month", is_of_months(spec)).end_object();
  }
  json.end_array();
  answer_data(*call.response, data);
}

/// What a request asks for.
struct Wanted {
  const StatementSpec* spec = nullptr;
  StatementPeriod period = {};
  std::string cluster = {};  ///< empty: all
  std::optional<statement::Format> format = {};
};

Result<Wanted> read_wanted(const Services& services, const Params& params) {
  Wanted wanted{.spec = find_statement(params.text(Param::kKind))};
  if (wanted.spec == nullptr) {
    std::string names;
    for (const StatementSpec& spec : statements()) {
      names += fmt::format("{}{}", names.empty() ? "" : ", ", spec.name);
    }
    return wrong_parameter(fmt::format("'kind': expected one of {}", names));
  }
  auto period =
      statement_period(*wanted.spec, params.text(Param::kPeriod), services.zone, services.now_ms());
  if (!period) {
    return wrong_parameter(fmt::format("'period': {}", period.error().message));
  }
  wanted.period = std::move(*period);
  const auto clusters = split_lists(params.clusters);
  const auto& known = services.site->clusters;
  if (clusters.size() > 1) {
    return wrong_parameter("'cluster_id': expected one cluster, or none for the whole site");
  }
  if (!clusters.empty()) {
    wanted.cluster = clusters.front();
    if (std::ranges::find(known, wanted.cluster, &SiteCluster::id) == known.end()) {
      return wrong_parameter(
          fmt::format("'cluster_id': no cluster has the ID '{}'", printable(wanted.cluster, 80)));
    }
  }
  const std::string_view format = params.text(Param::kFormat);
  wanted.format = statement::find_format(format);
  if (!wanted.format && !format.empty()) {
    return wrong_parameter("'format': expected md, csv, json, xlsx or html");
  }
  return wanted;
}

/// Asks TSDBs as long as the client waits for the answer, and none that has not answered: a year is
/// many questions.
class PatientAsk {
 public:
  PatientAsk(AskSeries ask, std::stop_token given_up)
      : ask_(std::move(ask)), given_up_(std::move(given_up)) {}

  /// Uses this object. Empty without TSDBs.
  AskSeries function() {
    if (!ask_) {
      return {};
    }
    return [this](const std::string& cluster, const std::string& query, std::int64_t from_ms,
                  std::int64_t to_ms, std::chrono::milliseconds step) {
      return values(cluster, query, from_ms, to_ms, step);
    };
  }
  [[nodiscard]] bool failed() const { return !failed_.empty(); }

 private:
  Result<Points> values(const std::string& cluster,
                        const std::string& query,
                        std::int64_t from_ms,
                        std::int64_t to_ms,
                        std::chrono::milliseconds step) {
    if (const auto found = failed_.find(cluster); found != failed_.end()) {
      return std::unexpected(found->second);
    }
    if (given_up_.stop_requested()) {
      return std::unexpected(
          failed_.emplace(cluster, Error{ErrorCode::kUnavailable, "the client has gone"})
              .first->second);
    }
    auto points = ask_(cluster, query, from_ms, to_ms, step);
    if (!points && (points.error().code == ErrorCode::kUnavailable ||
                    points.error().code == ErrorCode::kTimeout)) {
      failed_.emplace(cluster, points.error());
    }
    return points;
  }

  AskSeries ask_;
  std::stop_token given_up_;
  std::map<std::string, Error> failed_;  ///< by cluster
};

/// Null after answering an error.
KeptStatements::Statement find_or_make(const Services& services, Call& call, const Wanted& wanted) {
  std::string key =
      fmt::format("{}\n{}\n{}", wanted.spec->name, wanted.period.name, wanted.cluster);
  if (auto kept = services.statements->find(key)) {
    return kept;
  }
  const auto turn = services.statements->take_turn();
  if (turn == nullptr) {
    call.response->set_header("Retry-After", "5");
    answer_error(*call.response, ApiErrorType::kTimeout,
                 "other reports are being made, try again later");
    return nullptr;
  }
  PatientAsk ask(ask_series(services), call.request->given_up);
  const StatementContext context{.reader = services.reader,
                                 .accounting = &services.accounting->options(),
                                 .pue = services.site->pue,
                                 .site = services.site->name,
                                 .cluster = wanted.cluster,
                                 .one_cluster = services.site->clusters.size() == 1,
                                 .zone = services.zone,
                                 .now_ms = services.now_ms(),
                                 .ask = ask.function(),
                                 .by = fmt::format("ceems_api_server {}", version().version)};
  QueryTimer timer(*services.metrics, Query::kUsage);
  auto made = timer.run([&] { return make_statement(*wanted.spec, context, wanted.period); });
  if (!made) {
    answer_failure(*call.response, made.error());
    return nullptr;
  }
  auto statement = std::make_shared<const statement::Document>(std::move(*made));
  if (!ask.failed()) {
    services.statements->keep(std::move(key), statement);
  }
  return statement;
}

std::string_view type_of(statement::Format format) {
  switch (format) {
    case statement::Format::kMarkdown:
      return "text/markdown; charset=utf-8";
    case statement::Format::kCsv:
      return "text/csv; charset=utf-8";
    case statement::Format::kJson:
      return "application/json";
    case statement::Format::kXlsx:
      return "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";
    case statement::Format::kHtml:
      break;
  }
  return "text/html; charset=utf-8";
}

/// "ghg-2026.md", "ghg-2026-hpc-a.md".
std::string file_name(const Wanted& wanted, std::string_view format) {
  std::string name = fmt::format("{}-{}", wanted.spec->name, wanted.period.name);
  if (!wanted.cluster.empty()) {
    name += '-';
    for (const char letter : wanted.cluster) {
      const bool plain = is_word(letter, "-.");
      name += plain ? letter : '_';
    }
  }
  return fmt::format("{}.{}", name, format);
}

void get_report(const Services& services, Call& call) {
  if (!may_see(call)) {
    return;
  }
  const auto wanted = read_wanted(services, call.params);
  if (!wanted) {
    answer_bad_request(call, wanted.error());
    return;
  }
  const auto statement = find_or_make(services, call, *wanted);
  if (statement == nullptr) {
    return;
  }
  const std::optional<statement::Format> format = wanted->format;
  if (!format) {
    statement::Document shown = *statement;
    shown.appendix.clear();
    const std::string data = statement::to_json(shown);
    answer_data(*call.response, trim(data));
    return;
  }
  auto file = statement::render(*statement, *format);
  if (!file) {
    answer_failure(*call.response, file.error());
    return;
  }
  net::Response& response = *call.response;
  response.status = 200;
  response.set_header("Content-Type", std::string(type_of(*format)));
  response.set_header("Content-Disposition",
                      fmt::format("attachment; filename=\"{}\"",
                                  file_name(*wanted, call.params.text(Param::kFormat))));
  response.set_header("X-Content-Type-Options", "nosniff");
  response.body = std::move(*file);
}

}  // namespace

Endpoints insight_report_endpoints() {
  return {
      {.path = "insight/report/admin",
       .caller = Caller::kAdmin,
       .summary = "A report of a year or a month that rules ask for, as `ceems_tool report` prints "
                  "it; with `format` as a file, which also has the tables of the appendix.",
       .handler = get_report,
       .data =
           {.name = "SiteReport",
            .one = true,
            .definitions = R"json("SiteReport": {
        "type": "object",
        "required": ["kind", "title", "site", "period", "from", "to", "written", "by", "notes", "lines", "sources", "appendix"],
        "additionalProperties": false,
        "properties": {
          "kind": {"type": "string", "description": "As in `insight/report/kinds/admin`."},
          "title": {"type": "string"},
          "site": {"type": "string", "description": "Its name."},
          "period": {"type": "string", "description": "The year or the month."},
          "from": {"type": "string", "description": "When it begins, with the offset from UTC."},
          "to": {"type": "string", "description": "When it ends; not included."},
          "written": {"type": "string", "description": "When the report was made."},
          "by": {"type": "string", "description": "The program and its version."},
          "notes": {"type": "array", "items": {"type": "string"}, "description": "What holds for all lines."},
          "lines": {"type": "array", "items": {"$ref": "#/components/schemas/SiteReportLine"}},
          "sources": {"type": "array", "description": "Where numbers are from.", "items": {"type": "object", "required": ["what", "detail", "sha256"], "additionalProperties": false, "properties": {"what": {"type": "string"}, "detail": {"type": "string", "description": "The query, or the file."}, "sha256": {"type": "string"}}}},
          "appendix": {"type": "object", "additionalProperties": {"type": "array"}, "description": "Empty; in the file the tables that formulas name."}
        }
      },
      "SiteReportLine": {
        "type": "object",
        "required": ["section", "id", "label", "value", "unit", "how", "coverage", "note", "factor", "factor_unit", "factor_source", "factor_date", "formula"],
        "additionalProperties": false,
        "properties": {
          "section": {"type": "string"},
          "id": {"type": "string", "description": "Unique in the report."},
          "label": {"type": "string"},
          "value": {"type": ["number", "null"], "description": "null: not known; never 0 then."},
          "unit": {"type": "string"},
          "how": {"type": "string", "enum": ["measured", "derived", "modelled", "declared", "missing"]},
          "coverage": {"type": ["number", "null"], "description": "Part of the period that the value is of."},
          "note": {"type": "string", "description": "The method, or why the value is missing."},
          "factor": {"type": ["number", "null"]},
          "factor_unit": {"type": "string"},
          "factor_source": {"type": "string"},
          "factor_date": {"type": "string"},
          "formula": {"type": "string", "description": "How to compute the value from the tables of the appendix."}
        }
      })json",
            .example =
                R"({"kind":"ghg","title":"Greenhouse gas inventory","site":"Centre","period":"2026",)"
                R"("from":"2026-01-01T00:00:00+0100","to":"2027-01-01T00:00:00+0100",)"
                R"("written":"2026-11-30T12:00:00+0100","by":"ceems_api_server 1.0.0","notes":[],)"
                R"("lines":[{"section":"Scope 2","id":"scope2_location","label":"Location-based",)"
                R"("value":61200,"unit":"kg","how":"derived","coverage":0.98,"note":"","factor":52,)"
                R"("factor_unit":"g/kWh","factor_source":"the grid's factors","factor_date":"",)"
                R"x("formula":"sum(months.location_kg)"}],"sources":[{"what":"table months",)x"
                R"("detail":"parts, meters and factors by month","sha256":"a0"}],"appendix":{}})"},
       .params = {Param::kKind, Param::kPeriod, Param::kClusterId, Param::kFormat},
       .required = {Param::kKind, Param::kPeriod},
       .tagged = false,
       .waits = true,
       .refusals = {ApiErrorType::kBadData}},
      {.path = "insight/report/kinds/admin",
       .caller = Caller::kAdmin,
       .summary = "The kinds of reports that rules ask for.",
       .handler = get_kinds,
       .data = {.name = "SiteReportKind",
                .definitions = R"json("SiteReportKind": {
        "type": "object",
        "required": ["kind", "title", "help", "year", "month"],
        "additionalProperties": false,
        "properties": {
          "kind": {"type": "string"},
          "title": {"type": "string"},
          "help": {"type": "string", "description": "What the report has."},
          "year": {"type": "boolean", "description": "There is one of a year."},
          "month": {"type": "boolean", "description": "There is one of a month."}
        }
      })json",
                .example =
                    R"({"kind":"ghg","title":"Greenhouse gas inventory","help":"the GHG Protocol",)"
                    R"("year":true,"month":true})"},
       .audited = false}};
}

}  // namespace ceems::api
