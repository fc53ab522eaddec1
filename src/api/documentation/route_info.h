#pragma once

// Internal to the OpenAPI document and its page: what both say about a route.

#include <string>
#include <string_view>
#include <vector>

#include "api/documentation/openapi.h"
#include "api/request/params.h"
#include "api/routes.h"

namespace ceems::api {

/// "units" of "units/admin".
std::string_view tag_of_path(std::string_view path);

/// A cursor of the route, for examples.
std::string example_cursor(const Route& route);

/// The parameters that the route takes, in the order of all_params().
std::vector<const ParamInfo*> params_of(const Route& route);
/// True if requests without the parameter are refused.
bool is_required(const Route& route, Param param);

/// The part of addresses before "/api/v1" and "/health": "https://ceems.example", "/prefix" or
/// empty.
std::string server_root(const DocumentOptions& options);

}  // namespace ceems::api
