#pragma once

#include <atomic>
#include <chrono>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "exporter/alloy_targets.h"
#include "exporter/scrape.h"
#include "exporter/self_metrics.h"
#include "metrics/sink.h"
#include "net/http.h"

namespace ceems::exporter {

/// The format in which a client receives the page.
struct PageFormat {
  metrics::Exposition exposition = metrics::Exposition::kText;
  std::string content_type;
};

/// Selects the format by the Accept header (RFC 9110, section 12.5.1): OpenMetrics 1.0 if the
/// client prefers it to plain text or accepts both equally, otherwise text 0.0.4, also if the
/// header names neither or is invalid. The parameter `escaping` of the selected range is echoed if
/// Prometheus knows its value; otherwise it is "underscores".
PageFormat choose_format(std::string_view accept);

/// web/pages/exporter.html, a template (base/text/template.h).
extern const std::string_view kExporterHtml;

/// HTML of the page at "/": the name and purpose of the program, its version, and links to the
/// metrics and, if they are served, to the targets of Grafana Alloy (not served if the path is
/// empty) and to the diagnostics.
std::string landing_page(std::string_view telemetry_path,
                         std::string_view targets_path,
                         bool debug_server);

struct RouteOptions {
  std::string telemetry_path = "/metrics";  ///< a missing leading slash is added
  long max_requests = 40;  ///< concurrent scrapes, and concurrent requests for targets; 0: no limit
  bool debug_server = false;
  std::string targets_path = "/alloy-targets";  ///< a missing leading slash is added
};

/// Routes requests to their responses. Safe for concurrent use.
class Routes {
 public:
  /// All references must outlive the routes. So must `targets`, which may be null.
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

/// The path as "/a/b", without empty, "." and ".." elements (RFC 3986, section 5.2.4). A slash at
/// the end stays.
std::string clean_path(std::string_view path);

/// How long a scrape may take: X-Prometheus-Scrape-Timeout-Seconds minus some time for the way
/// back, at most the time the server has to write a response. An invalid header counts as absent.
std::chrono::milliseconds scrape_budget(const std::string* timeout_header);

}  // namespace ceems::exporter
