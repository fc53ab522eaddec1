#pragma once

#include <memory>
#include <string>
#include <vector>

#include "api/cors.h"
#include "api/handlers/handlers.h"
#include "api/login/sign_in.h"
#include "api/rate_limit.h"
#include "api/routes.h"
#include "api/series.h"
#include "api/usage_cache.h"
#include "base/clock.h"
#include "base/result.h"
#include "net/http.h"
#include "store/reader.h"

namespace ceems::api {

struct ApiOptions {
  std::string route_prefix = "/";
  std::string cors_origin = ".*";
  std::vector<std::string> user_headers = {"X-Grafana-User"};
  long max_requests = 0;  ///< a minute and client; 0: no limit
  std::vector<std::string> trusted_proxies = {};
  std::int64_t max_period_ms = 0;
};

/// The HTTP side: routing, identity, access and the endpoints of docs/api/endpoints.md, for
/// net::Server. Safe for concurrent use.
class ApiServer {
 public:
  /// `reader`, `series` (may be null) and `clock` must outlive the server. kInvalidArgument for a
  /// route prefix or an origin pattern that cannot be used.
  static Result<std::unique_ptr<ApiServer>> create(ApiOptions options,
                                                   store::Reader& reader,
                                                   SeriesSource* series,
                                                   const Clock& clock);
  void handle(const net::Request& request, net::Response& response);

 private:
  ApiServer(ApiOptions options,
            Cors cors,
            store::Reader& reader,
            SeriesSource* series,
            const Clock& clock);

  struct Target;
  [[nodiscard]] Target find_target(const net::Request& request) const;
  void call_route(const Route& route, const net::Request& request, net::Response& response);

  ApiOptions options_;
  Cors cors_;
  RateLimiter limiter_;
  UsageCache usage_cache_;
  Services services_;
};

}  // namespace ceems::api
