#include "api/routes.h"

#include <array>

namespace ceems::api {
namespace {

constexpr std::array kRoutes = {
    Route{"clusters/admin", Caller::kAdmin, get_clusters},
    Route{"demo/units", Caller::kAnyone, get_demo_units},
    Route{"demo/usage", Caller::kAnyone, get_demo_usage},
    Route{"projects", Caller::kUser, get_projects},
    Route{"projects/admin", Caller::kAdmin, get_projects},
    Route{"stats/current/admin", Caller::kAdmin, get_current_stats},
    Route{"stats/global/admin", Caller::kAdmin, get_global_stats},
    Route{"units", Caller::kUser, get_units},
    Route{"units/admin", Caller::kAdmin, get_units},
    Route{"units/series", Caller::kUser, get_unit_series},
    Route{"units/verify", Caller::kUser, verify_units},
    Route{"usage/current", Caller::kUser, get_current_usage},
    Route{"usage/current/admin", Caller::kAdmin, get_current_usage},
    Route{"usage/global", Caller::kUser, get_global_usage},
    Route{"usage/global/admin", Caller::kAdmin, get_global_usage},
    Route{"users", Caller::kUser, get_users},
    Route{"users/admin", Caller::kAdmin, get_users},
    Route{"whoami", Caller::kUser, get_whoami},
};

}  // namespace

std::span<const Route> all_routes() {
  return kRoutes;
}

const Route* find_route(std::string_view path) {
  for (const Route& route : kRoutes) {
    if (route.path == path) {
      return &route;
    }
  }
  return nullptr;
}

}  // namespace ceems::api
