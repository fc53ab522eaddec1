#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/thread_annotations.h"
#include "lb/backends.h"
#include "lb/config.h"
#include "lb/figures.h"
#include "lb/frontend.h"
#include "lb/health.h"
#include "net/server/server.h"

namespace ceems::lb {

/// How the program listens, from its command line.
struct ServiceOptions {
  /// One for each kind of backends, in the order of kinds_of(); those behind are not used.
  std::vector<std::string> listen_addresses;
  std::string web_config_file;  ///< empty: plain HTTP without passwords
  bool systemd_socket = false;  ///< instead of listen_addresses; for one kind of backends only
  long threads = 1;             ///< that decide requests; at least 2 and at most 64 are started
};

/// The listeners of one run of the program. Calls come from one thread.
class Service {
 public:
  /// Binds one listener for each kind of backends. Errors are one line.
  static Result<std::unique_ptr<Service>> create(const ServiceOptions& options,
                                                 const Config& config);
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  /// Opens what tells owners, checks the ids of clusters, and takes the configuration into use: at
  /// the start, and again on reload. On an error everything stays as it was. The number and order
  /// of kinds cannot change.
  Result<> apply(const Config& config);

  void start();
  void stop();
  /// "tsdb 127.0.0.1:9030" for each listener.
  [[nodiscard]] std::vector<std::string> listeners() const;

 private:
  Service() = default;
  std::vector<HealthTarget> health_targets();

  Figures figures_;
  std::vector<std::unique_ptr<Frontend>> frontends_;
  std::vector<std::unique_ptr<net::Server>> servers_;
  std::mutex mutex_;
  /// Of configurations before, until no request waits for them any more.
  std::vector<std::shared_ptr<const Backends>> retired_ CEEMS_GUARDED_BY(mutex_);
  std::unique_ptr<HealthChecker> health_;  ///< while started
};

/// The kinds of backends in the order in which they first appear.
std::vector<gate::BackendType> kinds_of(const Config& config);

}  // namespace ceems::lb
