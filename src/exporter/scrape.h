#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "exporter/collector_set.h"
#include "exporter/self_metrics.h"
#include "exporter/source/outcome.h"
#include "metrics/sink.h"

namespace ceems::exporter {

/// Adds ceems_scrape_collector_duration_seconds; `subcollector` is empty for the collector itself:
/// the label is then left out.
void add_scrape_duration(metrics::Sink& sink,
                         std::string_view collector,
                         std::string_view subcollector,
                         std::chrono::nanoseconds duration);

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
  mutable Mutex mutex_;
  std::vector<CollectorStatus> statuses_ CEEMS_GUARDED_BY(mutex_);
};

/// The metrics page. Requests that overlap share one scrape: who waited while another scrape ran
/// gets the page of the next one, made once for all of them. Safe for concurrent use.
class MetricsPage {
 public:
  /// Both outlive the page.
  MetricsPage(Scraper& scraper, SelfMetrics& self, const Clock& clock)
      : scraper_(scraper), self_(self), clock_(clock) {}

  /// Appends a page made no earlier than this call began. kTimeout: a scrape under way did not end
  /// before the deadline.
  Result<> get(metrics::Exposition exposition, Clock::SteadyTime deadline, std::string& out)
      CEEMS_EXCLUDES(mutex_);

 private:
  class Turn;

  Scraper& scraper_;
  SelfMetrics& self_;
  const Clock& clock_;
  // A flag and a condition instead of a timed mutex, because the ThreadSanitizer of g++ 12 does not
  // know the system call behind the latter. The thread that set busy_ owns the members below it
  // until it clears the flag.
  Mutex mutex_;
  Condition idle_;
  bool busy_ CEEMS_GUARDED_BY(mutex_) = false;
  metrics::Sink sink_;
  std::optional<Clock::SteadyTime> made_;  // when the content of sink_ was collected
};

}  // namespace ceems::exporter
