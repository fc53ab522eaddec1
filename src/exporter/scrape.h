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

/// Adds ceems_scrape_collector_duration_seconds. `subcollector` is empty for the collector itself,
/// which has no such label.
void add_scrape_duration(metrics::Sink& sink,
                         std::string_view collector,
                         std::string_view subcollector,
                         std::chrono::nanoseconds duration);

/// Result of the last collection of a collector.
struct CollectorStatus {
  std::string name;
  bool success = false;
  std::string message;  ///< why it failed; empty on success and before the first scrape
  std::chrono::nanoseconds duration{};
};

/// Runs the collectors one after another. run() is called by one thread at a time. statuses() is
/// safe for concurrent use.
class Scraper {
 public:
  Scraper(std::vector<NamedCollector> collectors, const Clock& clock);

  /// Starts the threads of the collectors, then waits until all have their first values or the
  /// deadline has passed. Then does the same for collectors of Stage::kEnergy, which sample what
  /// the others have read. Called once, before the first run().
  void start(std::chrono::steady_clock::time_point deadline);

  /// Adds the samples of the collectors, followed by the success and duration of each. Collectors
  /// whose turn comes after the deadline are left out with success 0, so that the page is still in
  /// time. The log has a line when a collector starts to fail and one when it succeeds again. "No
  /// data" and further messages of a failing collector are logged at debug level.
  void run(metrics::Sink& sink, Clock::SteadyTime deadline);

  /// Adds the ages of values from slow sources (ceems_exporter_source_age_seconds).
  void add_ages(metrics::Sink& sink) const;

  /// Adds how many assignments of GPUs can be forged (ceems_exporter_unit_gpu_hints).
  void add_hints(metrics::Sink& sink) const;

  [[nodiscard]] std::vector<CollectorStatus> statuses() const;

 private:
  std::vector<NamedCollector> collectors_;
  std::vector<Outcome> outcomes_;  // same index as collectors_
  const Clock& clock_;
  mutable Mutex mutex_;
  std::vector<CollectorStatus> statuses_ CEEMS_GUARDED_BY(mutex_);
};

/// The metrics page. Overlapping requests share one scrape: all requests that waited during a
/// scrape get the page of the next one, which is made once for them. Safe for concurrent use.
class MetricsPage {
 public:
  /// Both must outlive the page.
  MetricsPage(Scraper& scraper, SelfMetrics& self, const Clock& clock)
      : scraper_(scraper), self_(self), clock_(clock) {}

  /// Appends a page that was made no earlier than this call began. kTimeout: a scrape in progress
  /// did not end before the deadline.
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
