#include "api/documentation/openapi.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "api/answer/envelope.h"
#include "api/documentation/route_info.h"
#include "api/documentation/texts.h"
#include "base/json.h"
#include "base/text/template.h"
#include "base/version.h"
#include "model/protocol.h"

namespace ceems::api {
namespace {

void add_reference(JsonWriter& json, std::string_view kind, std::string_view name) {
  json.begin_object().member("$ref", fmt::format("#/components/{}/{}", kind, name)).end_object();
}

std::string_view name_of(Shape shape) {
  switch (shape) {
    case Shape::kUnits:
      return "Unit";
    case Shape::kUsage:
      return "Usage";
    case Shape::kUsers:
      return "User";
    case Shape::kProjects:
      return "Project";
    case Shape::kClusters:
      return "Cluster";
    case Shape::kStats:
      return "Stat";
    case Shape::kSeries:
      return "Series";
    case Shape::kIdentity:
      return "Identity";
    case Shape::kSite:
      return "Site";
    case Shape::kReports:
      return "Report";
    case Shape::kIdle:
      return "IdleUnit";
    case Shape::kBudgets:
      return "Budget";
    case Shape::kBill:
      return "BillPart";
    case Shape::kUnitTable:
      return "UnitTable";
    case Shape::kUnitSums:
      return "UnitSums";
    case Shape::kUsageSeries:
      return "UsageSeries";
    case Shape::kNodeTable:
      return "NodeTable";
    case Shape::kNodeUnits:
      return "NodeUnits";
    case Shape::kGrid:
      return "Grid";
    case Shape::kFindings:
      return "Findings";
    case Shape::kGpuBoard:
      return "GpuBoard";
    case Shape::kDigest:
      return "Digest";
    case Shape::kNothing:
      break;
  }
  return "";
}

constexpr std::array kRowShapes = {Shape::kUnits,    Shape::kUsage,    Shape::kUsers,
                                   Shape::kProjects, Shape::kClusters, Shape::kStats};

// The schemas of other shapes, with their examples, are in data/openapi.json.
constexpr std::string_view kSeriesExample =
    R"({"name":"cpu","unit":"cores","points":[[1933128450000,1.5],[1933128480000,2]]})";
constexpr std::string_view kIdentityExample =
    R"({"user":"ada","admin":false,"role":"project_lead","via":"local",)"
    R"("led":[{"cluster_id":"hpc-a","project":"fluids"}],)"
    R"("login":{"header":null,"local":true,"oidc":null,"token":"mYb3h4T6u9KcEa"}})";

constexpr std::string_view kSiteExample =
    R"({"name":"Example HPC","currency":"EUR","help_url":"https://example.org/help",)"
    R"("time_zone":"Europe/Paris","version":"0.1.0","languages":["en"],)"
    R"("unit_links":[{"name":"Profiles","url":"https://grafana.example.org/d/profiles)"
    R"(?var-service={uuid}&from={from_ms}&to={to_ms}","clusters":["hpc-a"]}],)"
    R"("priced":true,"price_kwh":0.24,"price_core_hour":null,"price_gpu_hour":null,"pue":1.2,)"
    R"("budgets":[{"cluster":"hpc-a","project":"fluids","kwh_per_month":3000}],)"
    R"("clusters":[{"id":"hpc-a","manager":"slurm","series":true,"nodes":true,"gpus":true,)"
    R"("partitions":true,"updated":1767225600000}]})";

constexpr std::string_view kUnitTableExample =
    R"({"columns":["cluster_id","uuid","name","state","cpu","kwh"],)"
    R"("rows":[["gpu-b","1099550","train_7","COMPLETED",22.4,41.2],)"
    R"(["hpc-a","7001",null,"RUNNING",97.1,null]]})";
constexpr std::string_view kUnitSumsExample =
    R"({"count":12408,"running":31,"kwh":3104.2,"cpu_kwh":1200.1,"gpu_kwh":1904.1,)"
    R"("grams":161000,"cost":null,"core_hours":210000,"core_hours_measured":209000,)"
    R"("core_hours_used":128000,"gpu_hours":4100,"gpu_hours_measured":4100,)"
    R"("gpu_hours_used":1560,"idle_kwh":900.5,"idle_measured":12000,)"
    R"("facets":{"state":[["COMPLETED",9120,2210.1],["RUNNING",31,12.5]]},)"
    R"("heat":{"x":"cpu","y":"mem","bins":20,"cells":[[0,1,31,402.2]]}})";
