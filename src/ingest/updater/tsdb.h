#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "ingest/updater/tsdb_options.h"
#include "ingest/updater/updater.h"
#include "tsdb/client.h"

namespace ceems::ingest {

/// The updater "tsdb": aggregated metrics of units from a TSDB.
///
/// Runs the queries of the options for batches of units. Then, with `unit_counters`, it reads the
/// exporter's own counters (unit_counters.h): energy and used CPU time always, CPU and memory usage
/// and emissions only if no query gave them. The formulas are in docs/api/updaters.md.
///
/// If a query fails, its sub-metric and everything derived from it are missing for all units of the
/// window. Not thread-safe, except settle() and shortest_window().
class TsdbUpdater final : public Updater {
 public:
  TsdbUpdater(TsdbUpdaterOptions options, std::unique_ptr<tsdb::Client> client);

  Result<Missing> update(const UpdateRequest& request,
                         std::vector<model::Unit>& units,
                         std::stop_token stop) override;
  void release(std::int64_t complete_ms) override;
  [[nodiscard]] bool gives(model::Metric metric) const override;
  [[nodiscard]] std::chrono::milliseconds settle() const override;
  [[nodiscard]] std::chrono::milliseconds shortest_window() const override;

 private:
  /// Which parts are wanted, and which of them failed.
  class Parts;
  struct Batch;

  /// The settings of the TSDB, with the options taking precedence.
  [[nodiscard]] tsdb::Settings settings() const;
  Result<> run_queries(const UpdateRequest& request,
                       const tsdb::Settings& settings,
                       std::vector<model::Unit>& units,
                       Parts& parts,
                       const std::stop_token& stop);
  Result<> run_batch(const Batch& batch,
                     std::vector<model::Unit>& units,
                     Parts& parts,
                     const std::stop_token& stop);
  void note_failure(const MetricQuery& query, const Error& error, Parts& parts);
  Result<> add_counters(const UpdateRequest& request,
                        const tsdb::Settings& settings,
                        std::vector<model::Unit>& units,
                        Parts& parts,
                        const std::stop_token& stop);
  void mark_ignored(model::Window window, std::vector<model::Unit>& units);

  TsdbUpdaterOptions options_;
  std::unique_ptr<tsdb::Client> client_;
  std::set<std::string> rejected_;  ///< queries whose rejection was logged

  /// Series to delete once the window that needed them is written with all its metrics.
  struct PendingDeletion {
    model::Window window;
    std::vector<std::string> matchers;
    /// The ignored units that may lose their series as a whole.
    std::vector<std::string> unique_ids;
  };
  Result<> delete_now(const PendingDeletion& deletion);
  void note_whole_series_only();

  std::vector<PendingDeletion> pending_;
  bool whole_series_only_ = false;  ///< the TSDB does not accept a range; logged once
  std::string deletion_error_;      ///< of the last deletion, as logged
};

}  // namespace ceems::ingest
