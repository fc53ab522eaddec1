#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "gate/gate.h"
#include "lb/backends.h"
#include "metrics/registry.h"
#include "net/relay/relay.h"
#include "net/server/server.h"

namespace ceems::lb {

/// Metrics of the requests to one type of backends. Safe for concurrent use.
class TypeMetrics {
 public:
  TypeMetrics(metrics::Registry& registry, gate::BackendType type);

  /// Counts a request that was let through.
  void count_allowed(bool admin) { (admin ? admin_ : allowed_).add(); }
  /// Counts a request that was refused: `reason` is that of a gate::Refusal, "size" or
  /// "no_backend". Reasons must be few and fixed.
  void count_refused(std::string_view reason) { decisions_.with({type_, reason}).add(); }
  /// Counts a request that the server dropped before or after the decision.
  void count_dropped(net::Dropped what);
  /// `seconds` is the time from receiving the whole request to the decision about it.
  void observe_decision(double seconds) { decision_seconds_.observe(seconds); }
  /// `seconds` is the time from the decision to the end of the answer.
  void count_answer(const net::RelayEnd& end, double seconds);

 private:
  static constexpr std::size_t kStatusClasses = 6;  ///< 0: no answer at all

  const std::string_view type_;
  metrics::Family<metrics::Counter>& decisions_;
  metrics::Counter& allowed_;
  metrics::Counter& admin_;
  std::array<metrics::Counter*, kStatusClasses> answers_{};
  metrics::Counter& bytes_;
  metrics::Counter& broken_;
  metrics::Family<metrics::Counter>& dropped_;
  metrics::Histogram& decision_seconds_;
  metrics::Histogram& answer_seconds_;
};

/// The load balancer's metrics about itself (docs/lb/metrics.md). Safe for concurrent use.
class RequestMetrics {
 public:
  [[nodiscard]] TypeMetrics& of(gate::BackendType type) {
    return type == gate::BackendType::kTsdb ? tsdb_ : profiles_;
  }

  /// For net::ServerOptions::on_certificate.
  [[nodiscard]] std::function<void(std::int64_t)> on_certificate();

  /// The page in the text format 0.0.4, with the state of `backends`, which are of this type.
  [[nodiscard]] std::string page(gate::BackendType type, const Backends& backends);

 private:
  metrics::Registry registry_{"ceems_lb", "the load balancer"};
  TypeMetrics tsdb_{registry_, gate::BackendType::kTsdb};
  TypeMetrics profiles_{registry_, gate::BackendType::kProfiles};
};

}  // namespace ceems::lb