constexpr std::string_view kNodeTableExample =
    R"({"columns":["cluster_id","host","state","cpu"],"rows":[["hpc-a","n079","idle",0.4]],)"
    R"("counts":{"busy":341,"idle":38,"silent":3},"watts":412000,)"
    R"("idle_watts":7100,"idle_kwh":31000,)"
    R"("missing":[{"cluster_id":"cloud","reason":"no_tsdb"}]})";
constexpr std::string_view kNodeUnitsExample =
    R"({"columns":["uuid","started","ended","cpu"],)"
    R"("rows":[["7001",1933128450000,null,97.1]],"source":"tsdb"})";
constexpr std::string_view kGridExample =
    R"({"now":{"provider":"rte","country":"FR","g_kwh":48.2,"at":1933128450000},)"
    R"("providers":[{"provider":"rte","country":"FR","g_kwh":48.2}],)"
    R"("series":[{"provider":"rte","country":"FR","points":[[1933128450000,48.2]]}],)"
    R"("best":[{"hours":4,"from":11,"to":15,"mean":33}]})";
constexpr std::string_view kFindingsExample =
    R"({"findings":[{"cluster_id":"hpc-a","uuid":"4711","started_at_ts":1794903120000,)"
    R"("ended_at_ts":1794970436000,"name":"cp2k-water","user":"ada","project":"fluids",)"
    R"("rule":"mem-excess","severity":"suggest","confidence":"sure","runs":8,)"
    R"("values":{"want":10737418240},"saves":{"kwh":0.4}}],"more":false})";
constexpr std::string_view kGpuBoardExample =
    R"({"step_s":600,"times":[1933128450000],"rows":[{"cluster_id":"hpc-a","host":"g14",)"
    R"("gpu":"0","instance":"","cells":[{"units":[{"uuid":"7001","user":"ada","busy":0.66,)"
    R"("sm":0.33}],"others":false}]}],"missing":[]})";
constexpr std::string_view kDigestExample =
    R"({"v":1,"month":"2026-11","user":"ada","project":null,"clusters":[],"so_far":false,)"
    R"("band_only":false,"months":[{"month":"2026-11","core_hours":12346,"gpu_hours":82.1,)"
    R"("kwh":41.3,"g":1820,"units":214,"idle_share":0.11}],"method":"measured",)"
    R"("modelled_share":0,"unmeasured":[],"kwh_change":-0.08,"hours_change":-0.12,)"
    R"("improvement":{"name":"relax-#","runs":20,"before":0.31,"now":0.11,"saved_kwh":4.2},)"
    R"("band":null,"suggestions":[{"rule":"mem-excess","severity":"suggest","confidence":"sure",)"
    R"("units":14,"cluster_id":"hpc-a","uuid":"4711","text":"Memory: 7.9 GB a node at most.",)"
    R"("lines":[{"type":"#SBATCH --mem=10G","was":"--mem=128G"}],"sbatch":["--mem=10G"],)"
    R"("was":["--mem=128G"],"saves":{"kwh":2.6}}]})";
constexpr std::string_view kUsageSeriesExample =
    R"x({"step":"day","groups":["p07","(others)"],"times":[1933113600000,1933200000000],)x"
    R"("values":{"kwh":[[12.5,0],[3.25,8]]},"totals":{"kwh":[12.5,11.25]}})";

