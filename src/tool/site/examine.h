#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "net/client/client.h"
#include "tool/site/finding.h"
#include "tsdb/client.h"

namespace ceems::tool {

/// What `check site` looks at. Nothing is changed anywhere.
struct SiteContext {
  tsdb::Client* tsdb = nullptr;
  /// For requests without passwords, as a stranger would send them. Null: none are sent.
  net::Client* stranger = nullptr;
  /// For requests to the API server and to the load balancer, with their passwords.
  net::Client* api = nullptr;
  net::Client* lb = nullptr;
  std::string tsdb_url;
  std::string api_url;             ///< empty: not examined
  std::string api_user = {};       ///< an admin; empty: the energies of units are not compared
  std::string lb_url;              ///< empty: not examined
  std::string lb_cluster = {};     ///< X-Ceems-Cluster-Id of requests through it
  std::size_t max_exporters = 20;  ///< that are asked without a password
  std::int64_t now_ms = 0;
};

/// Examines Prometheus, the exporters that it scrapes, their data, the API server and the load
/// balancer. A server that does not answer is a finding, not an error.
std::vector<Finding> examine_site(const SiteContext& context);

}  // namespace ceems::tool
