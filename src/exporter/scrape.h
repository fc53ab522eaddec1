#pragma once

#include <chrono>
#include <mutex>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/thread_annotations.h"
#include "exporter/collector_set.h"
#include "exporter/source/outcome.h"
#include "metrics/sink.h"

namespace ceems::exporter {

/// How the last collection of a collector went.
struct CollectorStatus {
  std::string name;
  bool success = false;
  std::string message;  ///< why not; empty on success and before the first scrape
  std::chrono::nanoseconds duration{};
};

/// Runs the collectors one after the other. run() is called from one thread at a time; statuses()
/// is safe for concurrent use.
class Scraper {
 public:
  Scraper(std::vector<NamedCollector> collectors, const Clock& clock);

  /// Starts the threads of those collectors that have some, then waits until all have their first
  /// values or the deadline has come; then does the same with those of Stage::kEnergy, which sample
  /// what the others have read. Once, before the first run().
  void start(std::chrono::steady_clock::time_point deadline);

  /// Adds what the collectors have, then success and duration of each. Collectors whose turn comes
  /// after the deadline are left out with success 0, so the page still comes in time. The log
  /// has a line when errors or exceptions of a collector start and one when they end, "no data" and
  /// other messages of one that keeps failing at debug.
  void run(metrics::Sink& sink, Clock::SteadyTime deadline);

  /// Ages of what was served from slow sources (ceems_exporter_source_age_seconds).
  void add_ages(metrics::Sink& sink) const;

  /// Adds how many assignments of GPUs can be forged (ceems_exporter_unit_gpu_hints).
  void add_hints(metrics::Sink& sink) const;

  [[nodiscard]] std::vector<CollectorStatus> statuses() const;

 private:
  std::vector<NamedCollector> collectors_;
  std::vector<Outcome> outcomes_;  // as collectors_
  const Clock& clock_;
  mutable std::mutex mutex_;
  std::vector<CollectorStatus> statuses_ CEEMS_GUARDED_BY(mutex_);
};

}  // namespace ceems::exporter