constexpr std::string_view kReportExample =
    R"({"v":1,"cluster_id":"hpc-a","uuid":"4711","started_at_ts":1794903120000,)"
    R"("ended_at_ts":1794970436000,"state":"final","coverage":0.998,)"
    R"("job":{"name":"cp2k-water","user":"ada","project":"fluids","partition":"cpu",)"
    R"("state":"COMPLETED","nodes":1,"cpus":32,"gpus":0,"elapsed_s":67316,"limit_s":345600,)"
    R"("waited_s":null,"array":null},"use":{"cpu":0.94,"mem":0.05,)"
    R"("mem_peak_node_bytes":8482560000,"mem_alloc_node_bytes":137438953472,"gpu_busy":null,)"
    R"("gpu_sm":null,"gpu_mem":null},"nodes":[{"node":"n14","cpus":32,"cpu_seconds":2023000.5,)"
    R"("mem_peak_bytes":8482560000,"mem_alloc_bytes":137438953472,"gpus":[]}],)"
    R"("energy":{"kwh":6.3,"idle_kwh":1.2,"domains":{"package":5.1,"dram":0.9,"other":0.3},)"
    R"("method":"measured"},"co2":{"g":182,"provider":"rte_total"},)"
    R"("cost":{"amount":1.51,"currency":"EUR"},"compared":{"family_n":20,)"
    R"("family_median_kwh":6.4,"family_cpu_low":0.92,"family_cpu_high":0.95,)"
    R"("family_mem_median":0.06,"family_gpu_low":null,"family_gpu_high":null,)"
    R"("project_month_share":0.014},"findings":[{"rule":"mem-excess","severity":"suggest",)"
    R"("confidence":"sure","runs":8,"values":{"want":10737418240},"text":"Memory: 7.9 GB a node )"
    R"(at most, 128 GB reserved.","lines":[{"type":"#SBATCH --mem=10G","was":"--mem=128G"}],)"
    R"("sbatch":["--mem=10G"],"was":["--mem=128G"],"saves":{}}]})";

constexpr std::string_view kIdleExample =
    R"({"cluster_id":"hpc-a","uuid":"5120","user":"ada","project":"fluids","partition":"gpu",)"
    R"("since_ts":1794900000000,"idle_s":7800,"cpus":64,"gpus":4,"watts":612,"kwh":1.326,)"
    R"("cost":0.31,"exempt":null})";
constexpr std::string_view kBudgetExample =
    R"({"project":"fluids","cluster_id":"hpc-a","unit":"kgco2","amount":1500,"used":1104,)"
    R"("used_share":0.736,"burn":3.4,"forecast":[1420,1580],"period":"2026",)"
    R"("from_ts":1767222000000,"to_ts":1798758000000,"warn":[0.5,0.8,1],"state":"warn_0.5"})";
constexpr std::string_view kBillExample =
    R"({"part":"nodes","kwh":88700,"share":0.7517,"how":"measured","nodes":400,"coverage":0.998,)"
    R"("measured":0.97,"days":[[1793487600000,2041.3,482.6,103.6,329]]})";

std::string row_example(Shape shape) {
  if (shape == Shape::kIdle) {
    return std::string(kIdleExample);
  }
  if (shape == Shape::kBudgets) {
    return std::string(kBudgetExample);
  }
  if (shape == Shape::kBill) {
    return std::string(kBillExample);
  }
  if (shape == Shape::kSeries) {
    return std::string(kSeriesExample);
  }
  if (shape == Shape::kIdentity) {
    return std::string(kIdentityExample);
  }
  if (shape == Shape::kSite) {
    return std::string(kSiteExample);
  }
  if (shape == Shape::kReports) {
    return std::string(kReportExample);
  }
  if (shape == Shape::kUnitTable) {
    return std::string(kUnitTableExample);
  }
  if (shape == Shape::kUnitSums) {
    return std::string(kUnitSumsExample);
  }
  if (shape == Shape::kUsageSeries) {
    return std::string(kUsageSeriesExample);
  }
  if (shape == Shape::kNodeTable) {
    return std::string(kNodeTableExample);
  }
  if (shape == Shape::kNodeUnits) {
    return std::string(kNodeUnitsExample);
  }
  if (shape == Shape::kGrid) {
    return std::string(kGridExample);
  }
  if (shape == Shape::kFindings) {
    return std::string(kFindingsExample);
  }
  if (shape == Shape::kDigest) {
    return std::string(kDigestExample);
  }
  if (shape == Shape::kGpuBoard) {
    return std::string(kGpuBoardExample);
  }
  std::string example;
  JsonWriter json(example);
  json.begin_object();
  for (const store::Field& field : fields_of(shape)) {
    json.raw_member(field.name, field.example);
  }
  json.end_object();
  return example;
}

void add_field_schema(JsonWriter& json, const store::Field& field) {
  json.key(field.name).begin_object();
  switch (field.kind) {
    case store::FieldKind::kText:
      json.member("type", "string");
      break;
    case store::FieldKind::kInteger:
      json.member("type", "integer");
      break;
    case store::FieldKind::kMetrics:
      json.member("type", "object").raw_member("additionalProperties", R"({"type":"number"})");
      break;
    case store::FieldKind::kObject:
      json.member("type", "object");
      break;
    case store::FieldKind::kList:
      json.raw_member("type", field.omit_empty ? R"("array")" : R"(["array","null"])");
      json.raw_member("items", R"({"type":"string"})");
      break;
  }
  json.member("description", field.help).end_object();
}

