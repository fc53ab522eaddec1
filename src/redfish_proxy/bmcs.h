#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/recent_map.h"
#include "base/result.h"
#include "net/client/client.h"
#include "net/relay/upstream.h"
#include "redfish_proxy/address_rules.h"
#include "redfish_proxy/config.h"

namespace ceems::redfish_proxy {

/// A BMC to which a request may be sent.
struct Bmc {
  BmcUrl url;
  std::shared_ptr<net::Upstream> upstream;
  bool configured = false;  ///< false: a client has named it, so it gets no credentials of ours
  bool own = false;         ///< of the node that asks
};

/// The BMCs of one configuration. There may be several thousand, of which only those in use occupy
/// connections and TLS contexts. Safe for concurrent use.
class Bmcs {
 public:
  /// Checks the TLS options of all targets. kInvalidArgument names the target and the file.
  /// `lookup` finds the addresses of names.
  static Result<std::unique_ptr<Bmcs>> create(const Config& config,
                                              net::Lookup lookup = net::look_up);

  /// The target of the node with this address, which is in its canonical form. kNotFound if there
  /// is none.
  Result<Bmc> of_node(std::string_view address);
  /// The BMC that a client has named. kPermissionDenied if the configuration does not allow it.
  /// `loopback` tells whether the client is on this machine; other clients cannot name servers on
  /// the loopback interface.
  Result<Bmc> named(const BmcUrl& url, bool loopback);

  [[nodiscard]] std::size_t targets() const { return targets_.size(); }

 private:
  using Upstreams = RecentMap<std::shared_ptr<net::Upstream>>;
  /// Upstreams that are kept. Each has a TLS context and a few connections.
  static constexpr std::size_t kMaxOfTargets = 8192;
  static constexpr std::size_t kMaxNamed = 1024;
  static constexpr std::size_t kMaxKeyBytes = 512;

  Bmcs(const Config& config, net::Lookup lookup);
  [[nodiscard]] Result<std::shared_ptr<net::Upstream>> make_upstream(const BmcUrl& url,
                                                                     const net::TlsOptions& tls,
                                                                     net::Lookup lookup) const;
  Result<Bmc> of_target(std::size_t index);

  std::vector<TargetConfig> targets_;
  std::vector<AllowedTarget> allowed_;
  bool follows_all_;
  net::TlsOptions tls_;
  std::chrono::milliseconds timeout_;
  net::Lookup lookup_;
  std::unordered_map<std::string, std::size_t> by_address_;
  std::unordered_map<std::string, std::size_t> by_origin_;
  Upstreams of_targets_{kMaxOfTargets, kMaxKeyBytes};
  Upstreams named_{kMaxNamed, kMaxKeyBytes};
};

}  // namespace ceems::redfish_proxy
