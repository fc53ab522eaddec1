#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "net/server/server.h"
#include "redfish_proxy/config.h"
#include "redfish_proxy/proxy.h"

namespace ceems::redfish_proxy {

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