void add_row_schema(JsonWriter& json, Shape shape) {
  json.key(name_of(shape)).begin_object().member("type", "object");
  json.key("required").begin_array();
  for (const store::Field& field : fields_of(shape)) {
    if (!field.omit_empty) {
      json.value(field.name);
    }
  }
  json.end_array().member("additionalProperties", false).key("properties").begin_object();
  for (const store::Field& field : fields_of(shape)) {
    add_field_schema(json, field);
  }
  json.end_object().raw_member("example", row_example(shape)).end_object();
}

void add_enumeration(JsonWriter& json, Shape shape) {
  json.key("enum").begin_array();
  if (shape == Shape::kNothing) {
    for (const std::string_view column : group_columns()) {
      json.value(column);
    }
  } else {
    for (const store::Field& field : fields_of(shape)) {
      json.value(field.name);
    }
  }
  json.end_array();
}

void add_param_schema(JsonWriter& json, const ParamInfo& info, Shape shape) {
  json.key("schema").begin_object();
  switch (info.type) {
    case ParamType::kTexts:
      json.member("type", "array").raw_member("items", R"({"type":"string"})");
      break;
    case ParamType::kText:
      json.member("type", "string");
      break;
    case ParamType::kSeconds:
      json.member("type", "integer");
      json.raw_member("minimum", "-253402300799").raw_member("maximum", "253402300799");
      break;
    case ParamType::kFlag:
      json.member("type", "boolean").raw_member("const", "true");
      break;
    case ParamType::kFields:
      if (fields_of(shape).empty()) {  // in its own words
        json.member("type", "array").raw_member("items", R"({"type":"string"})");
        break;
      }
      [[fallthrough]];
    case ParamType::kGroups:
      json.member("type", "array").key("items").begin_object().member("type", "string");
      add_enumeration(json, info.type == ParamType::kFields ? shape : Shape::kNothing);
      json.end_object();
      break;
    case ParamType::kCount:
      json.member("type", "integer").raw_member("minimum", "1");
      json.raw_member("maximum", std::to_string(kMaxLimit));
      break;
    case ParamType::kCursor:
      json.member("type", "string").member("pattern", "^[A-Za-z0-9_-]+$");
      break;
  }
  json.end_object();
}

bool is_list(ParamType type) {
  return type == ParamType::kTexts || type == ParamType::kFields || type == ParamType::kGroups;
}

void add_param_example(JsonWriter& json, const ParamInfo& info, std::string_view text) {
  json.key("example");
  if (is_list(info.type)) {
    json.begin_array().value(text).end_array();
  } else if (info.type == ParamType::kText || info.type == ParamType::kCursor) {
    json.value(text);
  } else {
    json.raw(text);
  }
}

void add_param(
    JsonWriter& json, const ParamInfo& info, Shape shape, bool required, std::string_view example) {
  json.begin_object()
      .member("name", info.name)
      .member("in", "query")
      .member("description", info.help);
  if (required) {
    json.raw_member("required", "true");
  }
  if (is_list(info.type)) {
    json.member("style", "form").raw_member("explode", "true");
  }
  add_param_schema(json, info, shape);
  add_param_example(json, info, example);
  json.end_object();
}

void add_params(JsonWriter& json, const Route& route) {
  json.key("parameters").begin_array();
  for (const ParamInfo* info : params_of(route)) {
    add_param(json, *info, route.shape, is_required(route, info->param),
              info->type == ParamType::kCursor ? example_cursor(route) : info->example);
  }
  json.end_array();
}

using Names = std::vector<std::string_view>;

std::string header_references(const Names& names) {
  std::string text;
  JsonWriter json(text);
  json.begin_object();
  for (const std::string_view name : names) {
    json.key(name);
    add_reference(json, "headers", name);
  }
  json.end_object();
  return text;
}

const Names& common_headers() {
  static const Names kNames = {"X-Ratelimit-Limit", "X-Ratelimit-Remaining",
                               "X-Ratelimit-Reset", "X-Content-Type-Options",
                               "Content-Encoding",  "Vary"};
  return kNames;
}

