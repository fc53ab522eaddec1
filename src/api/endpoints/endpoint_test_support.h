#pragma once

// Endpoints without the server around them, for tests. How a request gets there is in
// server_test.cc and access_matrix_test.cc, which look at every endpoint of all.h.

#include <string>

#include "access/policy.h"
#include "api/endpoints/endpoint.h"
#include "api/server_test_support.h"

namespace ceems::api {

/// The database of ServerTest, with what handlers need.
class EndpointTest : public ServerTest {
 protected:
  /// What the endpoint answers to the user. `query` is that of the address.
  net::Response answer(const Endpoint& endpoint,
                       const std::string& query,
                       const std::string& user = "ada") {
    const Services services{.reader = &db_->reader(),
                            .series = &series_,
                            .tags = &tags_,
                            .usage_cache = &usage_cache_,
                            .metrics = &request_metrics_,
                            .site = &site_,
                            .clock = &clock_};
    const auto request = request_for("GET", fmt::format("/api/v1/{}?{}", endpoint.path, query));
    net::Response response;
    Call call{.request = &request,
              .response = &response,
              .route = endpoint.path,
              .params = parse_params(query, endpoint.params),
              .identity = access::identify(db_->reader(), {}, user).value(),
              .streams = &streams_,
              .admin_route = endpoint.caller == Caller::kAdmin};
    endpoint.handler(services, call);
    read_whole(response);
    return response;
  }

  SiteOptions site_;

 private:
  EntityTags tags_;
  UsageCache usage_cache_;
  StreamSlots streams_;
  metrics::Registry own_registry_{"ceems_api_server", "the API server"};
  RequestMetrics request_metrics_{own_registry_, {"other"}, clock_};
};

}  // namespace ceems::api
