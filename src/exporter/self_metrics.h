#pragma once

#include <cstdint>
#include <functional>

#include "metrics/registry.h"
#include "metrics/sink.h"

namespace ceems::exporter {

/// The exporter's metrics about itself: its build, the scrapes it answered and its process
/// (docs/exporter/metrics.md). Safe for concurrent use.
class SelfMetrics {
 public:
  /// `full` is false with --web.disable-exporter-metrics: add() then adds only the build
  /// information.
  explicit SelfMetrics(bool full);

  [[nodiscard]] bool full() const { return full_; }

  void request_started() { in_flight_.add(1); }
  /// A `status` other than 200 and 503 counts as 500.
  void request_finished(int status);
  void count_gathering_errors(std::uint64_t errors) { gathering_errors_.add(errors); }
  /// For net::ServerOptions::on_certificate.
  [[nodiscard]] std::function<void(std::int64_t)> on_certificate();
  [[nodiscard]] long in_flight() const { return static_cast<long>(in_flight_.value()); }

  void add(metrics::Sink& sink);

 private:
  bool full_;
  metrics::Registry registry_;
  metrics::Counter& succeeded_;
  metrics::Counter& failed_;
  metrics::Counter& unavailable_;
  metrics::Counter& gathering_errors_;
  metrics::Gauge& in_flight_;
};

}  // namespace ceems::exporter