const Names& cors_headers() {
  static const Names kNames = {"Access-Control-Allow-Headers", "Access-Control-Allow-Methods",
                               "Access-Control-Allow-Origin", "Access-Control-Expose-Headers"};
  return kNames;
}

Names joined(Names names, const Names& more) {
  names.insert(names.end(), more.begin(), more.end());
  return names;
}

Names api_headers() {
  return joined(joined(common_headers(), cors_headers()), {"Cache-Control"});
}

Names success_headers(const Route& route) {
  Names names = api_headers();
  if (route.caller != Caller::kAnyone) {
    names.emplace_back("Set-Cookie");
  }
  if (route.tagged) {
    names.emplace_back("ETag");
  }
  if (route.page_key > 0) {
    names.emplace_back("Link");
  }
  if (route.window == WindowKind::kRounded) {
    names.emplace_back("Expires");
  }
  if (route.shape == Shape::kNothing) {  // units/verify
    names.emplace_back(model::kVerifiedHeader);
  }
  return names;
}

void add_success(JsonWriter& json, const Route& route) {
  const std::string_view name = name_of(route.shape);
  json.key("200").begin_object().member("description", route.summary);
  json.raw_member("headers", header_references(success_headers(route)));
  json.key("content").begin_object().key("application/json").begin_object();
  json.key("schema").begin_object().member("type", "object");
  json.raw_member("required", R"(["status","data"])").raw_member("additionalProperties", "false");
  json.key("properties").begin_object().raw_member("status", R"({"const":"success"})").key("data");
  if (name.empty()) {
    json.raw(R"({"type":"null"})");
  } else if (is_object(route.shape)) {
    add_reference(json, "schemas", name);
  } else {
    json.begin_object().member("type", "array").key("items");
    add_reference(json, "schemas", name);
    json.end_object();
  }
  json.raw_member("warnings", R"({"type":"array","items":{"type":"string"}})");
  if (route.page_key > 0) {
    json.raw_member("next",
                    R"({"type":"string","description":"With `limit` or `cursor`, where more rows )"
                    R"(follow: the cursor of the next page."})");
  }
  if (route.table) {
    constexpr std::string_view kCursor =
        R"({"type":"string","description":"Cursor of this neighbouring page, if there is one."})";
    json.raw_member("next", kCursor).raw_member("previous", kCursor);
  }
  if (route.shape == Shape::kIdentity) {  // with `anonymous`, for a caller without identity
    json.key("login");
    add_reference(json, "schemas", "Login");
  }
  json.end_object().end_object();
  json.key("example").begin_object().member("status", "success");
  const std::string example = row_example(route.shape);
  json.raw_member("data", name.empty()             ? "null"
                          : is_object(route.shape) ? example
                                                   : "[" + example + "]");
  json.end_object().end_object().end_object().end_object();
}

bool checks_params(const Route& route) {
  return is_object(route.shape) || route.shape == Shape::kBudgets || route.shape == Shape::kBill ||
         std::ranges::any_of(params_of(route), [&route](const ParamInfo* info) {
           return is_required(route, info->param) ||
                  (info->type != ParamType::kTexts && info->type != ParamType::kText &&
                   info->type != ParamType::kFlag);
         });
}

std::set<ApiErrorType> errors_of(const Route& route) {
  std::set<ApiErrorType> types;
  if (checks_params(route)) {
    types.insert(ApiErrorType::kBadData);
  }
  if (route.caller != Caller::kAnyone) {
    types.insert({ApiErrorType::kUnauthorized, ApiErrorType::kInternal, ApiErrorType::kTimeout});
  }
  if (route.caller == Caller::kAdmin || route.shape == Shape::kNothing ||
      route.shape == Shape::kSeries) {
    types.insert(ApiErrorType::kForbidden);
  }
  return types;
}

void add_reference_to(JsonWriter& json, std::string_view status, std::string_view response) {
  json.key(status);
  add_reference(json, "responses", response);
}

std::string operation_id(std::string_view path) {
  std::string id = "get_";
  id += path;
  std::ranges::replace(id, '/', '_');
  return id;
}

