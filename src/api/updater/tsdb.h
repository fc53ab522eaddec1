#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "api/updater/tsdb_options.h"
#include "api/updater/updater.h"
#include "tsdb/client.h"

namespace ceems::api {

/// Updater "tsdb": aggregated metrics of units from a TSDB.
///
/// The queries of the options are asked for batches of units; then, with `unit_counters`, what the
/// exporter's own counters say (unit_counters.h): energy and used CPU time always, CPU and memory
/// usage and emissions where no query gave them. docs/api/updaters.md has the formulas.
///
/// A query that the TSDB rejects as wrong is logged and left out; any other answer that is missing
/// fails the update, so that the window is tried again. Not thread-safe, but for settle().
class TsdbUpdater final : public Updater {
 public:
  TsdbUpdater(TsdbUpdaterOptions options, std::unique_ptr<tsdb::Client> client);

  Result<> update(model::Window window,
                  std::vector<model::Unit>& units,
                  std::stop_token stop) override;
  [[nodiscard]] std::chrono::milliseconds settle() const override;

 private:
  Result<> run_queries(model::Window window,
                       const tsdb::Settings& settings,
                       std::vector<model::Unit>& units,
                       const std::stop_token& stop);
  Result<> add_counters(model::Window window,
                        const tsdb::Settings& settings,
                        std::vector<model::Unit>& units,
                        const std::stop_token& stop);
  void mark_ignored(model::Window window, std::vector<model::Unit>& units);
  void delete_pending(model::Window window);

  TsdbUpdaterOptions options_;
  std::unique_ptr<tsdb::Client> client_;
  std::set<std::string> rejected_;  ///< queries whose rejection was logged

  /// Series to delete once the window they were needed for is known to be committed.
  struct PendingDeletion {
    model::Window window;
    std::vector<std::string> matchers;
  };
  std::vector<PendingDeletion> pending_;
};

UpdaterSpec tsdb_updater();

}  // namespace ceems::api
