#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "base/thread_annotations.h"
#include "exporter/scrape.h"
#include "exporter/self_metrics.h"
#include "metrics/sink.h"

namespace ceems::exporter {

/// The metrics page. Requests that overlap share one scrape: who waited while another scrape ran
/// gets the page of the next one, made once for all of them. Safe for concurrent use.
class MetricsPage {
 public:
  /// Both outlive the page.
  MetricsPage(Scraper& scraper, SelfMetrics& self, const Clock& clock)
      : scraper_(scraper), self_(self), clock_(clock) {}

  /// Appends a page made no earlier than this call began. kTimeout: a scrape under way did not end
  /// before the deadline.
  Result<> get(metrics::Exposition exposition, Clock::SteadyTime deadline, std::string& out);

 private:
  Scraper& scraper_;
  SelfMetrics& self_;
  const Clock& clock_;
  // A flag and a condition, not a timed mutex: g++ 12's ThreadSanitizer does not know the system
  // call behind the latter. Whoever set busy_ owns the members below until it is clear again.
  std::mutex mutex_;
  std::condition_variable idle_;
  bool busy_ CEEMS_GUARDED_BY(mutex_) = false;
  metrics::Sink sink_;
  Clock::SteadyTime made_{};
  bool any_ = false;
};

}  // namespace ceems::exporter
