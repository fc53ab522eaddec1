#pragma once

#include <chrono>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "net/client/client.h"
#include "net/http.h"
#include "net/relay/relay.h"
#include "net/server/server.h"
#include "redfish_proxy/bmcs.h"
#include "redfish_proxy/clients.h"
#include "redfish_proxy/config.h"
#include "redfish_proxy/proxy_metrics.h"

namespace ceems::redfish_proxy {

/// What the proxy needs to pass requests on. A reload replaces all of it.
struct Snapshot {
  /// Passes on errors of Bmcs::create() and net::Client::create().
  static Result<std::shared_ptr<const Snapshot>> create(Config config,
                                                        net::Lookup lookup = net::look_up);
  Config config;
  std::unique_ptr<Bmcs> bmcs;
  std::unique_ptr<net::Client> client;  ///< has the credentials for the targets
};

/// The requests of the program: decides each and relays it. Safe for concurrent use.
class Proxy {
 public:
  /// New requests use this snapshot from now on. Current requests keep their BMC.
  void publish(std::shared_ptr<const Snapshot> snapshot);

  /// For net::Server, after the first publish(). `/metrics` and `/health` are answered by this
  /// program.
  void handle(const net::Request& request, net::Response& response);

  [[nodiscard]] ProxyMetrics& metrics() { return metrics_; }

 private:
  [[nodiscard]] std::shared_ptr<const Snapshot> snapshot() const;
  bool answer_own_page(const net::Request& request, const Snapshot& now, net::Response& response);
  /// Answers with 429 and returns false if the client sends too many requests.
  bool admit(const net::Request& request,
             const Client& client,
             const std::string& key,
             const Snapshot& now,
             net::Response& response);
  /// Finds the BMC of a request. Answers the request if there is none.
  std::optional<Bmc> find_bmc(const net::Request& request,
                              const Client& client,
                              const Snapshot& now,
                              net::Response& response);
  /// Takes the places of a request for this BMC, which are held while the pointer lives: one of the
  /// client's and, unless it asks for the BMC of its own node, one of the client's share and one of
  /// those for all other clients. `key` is the client. Returns kTooMany or kBusy.
  std::expected<std::shared_ptr<void>, Outcome> take_places(const std::string& key,
                                                            const Bmc& bmc,
                                                            const Snapshot& now);
  void relay(const net::Request& request,
             const Client& client,
             Bmc bmc,
             std::shared_ptr<void> slot,
             const Snapshot& now,
             net::Response& response);
  void refuse(const net::Request& request,
              const Client& client,
              Outcome outcome,
              std::string_view reason,
              net::Response& response);

  ProxyMetrics metrics_;
  ClientSlots slots_;
  ClientSlots shares_;  ///< by BMC, and by BMC and client
  ClientRates rates_;
  NamedByClients named_;
  mutable Mutex mutex_;
  std::shared_ptr<const Snapshot> snapshot_ CEEMS_GUARDED_BY(mutex_);
};

/// Whether this program itself answers a request, with its health or metrics.
bool is_own_page(const net::Request& request);

/// The first option of the query whose decoded name is not in the list. `$expand` on an allowed
/// resource, for example, returns resources that are not allowed.
std::optional<std::string> refused_option(std::string_view query,
                                          const std::vector<std::string>& allowed);

/// The target of the request to a BMC: the path below that of the BMC's URL, encoded again so that
/// the BMC reads the path that was checked, and the query after that of the URL.
std::string target_for(const BmcUrl& bmc, std::string_view path, std::string_view query);

/// How the program listens, from its command line.
struct ServiceOptions {
  std::vector<std::string> listen_addresses = {":5000"};
  std::string web_config_file = {};  ///< empty: plain HTTP without passwords
  bool systemd_socket = false;       ///< instead of listen_addresses
  long threads = 1;                  ///< that decide requests; at least 2 and at most 64 are used
};

/// The listeners of the program. Not thread-safe.
class Service {
 public:
  /// Binds the addresses. No connection is accepted before start().
  static Result<std::unique_ptr<Service>> create(const ServiceOptions& options);
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  /// Starts to use the configuration. Call it before start() and on reload. After an error, the
  /// previous configuration stays in use. Refuses a configuration with which anybody in the network
  /// could reach any server through this program.
  Result<> apply(Config config);

  void start();
  /// Lets current requests finish within `grace`, then closes all connections.
  void stop(std::chrono::milliseconds grace = std::chrono::seconds(5));
  [[nodiscard]] std::vector<std::string> addresses() const { return server_->addresses(); }

 private:
  Service() = default;

  std::string web_config_file_;
  std::unique_ptr<Proxy> proxy_ = std::make_unique<Proxy>();
  std::unique_ptr<net::Server> server_;
};

/// Whether the address of a listener can be reached from other machines.
bool is_exposed(std::string_view listener);

}  // namespace ceems::redfish_proxy
