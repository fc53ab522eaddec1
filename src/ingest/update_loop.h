#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "ingest/admin_sync.h"
#include "ingest/cluster_progress.h"
#include "ingest/config.h"
#include "ingest/nodes/node_energy.h"
#include "ingest/update_source.h"
#include "os/command.h"
#include "store/store.h"

namespace ceems::ingest {

/// The parts of `data` and `admin` of the configuration that updates need.
struct UpdateOptions {
  std::chrono::milliseconds update_interval{std::chrono::minutes(15)};
  /// The longest window. Older data is filled in windows of this length.
  std::chrono::milliseconds max_update_interval{std::chrono::hours(1)};
  /// Units that ended longer ago are purged before each round; 0: everything that ended before
  /// today.
  std::chrono::milliseconds retention{std::chrono::days(30)};
  bool purge = true;
  /// Start of the first window of a cluster that has no watermark, see parse_update_from().
  std::string update_from = "today";
  std::string time_zone = "UTC";  ///< IANA name, "UTC" or "Local"
  /// Written as the admins of source "ceems" at startup; the caller adds ceems-int-svc.
  std::vector<std::string> admins;
  /// Admins of source "grafana", fetched in each round; null if there are none (AdminSync).
  std::shared_ptr<AdminSource> grafana;
  /// Where the energy of nodes is read, which fills the days of the nodes.
  std::vector<std::shared_ptr<const NodeSource>> nodes = {};
  /// Waits until the database can be written; false if it never can, or after a stop. Empty: it can
  /// already.
  std::function<bool(const std::stop_token& stop)> wait_until_ready = {};
  /// Called by the writing thread at the beginning of each round, with whether this program updates
  /// the database, and after writing. Must not block. May be empty.
  std::function<void(bool leads)> on_written = {};
  /// Pause between the windows of a backfill, so that it does not block readers of the database.
  std::chrono::milliseconds backfill_pause{100};
};

/// Once per update interval, fetches units, users and projects of every cluster, adds the metrics
/// and writes everything.
///
/// Windows are half open, (start, end], and end at whole seconds (due_window()). A cluster's
/// windows follow one another without gap or overlap: each starts where the last committed one
/// ended (its watermark in the store). Only a window that was fetched, updated and written
/// completely moves the watermark. So if a cluster, updater or database fails, the window is tried
/// again in the next round. Other clusters continue, because each has its own thread for fetching.
/// One thread writes for all of them.
///
/// A window with missing metrics is tried again in the next rounds. If that does not help, or if
/// the source rejects the queries, the window is written without these metrics. The store keeps the
/// gap, which later rounds fill (docs/api/updaters.md).
///
/// If the wall clock steps back, rounds do nothing until it has passed the watermark again. A step
/// forward counts once it has lasted for an update interval. The time in between is then filled in
/// windows of max_update_interval.
class UpdateLoop {
 public:
  /// Creates the loop with the managers and updaters of the configuration, and starts nothing.
  /// Passes on errors of create_sources(). `writer`, `registry`, `clock` and `runner` must outlive
  /// the loop. It keeps its metrics in `registry` (UpdateMetrics).
  static Result<std::unique_ptr<UpdateLoop>> create(UpdateOptions options,
                                                    const std::vector<ClusterConfig>& clusters,
                                                    const std::vector<UpdaterConfig>& updaters,
                                                    store::Writer& writer,
                                                    metrics::Registry& registry,
                                                    const Clock& clock,
                                                    os::CommandRunner& runner);
  /// Does the same with sources that already exist.
  static Result<std::unique_ptr<UpdateLoop>> create(UpdateOptions options,
                                                    std::vector<UpdateSource> sources,
                                                    store::Writer& writer,
                                                    metrics::Registry& registry,
                                                    const Clock& clock);
  ~UpdateLoop();  ///< calls stop()
  UpdateLoop(const UpdateLoop&) = delete;
  UpdateLoop& operator=(const UpdateLoop&) = delete;

  /// Writes the administrators of the configuration, so that they are known when the first request
  /// is answered, and starts the threads. The first round runs at once. From then on only the
  /// loop's thread may use the writer. Must be called only once.
  void start();
  /// Cancels running fetches (commands are killed, requests cancelled), lets a running commit
  /// finish, and joins all threads. Windows not yet written are fetched again after the next start.
  /// Idempotent and thread-safe.
  void stop();

  /// Runs one round on the calling thread, one cluster after the other: admins, purge, then every
  /// window that is due. Returns the number of windows committed. For tests and one-shot programs;
  /// must not be called after start().
  std::size_t run_round(const std::stop_token& stop = {});

 private:
  struct Impl;
  explicit UpdateLoop(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ceems::ingest
