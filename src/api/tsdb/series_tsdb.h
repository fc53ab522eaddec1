#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/tsdb/series.h"
#include "base/clock.h"
#include "ingest/config.h"
#include "tsdb/client.h"

namespace ceems::api {

/// Where the series of a cluster are.
struct ClusterTsdb {
  std::unique_ptr<tsdb::Client> client;
  /// The label whose value is the ID of the cluster. Empty: the TSDB has only this cluster.
  std::string cluster_label = {};
};
using ClusterTsdbs = std::map<std::string, ClusterTsdb, std::less<>>;  ///< by cluster ID

/// Creates a client for each cluster that has a TSDB (ingest::tsdb_of_cluster()). Series of
/// clusters with the same TSDB are told apart by their label. Passes on errors of the clients.
Result<ClusterTsdbs> cluster_tsdbs(const std::vector<ingest::ClusterConfig>& clusters,
                                   const std::vector<ingest::UpdaterConfig>& updaters,
                                   const SeriesOptions& options,
                                   const Clock& clock);

/// Reads series from the TSDB of each cluster: CPUs in use (cores), memory in use (bytes) and power
/// (watts), summed over hosts, with at most 300 points each.
class TsdbSeriesSource final : public SeriesSource {
 public:
  explicit TsdbSeriesSource(ClusterTsdbs tsdbs) : tsdbs_(std::move(tsdbs)) {}

  Result<std::vector<Series>> series(const SeriesRequest& request) override;
  [[nodiscard]] const ClusterTsdbs& tsdbs() const { return tsdbs_; }
  /// Makes the current and all later requests to the TSDBs fail, for shutdown.
  void cancel() {
    for (const auto& [id, tsdb] : tsdbs_) {
      tsdb.client->cancel();
    }
  }

 private:
  ClusterTsdbs tsdbs_;
};

}  // namespace ceems::api
