#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "api/report/maker.h"
#include "api/report/options.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "metrics/registry.h"
#include "store/reader.h"
#include "store/store.h"

namespace ceems::api {

/// Makes and stores the reports of units that have ended, one batch after the other, the newest
/// first, by a thread of its own. The queue is in the database: windows add to it, so that nothing
/// is lost when the program is killed, and each end of a unit gets exactly one final report.
///
/// A report is final if its unit is covered by measurements and no window that it lived in has a
/// gap; otherwise it is partial and made again. After a day it is final in any case. While a TSDB
/// does not respond, the reports of its cluster wait.
///
/// What units used over their lives is asked for when their final reports are stored, and stays
/// unknown if the TSDB does not respond then: no report waits for it.
///
/// Requests come first: the thread has a low priority, rests as long as it works, and makes the
/// batches smaller if they take long. The log says once a minute how many reports are left.
///
/// Of several programs that share a database, only the one that updates it (wake()) makes reports.
class Finisher {
 public:
  /// All outlive the finisher. `options.rate` must be positive.
  Finisher(const ReportOptions& options,
           store::Reader& reader,
           store::Writer& writer,
           const ReportMaker& maker,
           metrics::Registry& registry,
           const Clock& clock);
  ~Finisher() { stop(); }
  Finisher(const Finisher&) = delete;
  Finisher& operator=(const Finisher&) = delete;

  /// Starts the thread. It waits until wake() says that this program leads.
  void start();
  /// Lets a batch that is being made finish. Idempotent.
  void stop();
  /// Says whether this program updates the database, and that there may be new ends of units. Does
  /// not block. Thread-safe.
  void wake(bool leads);

  /// What a batch did.
  struct Outcome {
    std::size_t made = 0;   ///< reports that were stored, partial ones included
    bool more_due = false;  ///< there may be more to do now
  };
  /// Makes one batch on the calling thread. Passes on errors of the database; reports that were not
  /// stored stay queued. Not to be called while the thread runs.
  Result<Outcome> run_batch();

 private:
  struct Cluster;
  void loop(const std::stop_token& stop);
  void work(const std::stop_token& stop);
  void purge(std::int64_t now_ms, const std::stop_token& stop);
  void note(const Error* error);
  /// Chooses the size of the next batch by the CPU time that the last one took.
  void fit_batch(std::chrono::nanoseconds cpu);
  void log_backlog(std::int64_t open, bool more_due);
  Result<std::vector<StoredUnit>> read_units(Cluster& cluster, std::int64_t now_ms);
  Result<std::size_t> finish(Cluster& cluster, std::int64_t now_ms);
  Result<std::size_t> store(const Cluster& cluster,
                            const std::vector<StoredUnit>& units,
                            const MadeReports& made,
                            std::int64_t now_ms);
  Result<std::map<std::string, std::string>> classes_for(const std::string& cluster_id,
                                                         const MadeReports& made);
  Result<> store_strips(const std::string& cluster_id, const std::vector<store::ReportRow>& rows);

  const ReportOptions options_;
  store::Reader& reader_;
  store::Writer& writer_;
  const ReportMaker& maker_;
  const Clock& clock_;
  metrics::Gauge& queue_;
  metrics::Counter& partial_;
  metrics::Counter& final_;
  metrics::Counter& failures_;
  metrics::Gauge& seconds_;
  std::map<std::string, std::int64_t> retry_ms_;  ///< of clusters whose TSDB does not respond
  std::string error_;                             ///< of the last batch, as logged
  std::int64_t next_purge_ms_ = 0;
  std::size_t batch_ = 50;                           ///< reports in the next batch
  std::optional<Clock::SteadyTime> backlog_logged_;  ///< nothing: no backlog

  Mutex mutex_;
  Condition changed_;
  bool leads_ CEEMS_GUARDED_BY(mutex_) = false;
  bool woken_ CEEMS_GUARDED_BY(mutex_) = false;
  std::jthread thread_;
};

}  // namespace ceems::api
