#pragma once

#include <atomic>
#include <chrono>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "exporter/alloy_targets.h"
#include "exporter/scrape.h"
#include "exporter/self_metrics.h"
#include "net/http.h"

namespace ceems::exporter {

struct RouteOptions {
  std::string telemetry_path = "/metrics";  ///< a missing leading slash is put in front
  long max_requests = 40;  ///< scrapes at once, and targets at once; 0 or less: no limit
  bool debug_server = false;
  std::string targets_path = "/alloy-targets";  ///< a missing leading slash is put in front
};

/// What the exporter answers to which request. Safe for concurrent use.
class Routes {
 public:
  /// All references outlive the routes, and so do `targets`, which may be null.
  Routes(RouteOptions options,
         MetricsPage& page,
         SelfMetrics& self,
         const Scraper& scraper,
         const Clock& clock,
         const AlloyTargets* targets = nullptr);

  void handle(const net::Request& request, net::Response& response);

 private:
  void metrics(const net::Request& request, net::Response& response);
  void targets(net::Response& response);
  void debug(const net::Request& request, net::Response& response) const;

  RouteOptions options_;
  MetricsPage& page_;
  SelfMetrics& self_;
  const Scraper& scraper_;
  const Clock& clock_;
  const AlloyTargets* targets_;
  std::atomic<long> targets_in_flight_ = 0;
};

/// Path without empty, "." and ".." elements, as "/a/b" (RFC 3986 §5.2.4); a slash at the end
/// stays.
std::string clean_path(std::string_view path);

/// How long a scrape may take: what X-Prometheus-Scrape-Timeout-Seconds says less some time for the
/// way back, at most what the server has to write an answer. Nonsense counts as absent.
std::chrono::milliseconds scrape_budget(const std::string* timeout_header);

}  // namespace ceems::exporter
