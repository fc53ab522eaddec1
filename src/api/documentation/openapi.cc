#include "api/documentation/openapi.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "api/documentation/openapi_words.h"
#include "api/envelope.h"
#include "base/json.h"
#include "base/version.h"

namespace ceems::api {
namespace {

/// Writes JSON from the outside in; commas are its business.
class Writer {
 public:
  Writer& key(std::string_view name) {
    separate();
    append_json_string(out_, name);
    out_ += ':';
    first_ = true;
    return *this;
  }
  Writer& open(char bracket) {
    separate();
    out_ += bracket;
    first_ = true;
    return *this;
  }
  Writer& close(char bracket) {
    out_ += bracket;
    first_ = false;
    return *this;
  }
  Writer& raw(std::string_view json) {
    separate();
    out_ += json;
    return *this;
  }
  Writer& text(std::string_view value) {
    separate();
    append_json_string(out_, value);
    return *this;
  }
  Writer& pair(std::string_view name, std::string_view value) { return key(name).text(value); }
  Writer& raw_pair(std::string_view name, std::string_view json) { return key(name).raw(json); }
  std::string take() { return std::move(out_); }

 private:
  void separate() {
    if (!std::exchange(first_, false)) {
      out_ += ',';
    }
  }
  std::string out_;
  bool first_ = true;
};

void add_reference(Writer& json, std::string_view kind, std::string_view name) {
  json.open('{').pair("$ref", fmt::format("#/components/{}/{}", kind, name)).close('}');
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
    case Shape::kNothing:
      break;
  }
  return "";
}

constexpr std::array kRowShapes = {Shape::kUnits,    Shape::kUsage,    Shape::kUsers,
                                   Shape::kProjects, Shape::kClusters, Shape::kStats};

// Shapes that are no rows of the data base.
constexpr std::string_view kSeriesSchema =
    R"({"type":"object","required":["name","unit","points"],"additionalProperties":false,)"
    R"("properties":{"name":{"type":"string","description":"cpu, memory or power"},)"
    R"("unit":{"type":"string","description":"cores, bytes or watts"},)"
    R"("points":{"type":"array","description":"Milliseconds since 1970, and the value.",)"
    R"("items":{"type":"array","items":{"type":"number"},"minItems":2,"maxItems":2}}}})";
constexpr std::string_view kSeriesExample =
    R"({"name":"cpu","unit":"cores","points":[[1933128450000,1.5],[1933128480000,2]]})";
constexpr std::string_view kIdentitySchema =
    R"({"type":"object","required":["user","admin","role"],"additionalProperties":false,)"
    R"("properties":{"user":{"type":"string","description":"Name of the caller."},)"
    R"("admin":{"type":"boolean","description":"Whether the caller is an administrator."},)"
    R"("role":{"enum":["user","project_lead","support","admin"],)"
    R"("description":"What the caller is here."},)"
    R"("via":{"enum":["header","local","oidc"],"description":"Who says so."},)"
    R"("led":{"type":"array","description":"Projects that the caller leads.",)"
    R"("items":{"type":"object","required":["cluster_id","project"],"additionalProperties":false,)"
    R"("properties":{"cluster_id":{"type":"string"},"project":{"type":"string"}}}},)"
    R"("login":{"$ref":"#/components/schemas/Login"}}})";
constexpr std::string_view kLoginSchema =
    R"({"type":"object","description":"The ways to log in.",)"
    R"("required":["header","local","oidc","token"],"additionalProperties":false,"properties":{)"
    R"("header":{"type":["string","null"],"description":"The header that everybody may send."},)"
    R"("local":{"type":"boolean","description":"Whether there is a form for passwords."},)"
    R"("oidc":{"type":["string","null"],"description":"Name of the provider."},)"
    R"("token":{"type":"string","description":"What forms of this browser must carry."}}})";
constexpr std::string_view kIdentityExample =
    R"({"user":"ada","admin":false,"role":"project_lead","via":"local",)"
    R"("led":[{"cluster_id":"hpc-a","project":"fluids"}],)"
    R"("login":{"header":null,"local":true,"oidc":null,"token":"mYb3h4T6u9KcEa"}})";

std::string row_example(Shape shape) {
  if (shape == Shape::kSeries) {
    return std::string(kSeriesExample);
  }
  if (shape == Shape::kIdentity) {
    return std::string(kIdentityExample);
  }
  Writer json;
  json.open('{');
  for (const store::Field& field : fields_of(shape)) {
    json.raw_pair(field.name, field.example);
  }
  return json.close('}').take();
}

void add_field_schema(Writer& json, const store::Field& field) {
  json.key(field.name).open('{');
  switch (field.kind) {
    case store::FieldKind::kText:
      json.pair("type", "string");
      break;
    case store::FieldKind::kInteger:
      json.pair("type", "integer");
      break;
    case store::FieldKind::kMetrics:
      json.pair("type", "object").raw_pair("additionalProperties", R"({"type":"number"})");
      break;
    case store::FieldKind::kObject:
      json.pair("type", "object");
      break;
    case store::FieldKind::kList:
      json.raw_pair("type", field.omit_empty ? R"("array")" : R"(["array","null"])");
      json.raw_pair("items", R"({"type":"string"})");
      break;
  }
  json.pair("description", field.help).close('}');
}

void add_schemas(Writer& json) {
  json.key("schemas").open('{');
  for (const Shape shape : kRowShapes) {
    json.key(name_of(shape)).open('{').pair("type", "object");
    json.key("required").open('[');
    for (const store::Field& field : fields_of(shape)) {
      if (!field.omit_empty) {
        json.text(field.name);
      }
    }
    json.close(']').raw_pair("additionalProperties", "false").key("properties").open('{');
    for (const store::Field& field : fields_of(shape)) {
      add_field_schema(json, field);
    }
    json.close('}').raw_pair("example", row_example(shape)).close('}');
  }
  json.raw_pair(name_of(Shape::kSeries), kSeriesSchema);
  json.raw_pair(name_of(Shape::kIdentity), kIdentitySchema).raw_pair("Login", kLoginSchema);
  json.key("Error").open('{').pair("type", "object");
  json.raw_pair("required", R"(["status","data","errorType","error"])");
  json.raw_pair("additionalProperties", "false").key("properties").open('{');
  json.raw_pair("status", R"({"const":"error"})").raw_pair("data", R"({"type":"null"})");
  json.key("errorType").open('{').pair("type", "string").key("enum").open('[');
  for (const ApiErrorInfo& error : all_errors()) {
    json.text(error.word);
  }
  json.close(']').close('}').raw_pair("error", R"({"type":"string"})");
  json.raw_pair("login", R"({"$ref":"#/components/schemas/Login"})");
  json.close('}').close('}').close('}');
}

void add_enumeration(Writer& json, Shape shape) {
  json.key("enum").open('[');
  if (shape == Shape::kNothing) {
    for (const std::string_view column : group_columns()) {
      json.text(column);
    }
  } else {
    for (const store::Field& field : fields_of(shape)) {
      json.text(field.name);
    }
  }
  json.close(']');
}

void add_param_schema(Writer& json, const ParamInfo& info, Shape shape) {
  json.key("schema").open('{');
  switch (info.type) {
    case ParamType::kTexts:
      json.pair("type", "array").raw_pair("items", R"({"type":"string"})");
      break;
    case ParamType::kText:
      json.pair("type", "string");
      break;
    case ParamType::kSeconds:
      json.pair("type", "integer");
      json.raw_pair("minimum", "-253402300799").raw_pair("maximum", "253402300799");
      break;
    case ParamType::kFlag:
      json.pair("type", "boolean").raw_pair("const", "true");
      break;
    case ParamType::kFields:
    case ParamType::kGroups:
      json.pair("type", "array").key("items").open('{').pair("type", "string");
      add_enumeration(json, info.type == ParamType::kFields ? shape : Shape::kNothing);
      json.close('}');
      break;
    case ParamType::kCount:
      json.pair("type", "integer").raw_pair("minimum", "1");
      json.raw_pair("maximum", std::to_string(kMaxLimit));
      break;
    case ParamType::kCursor:
      json.pair("type", "string").pair("pattern", "^[A-Za-z0-9_-]+$");
      break;
  }
  json.close('}');
}

bool is_list(ParamType type) {
  return type == ParamType::kTexts || type == ParamType::kFields || type == ParamType::kGroups;
}

void add_param_example(Writer& json, const ParamInfo& info, std::string_view text) {
  json.key("example");
  if (is_list(info.type)) {
    json.open('[').text(text).close(']');
  } else if (info.type == ParamType::kText || info.type == ParamType::kCursor) {
    json.text(text);
  } else {
    json.raw(text);
  }
}

void add_param(
    Writer& json, const ParamInfo& info, Shape shape, bool required, std::string_view example) {
  json.open('{').pair("name", info.name).pair("in", "query").pair("description", info.help);
  if (required) {
    json.raw_pair("required", "true");
  }
  if (is_list(info.type)) {
    json.pair("style", "form").raw_pair("explode", "true");
  }
  add_param_schema(json, info, shape);
  add_param_example(json, info, example);
  json.close('}');
}

void add_params(Writer& json, const Route& route) {
  json.key("parameters").open('[');
  for (const ParamInfo* info : params_of(route)) {
    add_param(json, *info, route.shape, is_required(route, info->param),
              info->type == ParamType::kCursor ? example_cursor(route) : info->example);
  }
  json.close(']');
}

using Names = std::vector<std::string_view>;

void add_headers(Writer& json, const Names& names) {
  json.key("headers").open('{');
  for (const std::string_view name : names) {
    json.key(name);
    add_reference(json, "headers", name);
  }
  json.close('}');
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
    names.emplace_back("X-Ceems-Verified");
  }
  return names;
}

void add_success(Writer& json, const Route& route) {
  const std::string_view name = name_of(route.shape);
  json.key("200").open('{').pair("description", route.summary);
  add_headers(json, success_headers(route));
  json.key("content").open('{').key("application/json").open('{');
  json.key("schema").open('{').pair("type", "object");
  json.raw_pair("required", R"(["status","data"])").raw_pair("additionalProperties", "false");
  json.key("properties").open('{').raw_pair("status", R"({"const":"success"})").key("data");
  if (name.empty()) {
    json.raw(R"({"type":"null"})");
  } else {
    json.open('{').pair("type", "array").key("items");
    add_reference(json, "schemas", name);
    json.close('}');
  }
  json.raw_pair("warnings", R"({"type":"array","items":{"type":"string"}})");
  if (route.page_key > 0) {
    json.raw_pair("next",
                  R"({"type":"string","description":"With `limit` or `cursor`, where more rows )"
                  R"(follow: the cursor of the next page."})");
  }
  json.close('}').close('}');
  json.key("example").open('{').pair("status", "success");
  json.raw_pair("data", name.empty() ? "null" : "[" + row_example(route.shape) + "]");
  json.close('}').close('}').close('}').close('}');
}

