#include "api/documentation/openapi.h"

#include <algorithm>
#include <set>

#include <boost/json.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/answer/envelope.h"
#include "api/documentation/texts.h"
#include "api/endpoints/endpoint.h"
#include "api/request/paging.h"
#include "base/strings.h"

namespace ceems::api {
namespace {

namespace json = boost::json;
using ::testing::HasSubstr;
using ::testing::Not;

const DocumentOptions kOptions{.user_headers = {"X-Grafana-User", "X-Other"}};

json::object document(const DocumentOptions& options = kOptions) {
  return json::parse(openapi_json(options)).as_object();
}

/// Follows "#/a/b".
json::value resolve(const json::object& root, const json::value& value) {
  const auto* object = value.if_object();
  if (object == nullptr || !object->contains("$ref")) {
    return value;
  }
  const std::string reference(object->at("$ref").as_string());
  return root.at("components").at_pointer(reference.substr(std::string("#/components").size()));
}

bool has_type(const json::value& value, std::string_view type) {
  return (type == "object" && value.is_object()) || (type == "array" && value.is_array()) ||
         (type == "string" && value.is_string()) || (type == "null" && value.is_null()) ||
         (type == "boolean" && value.is_bool()) || (type == "number" && value.is_number()) ||
         (type == "integer" && (value.is_int64() || value.is_uint64()));
}

bool contains(const json::array& values, const json::value& value) {
  return std::ranges::find(values, value) != values.end();
}

/// Why `value` is not as `schema` wants it; empty when it is. The keywords that the document uses.
std::string complaint(const json::object& root,
                      const json::value& unresolved,
                      const json::value& value) {
  const json::object schema = resolve(root, unresolved).as_object();
  const std::string text = json::serialize(value);
  for (const auto& [key, rule] : schema) {
    static const std::set<std::string, std::less<>> kKnown{
        "type",     "required", "properties",  "additionalProperties",
        "items",    "enum",     "const",       "minimum",
        "maximum",  "pattern",  "description", "example",
        "minItems", "maxItems"};
    if (!kKnown.contains(std::string_view(key))) {
      return "unknown keyword " + std::string(key);
    }
    if (key == "type") {
      const auto* several = rule.if_array();
      const bool fits = several != nullptr
                            ? std::ranges::any_of(*several,
                                                  [&](const json::value& type) {
                                                    return has_type(value, type.as_string());
                                                  })
                            : has_type(value, rule.as_string());
      if (!fits) {
        return text + " is no " + json::serialize(rule);
      }
    } else if (key == "const" && rule != value) {
      return text + " is not " + json::serialize(rule);
    } else if (key == "enum" && !contains(rule.as_array(), value)) {
      return text + " is not in the list";
    } else if (key == "minimum" && value.as_int64() < rule.as_int64()) {
      return text + " is too small";
    } else if (key == "maximum" && value.as_int64() > rule.as_int64()) {
      return text + " is too great";
    } else if (key == "items" && value.is_array()) {
      for (const json::value& item : value.as_array()) {
        if (std::string why = complaint(root, rule, item); !why.empty()) {
          return why;
        }
      }
    } else if (key == "required" && value.is_object()) {
      for (const json::value& name : rule.as_array()) {
        if (!value.as_object().contains(name.as_string())) {
          return text + " lacks " + json::serialize(name);
        }
      }
    }
  }
  if (!value.is_object()) {
    return {};
  }
  const json::value* more = schema.if_contains("additionalProperties");
  const json::value* properties = schema.if_contains("properties");
  for (const auto& [name, member] : value.as_object()) {
    std::string why;
    if (properties != nullptr && properties->as_object().contains(name)) {
      why = complaint(root, properties->as_object().at(name), member);
    } else if (more != nullptr && more->is_object()) {
      why = complaint(root, *more, member);
    } else if (more != nullptr && !more->as_bool()) {
      why = "unknown member " + std::string(name);
    }
    if (!why.empty()) {
      return why;
    }
  }
  return {};
}

TEST(OpenApi, HasEveryRouteAndNoOther) {
  const json::object root = document();
  EXPECT_EQ(root.at("openapi").as_string(), "3.1.0");
  std::set<std::string> paths;
  for (const auto& [path, item] : root.at("paths").as_object()) {
    if (!item.as_object().contains("servers")) {
      paths.emplace(path);
    }
  }
  std::set<std::string> routes;
  for (const Endpoint& endpoint : all_endpoints()) {
    routes.insert("/" + std::string(endpoint.path));
    EXPECT_FALSE(endpoint.summary.empty()) << endpoint.path;
  }
  EXPECT_EQ(paths, routes);
  for (const char* path : {"/health", "/metrics", "/openapi.json", "/swagger/doc.json",
                           "/login/oidc", "/login/callback"}) {
    EXPECT_TRUE(root.at("paths").as_object().contains(path)) << path;
  }
}

TEST(OpenApi, HasEveryParameterOfEveryRouteWithAValidExample) {
  const json::object root = document();
  std::set<std::string_view> seen;
  for (const Endpoint& endpoint : all_endpoints()) {
    const auto& operation = root.at("paths")
                                .as_object()
                                .at("/" + std::string(endpoint.path))
                                .at(to_lower(endpoint.method()));
    if (const json::value* body = operation.as_object().if_contains("requestBody")) {
      const json::value& media = body->at("content").at("application/json");
      EXPECT_EQ(complaint(root, media.at("schema"), media.at("example")), "") << endpoint.path;
    }
    std::set<std::string> names;
    for (const json::value& param : operation.at("parameters").as_array()) {
      names.emplace(param.at("name").as_string());
      EXPECT_EQ(complaint(root, param.at("schema"), param.at("example")), "")
          << endpoint.path << " " << param.at("name");
    }
    for (const ParamInfo& info : all_params()) {
      EXPECT_EQ(names.contains(std::string(info.name)), endpoint.params.contains(info.param))
          << endpoint.path << " " << info.name;
      if (endpoint.params.contains(info.param)) {
        seen.insert(info.name);
      }
    }
  }
  EXPECT_EQ(seen.size(), all_params().size());  // no parameter without a route
}

TEST(OpenApi, ParametersAreReadByTheNamesTheyAreDescribedWith) {
  std::string query;
  for (const ParamInfo& info : all_params()) {
    query += fmt::format("&{}={}", info.name, info.example.empty() ? "x" : info.example);
  }
  const Params all = parse_params(query);
  EXPECT_EQ(all.clusters.size() + all.projects.size() + all.users.size() + all.uuids.size() +
                all.fields.size() + all.group_by.size(),
            6U);
  for (const std::string* text :
       {&all.from, &all.to, &all.time_zone, &all.role, &all.limit, &all.cursor}) {
    EXPECT_NE(*text, "");
  }
  EXPECT_TRUE(all.running && all.experimental && all.terminated);
  const Params none = parse_params(query, ParamSet());
  EXPECT_TRUE(none.clusters.empty() && none.from.empty() && none.cursor.empty() && !none.running);
}

TEST(OpenApi, ExamplesOfCursorsAreCursorsOfTheirRoute) {
  for (const Endpoint& endpoint : all_endpoints()) {
    if (endpoint.page_key > 0) {
      Params params;
      params.cursor = example_cursor(endpoint);
      EXPECT_TRUE(parse_page(params, endpoint.path, endpoint.page_key)) << endpoint.path;
    }
    const bool pages = endpoint.page_key > 0 || endpoint.table;
    EXPECT_EQ(pages, endpoint.params.contains(Param::kCursor)) << endpoint.path;
    EXPECT_EQ(pages, endpoint.params.contains(Param::kLimit)) << endpoint.path;
    EXPECT_EQ(endpoint.window != WindowKind::kNone, endpoint.params.contains(Param::kFrom))
        << endpoint.path;
  }
}

TEST(OpenApi, ExamplesOfAnswersAreValid) {
  const json::object root = document();
  int examples = 0;
  const auto check = [&](const json::value& content) {
    for (const auto& [type, media] : content.as_object()) {
      if (const json::value* example = media.as_object().if_contains("example")) {
        EXPECT_EQ(complaint(root, media.at("schema"), *example), "");
        ++examples;
      }
    }
  };
  for (const auto& [path, item] : root.at("paths").as_object()) {
    for (const auto& [method, operation] : item.as_object()) {
      if (method == "servers") {
        continue;
      }
      for (const auto& [status, answer] : operation.at("responses").as_object()) {
        const json::object object = resolve(root, answer).as_object();
        EXPECT_TRUE(object.contains("description")) << path << status;
        if (const json::value* content = object.if_contains("content")) {
          check(*content);
        }
      }
    }
  }
  EXPECT_GT(examples, static_cast<int>(all_endpoints().size()));
  for (const auto& [name, schema] : root.at("components").at("schemas").as_object()) {
    if (const json::value* example = schema.as_object().if_contains("example")) {
      EXPECT_EQ(complaint(root, schema, *example), "") << name;
    }
  }
}

TEST(OpenApi, TheCheckOfExamplesFindsErrors) {
  const json::object root = document();
  const json::value unit = json::parse(R"({"$ref":"#/components/schemas/Unit"})");
  EXPECT_EQ(complaint(root, unit, json::parse(R"({"uuid":"1"})")), "");
  EXPECT_THAT(complaint(root, unit, json::parse("{}")), HasSubstr("lacks"));
  EXPECT_THAT(complaint(root, unit, json::parse(R"({"uuid":1})")), HasSubstr("is no"));
  EXPECT_THAT(complaint(root, unit, json::parse(R"({"uuid":"","x":1})")), HasSubstr("unknown"));
  EXPECT_THAT(complaint(root, unit, json::parse(R"({"uuid":"","avg_cpu_usage":{"a":"b"}})")),
              HasSubstr("is no"));
}

TEST(OpenApi, EveryFieldErrorAndHeaderIsDescribed) {
  const std::string text = openapi_json(kOptions);
  for (const Endpoint& endpoint : all_endpoints()) {
    for (const store::Field& field : endpoint.data.fields) {
      EXPECT_FALSE(field.help.empty() || field.example.empty()) << field.name;
    }
  }
  const json::object root = document();
  std::set<std::string> types;
  for (const json::value& type : root.at("components")
                                     .at("schemas")
                                     .at("Error")
                                     .at("properties")
                                     .at("errorType")
                                     .at("enum")
                                     .as_array()) {
    types.emplace(type.as_string());
  }
  for (const ApiErrorInfo& error : all_errors()) {
    EXPECT_TRUE(types.contains(std::string(error.word)));
    EXPECT_EQ(&error - all_errors().data(), static_cast<std::ptrdiff_t>(error.type));
  }
  for (const auto& [name, header] : root.at("components").at("headers").as_object()) {
    EXPECT_THAT(text, HasSubstr(fmt::format("#/components/headers/{}\"", name)));
  }
}

TEST(OpenApi, EveryReferenceLeadsSomewhere) {
  const std::string text = openapi_json(kOptions);
  const json::object root = document();
  int count = 0;
  constexpr std::string_view kKey = "\"$ref\"";
  for (std::size_t at = text.find(kKey); at != std::string::npos; at = text.find(kKey, at + 1)) {
    const std::size_t begin = text.find('"', at + kKey.size()) + 1;
    const std::string reference = text.substr(begin, text.find('"', begin) - begin);
    EXPECT_NO_THROW(resolve(root, json::object{{"$ref", reference}})) << reference;
    ++count;
  }
  EXPECT_GT(count, 100);
}

TEST(OpenApi, NamesTheAddressOfTheServer) {
  const auto server = [](const std::string& prefix, const std::string& external) {
    const auto root = document({.route_prefix = prefix, .external_url = external});
    return std::string(root.at("servers").as_array().at(0).at("url").as_string());
  };
  EXPECT_EQ(server("", ""), "/api/v1");
  EXPECT_EQ(server("/ceems", ""), "/ceems/api/v1");
  EXPECT_EQ(server("/ceems", "https://x.example"), "https://x.example/ceems/api/v1");
  EXPECT_EQ(server("/ceems", "https://x.example/"), "https://x.example/ceems/api/v1");
  EXPECT_EQ(server("/ceems", "https://x.example/jobs/"), "https://x.example/jobs/api/v1");
}

TEST(OpenApi, DescribesLoginsOutsideOfTheApi) {
  const json::object root = document({.route_prefix = "/ceems"});
  const json::object& paths = root.at("paths").as_object();
  EXPECT_EQ(paths.at("/login").at("servers").at(0).at("url").as_string(), "/ceems");
  EXPECT_TRUE(paths.at("/login").as_object().contains("get"));
  EXPECT_TRUE(paths.at("/login").as_object().contains("post"));
  EXPECT_FALSE(paths.at("/logout").as_object().contains("get"));
  const json::value& form = paths.at("/login")
                                .at("post")
                                .at("requestBody")
                                .at("content")
                                .at("application/x-www-form-urlencoded");
  EXPECT_EQ(
      complaint(root, form.at("schema"), json::parse(R"({"user":"a","password":"b","token":"c"})")),
      "");
  EXPECT_THAT(complaint(root, form.at("schema"), json::parse(R"({"user":"a"})")),
              HasSubstr("lacks"));
}

TEST(OpenApi, NamesTheHeadersOfUsersAndBasicAuth) {
  const json::object root = document();
  const json::object& schemes = root.at("components").at("securitySchemes").as_object();
  EXPECT_EQ(schemes.at("user1").at("name").as_string(), "X-Other");
  EXPECT_EQ(schemes.at("basic").at("scheme").as_string(), "basic");
  EXPECT_TRUE(root.at("paths").at("/demo/units").at("get").at("security").as_array().empty());
}

TEST(OpenApiPage, HasAFormForEveryRouteWithALabelForEveryInput) {
  const std::string page = openapi_page({.user_headers = {"X-<User>"}}, openapi_json(kOptions));
  for (const Endpoint& endpoint : all_endpoints()) {
    const auto form = HasSubstr(fmt::format("action=\"../api/v1/{}\"", endpoint.path));
    if (endpoint.method() == "GET") {
      EXPECT_THAT(page, form);
    } else {
      if (find_endpoint(endpoint.path, "GET") == nullptr) {
        EXPECT_THAT(page, Not(form));
      }
      EXPECT_THAT(page, HasSubstr(fmt::format("{} /api/v1/{}", endpoint.method(), endpoint.path)));
    }
  }
  std::size_t inputs = 0;
  for (std::size_t at = page.find("<input"); at != std::string::npos;
       at = page.find("<input", at + 1)) {
    const std::size_t label = page.rfind("<label", at);
    ASSERT_NE(label, std::string::npos);
    EXPECT_EQ(page.substr(label, at - label).find("</label>"), std::string::npos);
    ++inputs;
  }
  EXPECT_GT(inputs, 80U);
  EXPECT_THAT(page, HasSubstr("X-&lt;User&gt;"));
  EXPECT_THAT(page, HasSubstr("<html lang=\"en\">"));
  // Nothing from elsewhere, nothing inline: the policy of the page forbids both.
  for (const char* forbidden : {"<script", "style=", "http://", "https://", " onclick", "<style"}) {
    EXPECT_THAT(page, Not(HasSubstr(forbidden)));
  }
  EXPECT_THAT(kDocsCss, Not(HasSubstr("url(")));
}

}  // namespace
}  // namespace ceems::api
