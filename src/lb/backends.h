#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gate/gate.h"
#include "lb/config.h"
#include "net/client/client.h"
#include "net/relay/relay.h"
#include "net/relay/upstream.h"

namespace ceems::lb {

/// One server and how to speak to it.
struct Backend {
  std::shared_ptr<net::Upstream> upstream;
  std::shared_ptr<net::Client> client;  ///< knows the credentials
  /// Header fields of the configuration, credentials among them. Null where they can change: where
  /// a file has to be read or a token fetched for them.
  std::optional<net::Headers> own_headers;
  std::string url;        ///< without user and password
  std::string origin;     ///< "http://host:port"
  std::string base_path;  ///< no '/' at its end
  std::string base_query;
  std::vector<std::string> filter_labels;
};

/// The servers of one cluster and one type. Safe for concurrent use.
class Pool {
 public:
  Pool(Strategy strategy, std::vector<Backend> backends)
      : strategy_(strategy), backends_(std::move(backends)) {}

  /// Live servers in the order in which the strategy tries them, at most two: a request that failed
  /// twice is not worth a third server.
  [[nodiscard]] std::vector<const Backend*> pick() const;
  [[nodiscard]] const std::vector<Backend>& backends() const { return backends_; }
  /// True where attempt_for() waits for nothing.
  [[nodiscard]] bool has_static_headers() const;

 private:
  Strategy strategy_;
  std::vector<Backend> backends_;
  mutable std::atomic<std::size_t> next_ = 0;  ///< of the round robin
};

/// Sends the server a request for its state and waits for any answer. False when none comes in 10
/// s.
bool responds(const Backend& backend);

/// All pools of one type by cluster.
class Backends {
 public:
  /// Servers that cannot be used (URL, TLS files) are errors of the configuration. `before`, which
  /// may be null, hands on what it knows: a server of the same cluster with the same options stays
  /// in use, requests under way included; one with other options at the same place keeps its
  /// addresses and its health.
  static Result<std::unique_ptr<Backends>> create(gate::BackendType type,
                                                  const Config& config,
                                                  const Backends* before = nullptr);

  /// Null for a cluster that has none.
  [[nodiscard]] const Pool* find(const std::string& cluster) const;
  [[nodiscard]] const std::map<std::string, Pool, std::less<>>& pools() const { return pools_; }
  [[nodiscard]] std::vector<std::string> clusters() const;

 private:
  std::map<std::string, Pool, std::less<>> pools_;
};

/// The request for one server: the path below the server's own, without fields of the client's
/// connection, with the configured credentials instead of the client's. Errors: a secret that
/// cannot be read.
Result<net::Relay::Attempt> attempt_for(const Backend& backend,
                                        const net::Request& request,
                                        const gate::Decision& decision);

}  // namespace ceems::lb
