#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "audit/log.h"
#include "base/mutex.h"
#include "base/result.h"
#include "lb/backends.h"
#include "lb/config.h"
#include "lb/frontend.h"
#include "lb/health.h"
#include "lb/matcher_probes.h"
#include "lb/request_metrics.h"
#include "net/server/server.h"

namespace ceems::lb {

/// How the program listens, from its command line.
struct ServiceOptions {
  /// One for each type of backends, in the order of backend_types(). Further ones are ignored.
  std::vector<std::string> listen_addresses;
  std::string web_config_file;  ///< empty: plain HTTP without passwords
  bool systemd_socket = false;  ///< instead of listen_addresses; for one type of backends only
  HealthTimes health = {};
  /// Between looks whether servers must be asked again whether they honour matchers; 0: requests
  /// ask.
  std::chrono::milliseconds matchers = std::chrono::minutes(5);
  long threads = 1;  ///< that decide requests; at least 2 and at most 64 are used
};

/// The listeners of the program. Not thread-safe, except health_targets().
class Service {
 public:
  /// Binds one listener for each type of backends.
  static Result<std::unique_ptr<Service>> create(const ServiceOptions& options,
                                                 const Config& config);
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  /// Opens the source of owners, checks the IDs of clusters, and starts to use the configuration.
  /// Call it before start() and on reload. After an error, the previous configuration stays in use.
  /// The types of backends and their order cannot change.
  Result<> apply(const Config& config);

  /// Starts to accept connections and to check backends.
  void start();
  /// Lets current requests finish within `grace`, then closes all connections.
  void stop(std::chrono::milliseconds grace = std::chrono::seconds(5));
  /// "tsdb 127.0.0.1:9030" for each listener.
  [[nodiscard]] std::vector<std::string> listeners() const;
  /// "127.0.0.1:9030" for each listener.
  [[nodiscard]] std::vector<std::string> addresses() const;

  /// The backends to check: of the configuration in use, and of earlier configurations for which
  /// requests still wait. Forgets configurations that no request uses any more. Thread-safe.
  std::vector<HealthTarget> health_targets() CEEMS_EXCLUDES(mutex_);

 private:
  /// The backends in use behind listeners with access control, with their types.
  [[nodiscard]] std::vector<std::pair<gate::BackendType, std::shared_ptr<const Backends>>>
  controlled_backends() const;
  Service(const HealthTimes& health, std::chrono::milliseconds matchers)
      : health_times_(health), matchers_interval_(matchers) {}

  /// The audit log of the configuration, or null. With the same options it is the open one, opened
  /// again for the sake of a rotation.
  Result<std::shared_ptr<audit::Log>> open_audit(const Config& config);

  RequestMetrics metrics_;
  std::vector<std::unique_ptr<Frontend>> frontends_;
  std::vector<std::unique_ptr<net::Server>> servers_;
  Mutex mutex_;
  /// The backends of earlier configurations, until no request uses them any more.
  std::vector<std::shared_ptr<const Backends>> draining_ CEEMS_GUARDED_BY(mutex_);
  std::shared_ptr<audit::Log> audit_;  ///< of the configuration in use; may be null
  HealthTimes health_times_;
  std::chrono::milliseconds matchers_interval_;
  std::unique_ptr<HealthChecker> health_;  ///< null before start() and after stop()
  std::unique_ptr<MatcherProbes> probes_;  ///< likewise
};

/// The types of backends in the order in which they first appear in the configuration.
std::vector<gate::BackendType> backend_types(const Config& config);

}  // namespace ceems::lb
