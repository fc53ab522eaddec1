#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "config/yaml.h"
#include "net/client/client.h"

namespace ceems::lb {

enum class Strategy : std::uint8_t { kRoundRobin, kLeastConnection };

/// One server behind the load balancer.
struct ServerConfig {
  std::string url;
  net::ClientOptions client = {};
  /// Labels taken out of answers; of TSDBs only. The same for all servers of a cluster.
  std::vector<std::string> filter_labels = {};
};

/// `ceems_lb.backends[]`: the servers of one cluster.
struct ClusterConfig {
  std::string id;
  std::vector<ServerConfig> tsdb = {};
  std::vector<ServerConfig> profiles = {};
};

/// `ceems_lb.access`: an addition, see docs/lb/access.md.
struct AccessConfig {
  bool confine = false;
  bool pin_cluster = false;
  bool lifetimes = false;
  bool editors = false;
  std::vector<std::string> path_prefixes = {};
  std::optional<std::set<std::string, std::less<>>> shared_metrics = {};
  bool experimental = false;  ///< functions behind a switch in Prometheus
  std::chrono::milliseconds cache_age{15000};
};

/// The configuration file of ceems_lb (docs/lb/configuration.md).
struct Config {
  Strategy strategy = Strategy::kRoundRobin;
  std::vector<ClusterConfig> clusters = {};
  AccessConfig access = {};
  std::string api_url = {};  ///< of the API server; empty: none
  net::ClientOptions api_client = {};
  std::optional<std::string> data_path = {};  ///< directory of ceems.db
  std::string database_url = {};              ///< of PostgreSQL; empty: none
  std::string database_password_file = {};

  /// Is a source of unit owners configured? Without one every request passes.
  [[nodiscard]] bool has_owners() const {
    return !api_url.empty() || data_path.has_value() || !database_url.empty();
  }
};

/// Reads the document. Unknown keys below `ceems_lb` are errors with line and nearest known key;
/// sections of other programs are theirs to check. Relative file names are relative to
/// `directory`. Errors: kInvalidArgument.
Result<Config> parse_config(const config::Node& document, const std::string& directory);

}  // namespace ceems::lb