bool checks_params(const Route& route) {
  return std::ranges::any_of(params_of(route), [&route](const ParamInfo* info) {
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

void add_reference_to(Writer& json, std::string_view status, std::string_view response) {
  json.key(status);
  add_reference(json, "responses", response);
}

std::string operation_id(std::string_view path) {
  std::string id = "get_";
  id += path;
  std::ranges::replace(id, '/', '_');
  return id;
}

void add_route(Writer& json, const Route& route) {
  json.key(fmt::format("/{}", route.path)).open('{');
  json.key("get").open('{').pair("operationId", operation_id(route.path));
  json.key("tags").open('[').text(tag_of_path(route.path)).close(']');
  json.pair("summary", route.summary);
  if (route.caller == Caller::kAdmin) {
    json.pair("description", "For administrators.");
  }
  if (route.caller == Caller::kAnyone) {
    json.raw_pair("security", "[]");
  }
  add_params(json, route);
  json.key("responses").open('{');
  add_success(json, route);
  if (route.tagged) {
    add_reference_to(json, "304", "NotModified");
  }
  for (const ApiErrorType type : errors_of(route)) {
    const ApiErrorInfo& error = all_errors()[static_cast<std::size_t>(type)];
    add_reference_to(json, std::to_string(error.status), error.word);
  }
  add_reference_to(json, "429", "TooManyRequests");
  json.close('}').close('}');
  json.key("options").open('{').pair("operationId", "preflight_" + operation_id(route.path));
  json.key("tags").open('[').text(tag_of_path(route.path)).close(']');
  json.pair("summary", "Preflight of a cross-origin request.").raw_pair("security", "[]");
  json.key("responses").open('{');
  add_reference_to(json, "200", "Preflight");
  add_reference_to(json, "429", "TooManyRequests");
  json.close('}').close('}').close('}');
}

struct ServerPath {
  std::string_view path;
  std::string_view summary;
  std::string_view type;
};
constexpr std::array kServerPaths = {
    ServerPath{"/health", "200 while the data base answers.", "text/plain"},
    ServerPath{"/metrics", "Figures of the server itself, for Prometheus.", "text/plain"},
    ServerPath{"/openapi.json", "This document.", "application/json"},
    ServerPath{"/swagger/doc.json", "This document, where the reference has its own.",
               "application/json"},
    ServerPath{"/swagger/index.html", "This document for people.", "text/html"},
};

/// Outside of "/api/v1".
void open_server_path(Writer& json, std::string_view path, const std::string& root) {
  json.key(path).open('{').key("servers").open('[').open('{');
  json.pair("url", root.empty() ? "/" : root).close('}').close(']');
}

void add_login_paths(Writer& json, const std::string& root) {
  std::string_view path;
  for (const LoginOperation& operation : login_operations()) {
    if (operation.path != path) {
      if (!path.empty()) {
        json.close('}');
      }
      path = operation.path;
      open_server_path(json, path, root);
    }
    json.raw_pair(operation.method, operation.json);
  }
  json.close('}');
}

void add_server_path(Writer& json, const ServerPath& path, const std::string& root) {
  open_server_path(json, path.path, root);
  json.key("get").open('{').pair("operationId", operation_id(path.path.substr(1)));
  json.raw_pair("tags", R"(["server"])").pair("summary", path.summary).raw_pair("security", "[]");
  json.key("responses").open('{').key("200").open('{').pair("description", path.summary);
  const bool tagged = path.path != "/health" && path.path != "/metrics";
  Names headers = joined(common_headers(), {"Cache-Control"});
  if (tagged) {
    headers = joined(std::move(headers), {"ETag", "Content-Security-Policy", "Referrer-Policy"});
  }
  add_headers(json, path.path == "/health" ? joined(std::move(headers), cors_headers()) : headers);
  json.key("content").open('{').key(path.type).open('{').raw_pair("schema", "{}");
  json.close('}').close('}').close('}');
  if (tagged) {
    add_reference_to(json, "304", "NotModified");
  }
  add_reference_to(json, "429", "TooManyRequests");
  if (path.path == "/health") {
    json.key("503").open('{').pair("description", "The data base does not answer.");
    json.raw_pair("content", R"({"text/plain":{"schema":{"const":"KO"}}})").close('}');
  }
  json.close('}').close('}').close('}');
}

void add_responses(Writer& json) {
  json.key("responses").open('{');
  for (const ApiErrorInfo& error : all_errors()) {
    json.key(error.word).open('{').pair("description", error.when);
    add_headers(json, api_headers());
    json.key("content").open('{').key("application/json").open('{').key("schema");
    add_reference(json, "schemas", "Error");
    json.key("example").open('{').pair("status", "error").raw_pair("data", "null");
    json.pair("errorType", error.word).pair("error", "a text for people").close('}');
    json.close('}').close('}').close('}');
  }
  json.key("NotModified").open('{').pair("description", "The client has the answer already.");
  add_headers(json, joined(api_headers(), {"ETag"}));
  json.close('}').key("Preflight").open('{');
  json.pair("description", "No body; the headers where the request has an `Origin`.");
  add_headers(json, joined(common_headers(), cors_headers()));
  json.close('}').key("TooManyRequests").open('{');
  json.pair("description", "More than `--web.max-requests` in a minute.");
  add_headers(json, joined(common_headers(), {"Retry-After"}));
  json.raw_pair("content",
                R"({"text/plain":{"schema":{"type":"string"},"example":"Too Many Requests\n"}})");
  json.close('}');
  for (const LoginResponse& response : login_responses()) {
    json.key(response.name);
    if (!response.json.empty()) {
      json.raw(response.json);
      continue;
    }
    json.open('{').pair("description", response.when).key("content").open('{');
    json.key("application/json").open('{').key("schema");
    add_reference(json, "schemas", "Error");
    json.close('}').raw_pair("text/html", R"({"schema":{"type":"string"}})").close('}').close('}');
  }
  json.close('}').key("parameters").open('{').raw_pair("Next", login_next_parameter()).close('}');
}

void add_components(Writer& json, const DocumentOptions& options) {
  json.key("components").open('{');
  add_schemas(json);
  add_responses(json);
  json.key("headers").open('{');
  for (const HeaderWords& header : all_headers()) {
    json.key(header.name).open('{').pair("description", header.help);
    json.raw_pair("schema", R"({"type":"string"})").pair("example", header.example).close('}');
  }
  json.close('}').key("securitySchemes").open('{');
  for (std::size_t i = 0; i < options.user_headers.size(); ++i) {
    json.key(fmt::format("user{}", i)).open('{').pair("type", "apiKey").pair("in", "header");
    json.pair("name", options.user_headers[i]);
    json.pair("description",
              "Name of the user, set by a proxy. It is no proof: see `basic` and the manual.");
    json.close('}');
  }
  json.key("basic").open('{').pair("type", "http").pair("scheme", "basic");
  json.pair("description", "With `--web.config.file`, beside the name of the user.");
  json.close('}').close('}').close('}');
}

}  // namespace

std::string openapi_json(const DocumentOptions& options) {
  const std::string root = server_root(options);
  Writer json;
  json.open('{').pair("openapi", "3.1.0").key("info").open('{');
  json.pair("title", "CEEMS API").pair("version", version().version);
  json.pair("description",
            "Compute units, their use of resources, energy and emissions. Parameters with several "
            "values are repeated; unknown parameters and empty values are ignored.");
  json.raw_pair("license", R"({"name":"Apache-2.0","identifier":"Apache-2.0"})").close('}');
  json.key("servers").open('[').open('{').pair("url", root + "/api/v1").close('}').close(']');
  json.key("security").open('[');
  for (std::size_t i = 0; i < options.user_headers.size(); ++i) {
    json.open('{').raw_pair(fmt::format("user{}", i), "[]").close('}');
    json.open('{').raw_pair(fmt::format("user{}", i), "[]").raw_pair("basic", "[]").close('}');
  }
  json.close(']').key("tags").open('[');
  for (const TagWords& tag : all_tags()) {
    json.open('{').pair("name", tag.name).pair("description", tag.help).close('}');
  }
  json.close(']').key("paths").open('{');
  for (const Route& route : all_routes()) {
    add_route(json, route);
  }
  for (const ServerPath& path : kServerPaths) {
    add_server_path(json, path, root);
  }
  add_login_paths(json, root);
  json.close('}');
  add_components(json, options);
  std::string text = json.close('}').take();
  text += '\n';
  return text;
}

Document::Document(const DocumentOptions& options)
    : json_{.text = openapi_json(options), .content_type = "application/json"},
      page_{
          .text = openapi_page(options), .content_type = "text/html; charset=utf-8", .forms = true},
      style_{.text = std::string(openapi_style()), .content_type = "text/css; charset=utf-8"} {}

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
