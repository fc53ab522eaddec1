#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "lb/backends.h"
#include "lb/config.h"
#include "lb/frontend.h"
#include "lb/health.h"
#include "lb/request_metrics.h"
#include "net/server/server.h"

namespace ceems::lb {

/// How the program listens, from its command line.
struct ServiceOptions {
  /// One for each type of backends, in the order of backend_types(); further ones are not used.
  std::vector<std::string> listen_addresses;
  std::string web_config_file;  ///< empty: plain HTTP without passwords
  bool systemd_socket = false;  ///< instead of listen_addresses; for one type of backends only
  HealthTimes health = {};
  long threads = 1;  ///< that decide requests; raised to 2 and limited to 64
};

/// The listeners of one run of the program. Calls come from one thread.
class Service {
 public:
  /// Binds one listener for each type of backends.
  static Result<std::unique_ptr<Service>> create(const ServiceOptions& options,
                                                 const Config& config);
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  /// Opens the source of owners, checks the ids of clusters, and takes the configuration into use:
  /// before start(), and again on reload. On an error everything stays as it was. The types of
  /// backends and their order cannot change.
  Result<> apply(const Config& config);

  /// Begins to accept connections and to check backends.
  void start();
  /// Lets requests under way finish within `grace`, then ends everything.
  void stop(std::chrono::milliseconds grace = std::chrono::seconds(5));
  /// "tsdb 127.0.0.1:9030" for each listener.
  [[nodiscard]] std::vector<std::string> listeners() const;

  /// The backends to check: those of the configuration in use, and draining ones that requests
  /// still wait for. Forgets configurations that no request needs any more. Thread-safe.
  std::vector<HealthTarget> health_targets() CEEMS_EXCLUDES(mutex_);

 private:
  explicit Service(const HealthTimes& health) : health_times_(health) {}

  RequestMetrics metrics_;
  std::vector<std::unique_ptr<Frontend>> frontends_;
  std::vector<std::unique_ptr<net::Server>> servers_;
  Mutex mutex_;
  /// Those of earlier configurations, until no request waits for them any more.
  std::vector<std::shared_ptr<const Backends>> draining_ CEEMS_GUARDED_BY(mutex_);
  HealthTimes health_times_;
  std::unique_ptr<HealthChecker> health_;  ///< while started
};

/// The types of backends in the order in which they first appear.
std::vector<gate::BackendType> backend_types(const Config& config);

}  // namespace ceems::lb
