#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "config/yaml.h"
#include "net/cidr.h"
#include "net/client/client.h"
#include "redfish_proxy/address_rules.h"
#include "redfish_proxy/bmc_url.h"
#include "redfish_proxy/policy.h"

namespace ceems::redfish_proxy {

/// `targets[]`: the BMC of a node.
struct TargetConfig {
  BmcUrl url;
  std::vector<std::string> addresses;  ///< of the node, in their canonical form
  std::optional<net::TlsOptions> tls;  ///< instead of those for all targets
};

/// The configuration of redfish_proxy (docs/redfish-proxy.md).
struct Config {
  std::vector<TargetConfig> targets = {};
  std::vector<AllowedTarget> allowed_targets = {};
  std::shared_ptr<const ResourcePolicy> policy = {};  ///< never null after parse_config()
  std::vector<std::string> allowed_query_options = {"$select"};
  /// The peers whose X-Real-IP counts.
  net::TrustedPeers trusted_proxies = {};
  std::chrono::milliseconds remember{std::chrono::hours(1)};
  std::chrono::milliseconds timeout{std::chrono::seconds(30)};
  std::int64_t max_requests_per_client = 64;       ///< under way
  std::int64_t max_request_rate_per_client = 100;  ///< in a second; 0: no limit
  net::ClientOptions client = {};                  ///< towards the targets

  /// Whether any client may name any BMC.
  [[nodiscard]] bool follows_all_headers() const {
    return targets.empty() && allowed_targets.empty();
  }
};

/// Reads the document, which may be absent. Sections of other programs are not checked. Relative
/// file names are relative to `directory`. Warns of deprecated keys in the log. All errors are
/// kInvalidArgument.
Result<Config> parse_config(const config::Node& document, const std::string& directory);

}  // namespace ceems::redfish_proxy
