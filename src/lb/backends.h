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
#include "lb/matcher_support.h"
#include "net/client/client.h"
#include "net/relay/upstream.h"

namespace ceems::lb {

/// One server and how to send requests to it.
struct Backend {
  std::shared_ptr<net::Upstream> upstream;
  std::shared_ptr<net::Client> client;  ///< has the credentials
  /// Header fields of the configuration, including credentials. Null if they can change, because a
  /// file must be read or a token fetched.
  std::optional<net::Headers> own_headers;
  std::string url;        ///< without user and password
  std::string origin;     ///< "http://host:port"
  std::string base_path;  ///< without '/' at its end
  std::string base_query;
  std::vector<std::string> filter_labels;
  std::shared_ptr<MatcherSupport> matchers;
};

/// The servers of one cluster and one type. Safe for concurrent use.
class Pool {
 public:
  Pool(Strategy strategy, std::vector<Backend> backends)
      : strategy_(strategy), backends_(std::move(backends)) {}

  /// Live servers in the order in which the strategy tries them, at most two: a request that failed
  /// at two servers is not sent to a third.
  [[nodiscard]] std::vector<const Backend*> pick() const;
  [[nodiscard]] const std::vector<Backend>& backends() const { return backends_; }
  /// Whether attempt_for() never waits.
  [[nodiscard]] bool has_static_headers() const;

 private:
  Strategy strategy_;
  std::vector<Backend> backends_;
  mutable std::atomic<std::size_t> next_ = 0;  ///< next server of round-robin
};

/// Sends the server a health request. Returns whether any answer comes within 10 s.
bool responds(const Backend& backend);

/// Removes servers that would ignore the matchers of a call, or of which that is not
/// known, which may take a few seconds to find out. `path` is that of the call. Returns whether it
/// removed any.
bool drop_without_matchers(std::vector<const Backend*>& servers, std::string_view path);
/// The servers that apply `extra_filters[]`. This may take a few seconds, too.
std::vector<const Backend*> with_filters(std::vector<const Backend*> servers);

/// All pools of one type of backends, by cluster.
class Backends {
 public:
  /// An invalid URL or unusable TLS file is an error. `before`, which may be null, passes on its
  /// servers: a server of the same cluster with the same options stays in use with its current
  /// requests. A server with other options at the same URL keeps its addresses and its health.
  static Result<std::unique_ptr<Backends>> create(gate::BackendType type,
                                                  const Config& config,
                                                  const Backends* before = nullptr);

  /// Null if there is no such cluster.
  [[nodiscard]] const Pool* find(const std::string& cluster) const;
  [[nodiscard]] const std::map<std::string, Pool, std::less<>>& pools() const { return pools_; }
  [[nodiscard]] std::vector<std::string> clusters() const;

 private:
  std::map<std::string, Pool, std::less<>> pools_;
};

}  // namespace ceems::lb
