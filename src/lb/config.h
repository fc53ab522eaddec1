#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "audit/config.h"
#include "base/result.h"
#include "config/name_map.h"
#include "config/yaml.h"
#include "gate/tsdb_request.h"
#include "net/client/client.h"

namespace ceems::lb {

enum class Strategy : std::uint8_t { kRoundRobin, kLeastConnection };

/// One server behind the load balancer.
struct ServerConfig {
  std::string url;
  net::ClientOptions client = {};
  /// For TSDBs only. It is the same for all servers of a cluster.
  gate::TsdbServer kind = gate::TsdbServer::kPrometheus;
  /// Labels to remove from answers; for TSDBs only. They are the same for all servers of a cluster.
  std::vector<std::string> filter_labels = {};
};

/// `ceems_lb.backends[]`: the servers of one cluster.
struct ClusterConfig {
  std::string id;
  std::vector<ServerConfig> tsdb = {};
  std::vector<ServerConfig> profiles = {};
};

/// `ceems_lb.access` (docs/lb/access.md). The reference does not have it.
struct AccessConfig {
  bool confine = false;
  bool pin_cluster = false;
  bool lifetimes = false;
  bool editors = false;
  std::vector<std::string> path_prefixes = {};
  std::optional<std::set<std::string, std::less<>>> shared_metrics = {};
  bool experimental = true;  ///< allows what is behind a feature flag of Prometheus
  std::chrono::milliseconds cache_age{15000};
};

/// `ceems_api_server.identity.service_account`: how this program proves to the API server that it
/// is the service account. Without either, a header with the name of the account has to do.
struct ServiceAccount {
  std::string token_file = {};
  std::string web_user = {};  ///< of the API server's web configuration, as in web.basic_auth

  [[nodiscard]] bool configured() const { return !token_file.empty() || !web_user.empty(); }
};

/// The configuration file of ceems_lb (docs/lb/configuration.md).
struct Config {
  Strategy strategy = Strategy::kRoundRobin;
  std::vector<ClusterConfig> clusters = {};
  AccessConfig access = {};
  audit::Options audit = {};
  std::string api_url = {};  ///< of the API server; empty: none
  net::ClientOptions api_client = {};
  ServiceAccount service_account = {};
  config::NameMap names = {};                 ///< of the header that names the user
  std::optional<std::string> data_path = {};  ///< directory of ceems.db
  std::string database_url = {};              ///< of PostgreSQL; empty: none
  std::string database_password_file = {};

  /// Whether a source of unit owners is configured. Without one, every request passes.
  [[nodiscard]] bool has_owners() const {
    return !api_url.empty() || data_path.has_value() || !database_url.empty();
  }
};

/// Reads the document. An unknown key below `ceems_lb` is an error that names the line and the
/// nearest known key. Sections of other programs are not checked. Relative file names are relative
/// to `directory`. All errors are kInvalidArgument.
Result<Config> parse_config(const config::Node& document, const std::string& directory);

}  // namespace ceems::lb
