#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "ingest/admin_sync.h"
#include "ingest/cluster_progress.h"
#include "ingest/config.h"
#include "ingest/update_source.h"
#include "os/command.h"
#include "store/store.h"

namespace ceems::ingest {

/// `data` and `admin` of the configuration, as far as updates need them.
struct UpdateOptions {
  std::chrono::milliseconds update_interval{std::chrono::minutes(15)};
  /// Longest window of one run; what lies further back is filled in windows of this length.
  std::chrono::milliseconds max_update_interval{std::chrono::hours(1)};
  /// Units that ended earlier are purged before each round; 0: everything that ended before today.
  std::chrono::milliseconds retention{std::chrono::days(30)};
  bool purge = true;
  /// Start of the first window of a cluster without watermark, see parse_update_from().
  std::string update_from = "today";
  std::string time_zone = "UTC";  ///< IANA name, "UTC" or "Local"
  /// Written as the admins of source "ceems" at the start; the caller adds ceems-int-svc.
  std::vector<std::string> admins;
  /// Admins of source "grafana", fetched with each round; null: there are none (AdminSync).
  std::shared_ptr<AdminSource> grafana;
  /// Pause between the windows of a backfill, so that readers of the database get their turn.
  std::chrono::milliseconds backfill_pause{100};
};

/// Fetches units, users and projects of every cluster, adds the metrics and writes them, once per
/// update interval.
///
/// Windows are half open, (start, end], and end at whole seconds (due_window()). A cluster's
/// windows follow one another without gap or overlap: each starts where the last committed one
/// ended (its watermark in the store), and only a window that was fetched, updated and written
/// completely moves the watermark. So when a cluster, updater or database fails, the window is
/// tried again in the next round, and other clusters go on: each has a thread of its own for
/// fetching; one thread writes.
///
/// A window whose metrics are not complete is tried again in the next rounds; when that does not
/// help, or the source refuses what it is asked, it is written without them and the store keeps the
/// gap, which later rounds fill (docs/api/updaters.md).
///
/// When the wall clock steps back, rounds do nothing until it has passed the watermark again. A
/// step forward counts once it has lasted an update interval, and is filled in windows of
/// max_update_interval.
class UpdateLoop {
 public:
  /// With the managers and updaters of the configuration; errors are those of create_sources().
  /// `writer`, `registry`, `clock` and `runner` must outlive the loop, which counts in `registry`
  /// what it does (UpdateMetrics). Starts nothing.
  static Result<std::unique_ptr<UpdateLoop>> create(UpdateOptions options,
                                                    const std::vector<ClusterConfig>& clusters,
                                                    const std::vector<UpdaterConfig>& updaters,
                                                    store::Writer& writer,
                                                    metrics::Registry& registry,
                                                    const Clock& clock,
                                                    os::CommandRunner& runner);
  /// The same with ready-made sources.
  static Result<std::unique_ptr<UpdateLoop>> create(UpdateOptions options,
                                                    std::vector<UpdateSource> sources,
                                                    store::Writer& writer,
                                                    metrics::Registry& registry,
                                                    const Clock& clock);
  ~UpdateLoop();  ///< stops
  UpdateLoop(const UpdateLoop&) = delete;
  UpdateLoop& operator=(const UpdateLoop&) = delete;

  /// Writes the administrators of the configuration, so that they are known when the first request
  /// is answered, and starts the threads; the first round runs at once. From then on the writer
  /// belongs to the loop's thread. Once.
  void start();
  /// Ends fetches under way (commands are killed, requests cancelled), lets a commit under way
  /// finish and joins all threads. Windows not yet written are fetched again after the next start.
  /// Idempotent; thread-safe.
  void stop();

  /// One round of all clusters on the calling thread, one after the other: admins, purge, then
  /// every window that is due. Gives the number of windows committed. For tests and one-shot
  /// programs; not after start().
  std::size_t run_round(const std::stop_token& stop = {});

 private:
  struct Impl;
  explicit UpdateLoop(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ceems::ingest
