#include "api/documentation/route_info.h"

#include "api/request/paging.h"

namespace ceems::api {

std::string_view tag_of_path(std::string_view path) {
  return path.substr(0, path.find('/'));
}

std::string example_cursor(const Route& route) {
  return cursor_text(route.path, std::vector<std::string>(route.page_key, "hpc-a"));
}

std::vector<const ParamInfo*> params_of(const Route& route) {
  std::vector<const ParamInfo*> taken;
  for (const ParamInfo& info : all_params()) {
    if (route.params.contains(info.param)) {
      taken.push_back(&info);
    }
  }
  return taken;
}

bool is_required(const Route& route, Param param) {
  if (param == Param::kUuid) {
    return route.shape == Shape::kNothing || route.shape == Shape::kSeries ||
           route.shape == Shape::kReports;
  }
  return param == Param::kClusterId &&
         (route.shape == Shape::kSeries || route.shape == Shape::kReports);
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

}  // namespace ceems::api