void add_route(JsonWriter& json, const Route& route) {
  json.key(fmt::format("/{}", route.path)).begin_object();
  json.key("get").begin_object().member("operationId", operation_id(route.path));
  json.key("tags").begin_array().value(tag_of_path(route.path)).end_array();
  json.member("summary", route.summary);
  if (route.caller == Caller::kAdmin) {
    json.member("description", "For administrators.");
  }
  if (route.caller == Caller::kAnyone) {
    json.raw_member("security", "[]");
  }
  add_params(json, route);
  json.key("responses").begin_object();
  add_success(json, route);
  if (route.tagged) {
    add_reference_to(json, "304", "NotModified");
  }
  for (const ApiErrorType type : errors_of(route)) {
    const ApiErrorInfo& error = all_errors()[static_cast<std::size_t>(type)];
    add_reference_to(json, std::to_string(error.status), error.word);
  }
  add_reference_to(json, "429", "TooManyRequests");
  json.end_object().end_object();
  json.key("options").begin_object().member("operationId", "preflight_" + operation_id(route.path));
  json.key("tags").begin_array().value(tag_of_path(route.path)).end_array();
  json.member("summary", "Preflight of a cross-origin request.").raw_member("security", "[]");
  json.key("responses").begin_object();
  add_reference_to(json, "200", "Preflight");
  add_reference_to(json, "429", "TooManyRequests");
  json.end_object().end_object().end_object();
}

std::string json_string(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

void add_user_headers(const DocumentOptions& options, TemplateData& data) {
  std::string& security = data.texts["security"];
  std::string& headers = data.texts["user_headers"];
  JsonWriter ways(security);
  JsonWriter schemes(headers);
  for (std::size_t i = 0; i < options.user_headers.size(); ++i) {
    const std::string name = fmt::format("user{}", i);
    ways.begin_object().raw_member(name, "[]").end_object();
    ways.begin_object().raw_member(name, "[]").raw_member("basic", "[]").end_object();
    schemes.key(name).begin_object().member("type", "apiKey").member("in", "header");
    schemes.member("name", options.user_headers[i]);
    schemes.member(
        "description",
        "Name of the user, set by a proxy. It is not a proof of identity: see `basic` and the "
        "manual.");
    schemes.end_object();
  }
  if (!headers.empty()) {
    headers += ',';
  }
}

void add_errors(TemplateData& data) {
  std::string& types = data.texts["error_types"];
  auto& errors = data.lists["errors"];
  JsonWriter json(types);
  for (const ApiErrorInfo& error : all_errors()) {
    json.value(error.word);
    errors.push_back(
        {.texts = {{"word", json_string(error.word)}, {"when", json_string(error.when)}}});
  }
}

}  // namespace

std::string openapi_json(const DocumentOptions& options) {
  const std::string root = server_root(options);
  const Names server = joined(common_headers(), {"Cache-Control"});
  TemplateData data;
  data.texts = {
      {"version", json_string(version().version)},
      {"api_url", json_string(root + "/api/v1")},
      {"root_url", json_string(root.empty() ? "/" : root)},
      {"server_headers", header_references(server)},
      {"health_headers", header_references(joined(server, cors_headers()))},
      {"page_headers",
       header_references(joined(server, {"ETag", "Content-Security-Policy", "Referrer-Policy"}))},
      {"api_headers", header_references(api_headers())},
      {"not_modified_headers", header_references(joined(api_headers(), {"ETag"}))},
      {"preflight_headers", header_references(joined(common_headers(), cors_headers()))},
      {"too_many_headers", header_references(joined(common_headers(), {"Retry-After"}))},
  };
  JsonWriter routes(data.texts["routes"]);
  for (const Route& route : all_routes()) {
    add_route(routes, route);
  }
  JsonWriter schemas(data.texts["row_schemas"]);
  for (const Shape shape : kRowShapes) {
    add_row_schema(schemas, shape);
  }
  add_errors(data);
  add_user_headers(options, data);
  return render_template(kOpenapiJson, data) + "\n";
}

Document::Document(const DocumentOptions& options)
    : json_{.text = openapi_json(options), .content_type = "application/json"},
      page_{.text = openapi_page(options, json_.text),
            .content_type = "text/html; charset=utf-8",
            .forms = true},
      style_{.text = std::string(kDocsCss), .content_type = "text/css; charset=utf-8"} {}

void Document::answer_json(const net::Request& request, net::Response& response) const {
  answer_static(json_, request, response);
}
void Document::answer_page(const net::Request& request, net::Response& response) const {
  answer_static(page_, request, response);
}
void Document::answer_style(const net::Request& request, net::Response& response) const {
  answer_static(style_, request, response);
}

}  // namespace ceems::api
