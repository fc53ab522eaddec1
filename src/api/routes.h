#pragma once

#include <span>
#include <string_view>

#include "api/handlers/handlers.h"

namespace ceems::api {

/// Who may call an endpoint. The zero value is the strictest.
enum class Caller { kAdmin, kUser, kAnyone };

/// One endpoint below {prefix}/api/v1/.
struct Route {
  std::string_view path;  ///< "units/admin"
  Caller caller = Caller::kAdmin;
  ApiHandler handler = nullptr;
};

/// All endpoints; tests walk them.
std::span<const Route> all_routes();

/// Exact match; null when there is none.
const Route* find_route(std::string_view path);

}  // namespace ceems::api
