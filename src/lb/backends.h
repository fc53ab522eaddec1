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
  /// Fields of the configuration, credentials among them, where no file and no other server has to
  /// be asked for them each time.
  std::optional<net::Headers> own_headers;
  std::string url;        ///< without user and password
  std::string origin;     ///< what its own paths are asked below: "http://host:port"
  std::string base_path;  ///< no '/' at its end
  std::string base_query;
  std::vector<std::string> filter_labels;
};

/// The servers of one cluster and one kind. Safe for concurrent use.
class Pool {
 public:
  Pool(Strategy strategy, std::vector<Backend> backends)
      : strategy_(strategy), backends_(std::move(backends)) {}

  /// Live servers in the order in which they should be tried, at most two: a request that went
  /// wrong twice is not worth a third server.
  [[nodiscard]] std::vector<const Backend*> choose() const;
  [[nodiscard]] const std::vector<Backend>& backends() const { return backends_; }
  /// True where attempt_for() waits for nothing.
  [[nodiscard]] bool asked_at_once() const;

 private:
  Strategy strategy_;
  std::vector<Backend> backends_;
  mutable std::atomic<std::size_t> turn_ = 0;
};

/// Asks the server for its state; any answer will do. False when none comes in 10 s.
bool answers_at_all(const Backend& backend);

/// All pools of one kind by cluster.
class Backends {
 public:
  /// Servers that cannot be used (URL, TLS files) are errors of the configuration. What `before`
  /// knows stays known; it may be null: a server of the same cluster with the same options is gone
  /// on with, requests under way included; of others at the same place the addresses and whether
  /// they are alive.
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

/// What the client sent, made ready for one server: path below the server's own, hop fields gone,
/// credentials of the configuration instead of the client's. Errors: a secret that cannot be read.
Result<net::Relay::Attempt> attempt_for(const Backend& backend,
                                        const net::Request& request,
                                        const gate::Decision& decision);

}  // namespace ceems::lb
