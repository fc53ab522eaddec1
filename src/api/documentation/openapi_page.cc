// The description of the API for people: a page without scripts.
#include <utility>

#include <boost/json.hpp>

#include "api/answer/envelope.h"
#include "api/documentation/openapi.h"
#include "api/documentation/texts.h"
#include "api/endpoints/endpoint.h"
#include "base/strings.h"
#include "base/text/html.h"
#include "base/text/template.h"
#include "base/version.h"

namespace ceems::api {
namespace {

namespace json = boost::json;

/// Converts text with `code` in Markdown to HTML.
std::string prose(std::string_view text) {
  std::string out;
  bool code = false;
  for (std::size_t at = text.find('`'); at != std::string_view::npos; at = text.find('`')) {
    out += escape_html(text.substr(0, at));
    out += code ? "</code>" : "<code>";
    code = !code;
    text.remove_prefix(at + 1);
  }
  return out + escape_html(text);
}

std::string id_of(std::string_view path) {
  std::string id(path);
  for (char& c : id) {
    c = c == '/' ? '-' : c;
  }
  return id;
}

std::string_view caller_text(Caller caller) {
  switch (caller) {
    case Caller::kAdmin:
      return "For administrators.";
    case Caller::kUser:
      return "For users.";
    case Caller::kAnyone:
      break;
  }
  return "For anyone.";
}

TemplateData param_data(const Endpoint& endpoint, const ParamInfo& info) {
  const bool number = info.type == ParamType::kSeconds || info.type == ParamType::kCount;
  return {.texts = {{"name", std::string(info.name)},
                    {"help", prose(info.help)},
                    {"required", endpoint.required.contains(info.param) ? "yes" : ""},
                    {"flag", info.type == ParamType::kFlag ? "yes" : ""},
                    {"number", number ? "yes" : ""}}};
}

TemplateData endpoint_data(const Endpoint& endpoint) {
  std::string id = id_of(endpoint.path);
  if (endpoint.method() != "GET" && find_endpoint(endpoint.path, "GET") != nullptr) {
    id += "-" + to_lower(endpoint.method());
  }
  TemplateData data{.texts = {{"id", std::move(id)},
                              {"path", std::string(endpoint.path)},
                              {"method", std::string(endpoint.method())},
                              {"form", endpoint.method() == "GET" ? "yes" : ""},
                              {"summary", prose(endpoint.summary)},
                              {"caller", std::string(caller_text(endpoint.caller))}}};
  auto& params = data.lists["params"];
  for (const ParamInfo* info : params_of(endpoint)) {
    params.push_back(param_data(endpoint, *info));
  }
  auto& fields = data.lists["fields"];
  for (const store::Field& field : endpoint.data.fields) {
    fields.push_back({.texts = {{"name", std::string(field.name)},
                                {"help", prose(field.help)},
                                {"example", std::string(field.example)}}});
  }
  data.texts["has_params"] = params.empty() ? "" : "yes";
  data.texts["has_fields"] = fields.empty() ? "" : "yes";
  return data;
}

std::vector<TemplateData> headers_data(std::string_view document) {
  std::vector<TemplateData> headers;
  const json::value root = json::parse(document);
  for (const auto& [name, header] : root.at_pointer("/components/headers").as_object()) {
    headers.push_back({.texts = {{"name", std::string(name)},
                                 {"help", prose(header.at("description").as_string())}}});
  }
  return headers;
}

}  // namespace

std::string openapi_page(const DocumentOptions& options, std::string_view document) {
  TemplateData data{
      .texts = {{"version", std::string(version().version)}, {"root", server_root(options)}}};
  auto& user_headers = data.lists["user_headers"];
  for (const std::string& name : options.user_headers) {
    user_headers.push_back(
        {.texts = {{"name", name}, {"separator", user_headers.empty() ? "" : ", "}}});
  }
  auto& routes = data.lists["routes"];
  for (const Endpoint& endpoint : all_endpoints()) {
    routes.push_back(endpoint_data(endpoint));
  }
  auto& errors = data.lists["errors"];
  for (const ApiErrorInfo& error : all_errors()) {
    errors.push_back({.texts = {{"word", std::string(error.word)},
                                {"status", std::to_string(error.status)},
                                {"when", prose(error.when)}}});
  }
  data.lists["headers"] = headers_data(document);
  return render_template(kDocsHtml, data);
}

}  // namespace ceems::api
