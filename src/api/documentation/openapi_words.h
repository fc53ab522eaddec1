#pragma once

// Internal to the OpenAPI document and its page: what only people need to know.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/documentation/openapi.h"
#include "api/params.h"
#include "api/routes.h"

namespace ceems::api {

/// A header of answers.
struct HeaderWords {
  std::string_view name;
  std::string_view help;
  std::string_view example;
};
/// All headers that answers may have, but Date, Content-Type, Content-Length, Transfer-Encoding and
/// Connection, which belong to HTTP.
std::span<const HeaderWords> all_headers();

/// "units" of "units/admin".
std::string_view tag_of_path(std::string_view path);
struct TagWords {
  std::string_view name;
  std::string_view help;
};
std::span<const TagWords> all_tags();

/// A way to ask one of the pages to log in and out, as JSON. Those of a path follow each other.
struct LoginOperation {
  std::string_view path;
  std::string_view method;
  std::string_view json;
};
std::span<const LoginOperation> login_operations();
/// What they refer to: answers, which are refusals where there is no JSON, and the parameter Next.
struct LoginResponse {
  std::string_view name;
  std::string_view when;
  std::string_view json = {};
};
std::span<const LoginResponse> login_responses();
std::string_view login_next_parameter();

/// A cursor of the route, for examples.
std::string example_cursor(const Route& route);

/// The parameters that the route takes, in the order of all_params().
std::vector<const ParamInfo*> params_of(const Route& route);
/// True when requests without the parameter are refused.
bool is_required(const Route& route, Param param);

/// What stands before "/api/v1" and "/health": "https://ceems.example", "/prefix" or nothing.
std::string server_root(const DocumentOptions& options);

}  // namespace ceems::api
