#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "metrics/process.h"
#include "metrics/sink.h"

namespace ceems::exporter {

/// What the exporter says about itself: build, requests, errors and the process. The counters are
/// safe for concurrent use; add() is called from one thread at a time.
class SelfMetrics {
 public:
  /// `full` is false with --web.disable-exporter-metrics: then only the build information is there.
  explicit SelfMetrics(bool full);

  [[nodiscard]] bool full() const { return full_; }

  void request_started() { in_flight_.fetch_add(1); }
  /// `status` other than 200 and 503 counts as 500.
  void request_finished(int status);
  void count_gathering_errors(std::uint64_t errors) { gathering_errors_.fetch_add(errors); }
  [[nodiscard]] long in_flight() const { return in_flight_.load(); }

  void add(metrics::Sink& sink);

 private:
  bool full_;
  std::atomic<long> in_flight_{0};
  std::array<std::atomic<std::uint64_t>, 3> finished_{};
  std::atomic<std::uint64_t> gathering_errors_{0};
  metrics::ProcessMetrics process_;
};

}  // namespace ceems::exporter
