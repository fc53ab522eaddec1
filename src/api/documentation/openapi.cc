#include "api/documentation/openapi.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "api/answer/envelope.h"
#include "api/documentation/texts.h"
#include "api/endpoints/all.h"
#include "api/request/paging.h"
#include "base/json.h"
#include "base/strings.h"
#include "base/text/template.h"
#include "base/version.h"

namespace ceems::api {
namespace {

void add_reference(JsonWriter& json, std::string_view kind, std::string_view name) {
  json.begin_object().member("$ref", fmt::format("#/components/{}/{}", kind, name)).end_object();
}

std::string row_example(std::span<const store::Field> fields) {
  std::string example;
  JsonWriter json(example);
  json.begin_object();
  for (const store::Field& field : fields) {
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

void add_row_schema(JsonWriter& json, const DataSchema& data) {
  json.key(data.name).begin_object().member("type", "object");
  json.key("required").begin_array();
  for (const store::Field& field : data.fields) {
    if (!field.omit_empty) {
      json.value(field.name);
    }
  }
  json.end_array().member("additionalProperties", false).key("properties").begin_object();
  for (const store::Field& field : data.fields) {
    add_field_schema(json, field);
  }
  json.end_object().raw_member("example", row_example(data.fields)).end_object();
}

/// The JSON without spaces and line breaks between its parts.
std::string compact(std::string_view json) {
  std::string out;
  bool text = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    text = text != (c == '"' && (i == 0 || json[i - 1] != '\\'));
    if (text || (c != ' ' && c != '\n')) {
      out += c;
    }
  }
  return out;
}

/// The schemas of all answers: first of rows from the database, then the others.
std::string data_schemas() {
  std::string rows;
  std::string others;
  JsonWriter json(rows);
  std::set<std::string_view> known;
  for (const Endpoint& endpoint : endpoints_as_listed()) {
    const DataSchema& data = endpoint.data;
    if (!data.name.empty() && known.insert(data.name).second) {
      if (data.fields.empty()) {
        others += "," + compact(data.definitions);
      } else {
        add_row_schema(json, data);
      }
    }
    if (!endpoint.body.name.empty() && known.insert(endpoint.body.name).second) {
      others += "," + compact(endpoint.body.definitions);
    }
  }
  return rows + others;
}

void add_param_schema(JsonWriter& json,
                      const ParamInfo& info,
                      std::span<const store::Field> fields) {
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
    case ParamType::kGroups:
      json.member("type", "array").key("items").begin_object().member("type", "string");
      if (info.type == ParamType::kGroups) {
        json.key("enum").begin_array();
        for (const std::string_view column : group_columns()) {
          json.value(column);
        }
        json.end_array();
      } else if (!fields.empty()) {  // otherwise in its own words
        json.key("enum").begin_array();
        for (const store::Field& field : fields) {
          json.value(field.name);
        }
        json.end_array();
      }
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

void add_param(JsonWriter& json, const Endpoint& endpoint, const ParamInfo& info) {
  json.begin_object()
      .member("name", info.name)
      .member("in", "query")
      .member("description", info.help);
  if (endpoint.required.contains(info.param)) {
    json.raw_member("required", "true");
  }
  if (is_list(info.type)) {
    json.member("style", "form").raw_member("explode", "true");
  }
  add_param_schema(json, info, endpoint.data.fields);
  add_param_example(
      json, info,
      info.type == ParamType::kCursor ? example_cursor(endpoint) : std::string(info.example));
  json.end_object();
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

Names success_headers(const Endpoint& endpoint) {
  Names names = api_headers();
  if (endpoint.caller != Caller::kAnyone) {
    names.emplace_back("Set-Cookie");
  }
  if (endpoint.tagged) {
    names.emplace_back("ETag");
  }
  if (endpoint.page_key > 0) {
    names.emplace_back("Link");
  }
  if (endpoint.window == WindowKind::kRounded) {
    names.emplace_back("Expires");
  }
  if (!endpoint.header.empty()) {
    names.emplace_back(endpoint.header);
  }
  return names;
}

void add_success(JsonWriter& json, const Endpoint& endpoint) {
  const DataSchema& data = endpoint.data;
  json.key("200").begin_object().member("description", endpoint.summary);
  json.raw_member("headers", header_references(success_headers(endpoint)));
  json.key("content").begin_object().key("application/json").begin_object();
  json.key("schema").begin_object().member("type", "object");
  json.raw_member("required", R"(["status","data"])").raw_member("additionalProperties", "false");
  json.key("properties").begin_object().raw_member("status", R"({"const":"success"})").key("data");
  if (data.name.empty()) {
    json.raw(R"({"type":"null"})");
  } else if (data.one) {
    add_reference(json, "schemas", data.name);
  } else {
    json.begin_object().member("type", "array").key("items");
    add_reference(json, "schemas", data.name);
    json.end_object();
  }
  json.raw_member("warnings", R"({"type":"array","items":{"type":"string"}})");
  if (endpoint.page_key > 0) {
    json.raw_member("next",
                    R"({"type":"string","description":"With `limit` or `cursor`, where more rows )"
                    R"(follow: the cursor of the next page."})");
  }
  if (endpoint.table) {
    constexpr std::string_view kCursor =
        R"({"type":"string","description":"Cursor of this neighbouring page, if there is one."})";
    json.raw_member("next", kCursor).raw_member("previous", kCursor);
  }
  if (endpoint.by_cluster) {
    json.key("missing");
    add_reference(json, "schemas", "MissingClusters");
  }
  if (endpoint.login) {  // with `anonymous`, for a caller without identity
    json.key("login");
    add_reference(json, "schemas", "Login");
  }
  json.end_object().end_object();
  json.key("example").begin_object().member("status", "success");
  const std::string example =
      data.fields.empty() ? std::string(data.example) : row_example(data.fields);
  json.raw_member("data", data.name.empty() ? "null" : data.one ? example : "[" + example + "]");
  json.end_object().end_object().end_object().end_object();
}

bool checks_params(const Endpoint& endpoint) {
  return std::ranges::any_of(params_of(endpoint), [&endpoint](const ParamInfo* info) {
    return endpoint.required.contains(info->param) ||
           (info->type != ParamType::kTexts && info->type != ParamType::kText &&
            info->type != ParamType::kFlag);
  });
}

std::set<ApiErrorType> errors_of(const Endpoint& endpoint) {
  std::set<ApiErrorType> types(endpoint.refusals.begin(), endpoint.refusals.end());
  if (checks_params(endpoint)) {
    types.insert(ApiErrorType::kBadData);
  }
  if (endpoint.caller != Caller::kAnyone) {
    types.insert({ApiErrorType::kUnauthorized, ApiErrorType::kInternal, ApiErrorType::kTimeout});
  }
  if (endpoint.caller == Caller::kAdmin) {
    types.insert(ApiErrorType::kForbidden);
  }
  return types;
}

void add_reference_to(JsonWriter& json, std::string_view status, std::string_view response) {
  json.key(status);
  add_reference(json, "responses", response);
}

/// "units" of "units/admin".
std::string_view tag_of_path(std::string_view path) {
  return path.substr(0, path.find('/'));
}

std::string operation_id(const Endpoint& endpoint) {
  std::string id = to_lower(endpoint.method()) + "_";
  id += endpoint.path;
  std::ranges::replace(id, '/', '_');
  return id;
}

void add_endpoint(JsonWriter& json, const Endpoint& endpoint) {
  json.key(to_lower(endpoint.method()))
      .begin_object()
      .member("operationId", operation_id(endpoint));
  json.key("tags").begin_array().value(tag_of_path(endpoint.path)).end_array();
  json.member("summary", endpoint.summary);
  if (endpoint.caller == Caller::kAdmin) {
    json.member("description", "For administrators.");
  }
  if (endpoint.caller == Caller::kAnyone) {
    json.raw_member("security", "[]");
  }
  json.key("parameters").begin_array();
  for (const ParamInfo* info : params_of(endpoint)) {
    add_param(json, endpoint, *info);
  }
  json.end_array();
  if (!endpoint.body.name.empty()) {
    json.key("requestBody").begin_object().member("required", true);
    json.key("content").begin_object().key("application/json").begin_object().key("schema");
    add_reference(json, "schemas", endpoint.body.name);
    json.raw_member("example", endpoint.body.example).end_object().end_object().end_object();
  }
  json.key("responses").begin_object();
  add_success(json, endpoint);
  if (endpoint.tagged) {
    add_reference_to(json, "304", "NotModified");
  }
  for (const ApiErrorType type : errors_of(endpoint)) {
    const ApiErrorInfo& error = all_errors()[static_cast<std::size_t>(type)];
    add_reference_to(json, std::to_string(error.status), error.word);
  }
  add_reference_to(json, "429", "TooManyRequests");
  json.end_object().end_object();
}

/// The preflight of all endpoints at a path, of which this one is the first.
void add_preflight(JsonWriter& json, const Endpoint& endpoint) {
  json.key("options").begin_object().member("operationId", "preflight_" + operation_id(endpoint));
  json.key("tags").begin_array().value(tag_of_path(endpoint.path)).end_array();
  json.member("summary", "Preflight of a cross-origin request.").raw_member("security", "[]");
  json.key("responses").begin_object();
  add_reference_to(json, "200", "Preflight");
  add_reference_to(json, "429", "TooManyRequests");
  json.end_object().end_object();
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
  ways.begin_object().raw_member("token", "[]").end_object();
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

std::string example_cursor(const Endpoint& endpoint) {
  return cursor_text(endpoint.path, std::vector<std::string>(endpoint.page_key, "hpc-a"));
}

std::vector<const ParamInfo*> params_of(const Endpoint& endpoint) {
  std::vector<const ParamInfo*> taken;
  for (const ParamInfo& info : all_params()) {
    if (endpoint.params.contains(info.param)) {
      taken.push_back(&info);
    }
  }
  return taken;
}

std::string server_root(const DocumentOptions& options) {
  std::string root = options.external_url;
  while (root.ends_with('/')) {
    root.pop_back();
  }
  const std::size_t host = root.find("://");
  // An external URL with a path is complete. Without a path, the route prefix follows the host.
  const bool has_path = host != std::string::npos && root.find('/', host + 3) != std::string::npos;
  return has_path ? root : root + options.route_prefix;
}

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
      {"page_headers", header_references(joined(server, {"ETag", "Content-Security-Policy",
                                                         "Referrer-Policy", "X-Frame-Options"}))},
      {"api_headers", header_references(api_headers())},
      {"not_modified_headers", header_references(joined(api_headers(), {"ETag"}))},
      {"preflight_headers", header_references(joined(common_headers(), cors_headers()))},
      {"too_many_headers", header_references(joined(common_headers(), {"Retry-After"}))},
  };
  JsonWriter paths(data.texts["endpoints"]);
  std::string_view path;
  for (const Endpoint& endpoint : all_endpoints()) {
    if (endpoint.path != path) {
      if (!path.empty()) {
        paths.end_object();
      }
      path = endpoint.path;
      paths.key(fmt::format("/{}", path)).begin_object();
      add_preflight(paths, endpoint);
    }
    add_endpoint(paths, endpoint);
  }
  paths.end_object();
  data.texts["schemas"] = data_schemas();
  add_errors(data);
  add_user_headers(options, data);
  return render_template(kOpenapiJson, data) + "\n";
}

Document::Document(DocumentOptions options) : options_(std::move(options)) {}

const Document::Texts& Document::texts() const {
  std::call_once(made_, [this] {
    texts_.json = {.text = openapi_json(options_), .content_type = "application/json"};
    texts_.page = {.text = openapi_page(options_, texts_.json.text),
                   .content_type = "text/html; charset=utf-8",
                   .forms = true};
    texts_.style = {.text = std::string(kDocsCss), .content_type = "text/css; charset=utf-8"};
  });
  return texts_;
}

void Document::answer_json(const net::Request& request, net::Response& response) const {
  answer_static(texts().json, request, response);
}
void Document::answer_page(const net::Request& request, net::Response& response) const {
  answer_static(texts().page, request, response);
}
void Document::answer_style(const net::Request& request, net::Response& response) const {
  answer_static(texts().style, request, response);
}

}  // namespace ceems::api
