#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "config/yaml.h"
#include "net/cidr.h"
#include "net/client/client.h"
#include "redfish_proxy/address_rules.h"

namespace ceems::redfish_proxy {

/// Which resources of a BMC may be requested, and with which methods. Safe for concurrent use.
class ResourcePolicy {
 public:
  /// Regular expressions (RE2) that are searched in the decoded path; one of them must match. An
  /// empty list means default_resources(). Returns kInvalidArgument for an invalid expression.
  static Result<std::shared_ptr<const ResourcePolicy>> create(
      const std::vector<std::string>& resources);

  enum class Verdict : std::uint8_t { kAllowed, kPathRefused, kMethodRefused };
  /// `path` is decoded and clean. All methods but GET and HEAD are refused, whatever the
  /// expressions allow, with two exceptions that are needed to log in and out: POST to a collection
  /// of sessions and DELETE of a session.
  [[nodiscard]] Verdict check(std::string_view method, std::string_view path) const;

  ~ResourcePolicy();
  ResourcePolicy(const ResourcePolicy&) = delete;
  ResourcePolicy& operator=(const ResourcePolicy&) = delete;

 private:
  struct Impl;
  explicit ResourcePolicy(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// The service root, sessions, chassis and their power (DSP0266, DSP2046).
std::vector<std::string> default_resources();

/// The methods that are allowed for some resource, for the header Allow.
inline constexpr std::string_view kMethods = "GET, HEAD, POST, DELETE";

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
