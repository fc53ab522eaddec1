#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "admission/review_metrics.h"
#include "admission/rules.h"
#include "admission/workloads.h"
#include "base/result.h"
#include "net/http.h"
#include "net/server/server.h"

namespace ceems::admission {

/// The answers to all requests. Safe for concurrent use.
class Reviewer {
 public:
  Reviewer(Rules rules, std::vector<Workload> workloads)
      : rules_(std::move(rules)), workloads_(std::move(workloads)) {}

  /// For net::Server.
  void handle(const net::Request& request, net::Response& response);

  [[nodiscard]] ReviewMetrics& metrics() { return metrics_; }

 private:
  enum class Hook : std::uint8_t { kMutate, kValidate };
  void answer_hook(Hook hook, const net::Request& request, net::Response& response);
  ReviewOutcome review(Hook hook, const net::Request& request, net::Response& response);
  ReviewOutcome decide(Hook hook, const Review& review, Verdict& verdict);

  Rules rules_;
  std::vector<Workload> workloads_;
  ReviewMetrics metrics_;
};

/// How the program listens, from its command line.
struct ServiceOptions {
  std::vector<std::string> listen_addresses = {":9000"};
  std::string web_config_file = {};  ///< empty: plain HTTP
  long threads = 1;  ///< for reviews of more than 64 KiB; at least 2 and at most 64 are used
};

/// Binds the addresses. `reviewer` must outlive the server.
Result<std::unique_ptr<net::Server>> create_server(const ServiceOptions& options,
                                                   Reviewer& reviewer);

}  // namespace ceems::admission
