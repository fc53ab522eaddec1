#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "admission/rules.h"
#include "admission/workloads.h"
#include "base/result.h"
#include "metrics/registry.h"
#include "net/http.h"
#include "net/server/server.h"

namespace ceems::admission {

/// What became of a review.
enum class ReviewOutcome : std::uint8_t {
  kPatched,    ///< the mutation set a creator
  kUnchanged,  ///< the creator is there, or the request leaves the template alone
  kUnmarked,   ///< validation: allowed, although the mutation would have set another creator
  kSkipped,    ///< an object of another kind
  kRefused,    ///< allowed: false
  kInvalid,    ///< 400: not a review
  kError,      ///< 500: the object cannot be read, or the operation is not supported
};
std::string_view to_string(ReviewOutcome outcome);

/// The metrics of the admission controller (docs/admission-controller.md). Safe for concurrent use.
class ReviewMetrics {
 public:
  ReviewMetrics();

  /// `hook` is "mutate" or "validate".
  void count(std::string_view hook, ReviewOutcome outcome, double seconds);
  void count_dropped(net::Dropped what) { dropped_.with({net::to_string(what)}).add(); }

  /// For net::ServerOptions::on_certificate.
  [[nodiscard]] std::function<void(std::int64_t)> on_certificate();

  /// The page in the text format 0.0.4.
  [[nodiscard]] std::string page();

 private:
  metrics::Registry registry_{"ceems_k8s_admission_controller", "the admission controller"};
  metrics::Family<metrics::Counter>& reviews_;
  metrics::Family<metrics::Counter>& dropped_;
  metrics::Family<metrics::Histogram>& durations_;
};

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
