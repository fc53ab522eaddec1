#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/series.h"
#include "base/clock.h"
#include "ingest/config.h"
#include "tsdb/client.h"

namespace ceems::api {

/// Reads series from the TSDB of each cluster: CPUs in use (cores), memory in use (bytes) and power
/// (watts), summed over hosts, with at most 300 points each. Does not check whether the user may
/// see the unit; that is up to the caller.
class TsdbSeriesSource final : public SeriesSource {
 public:
  /// Clients by cluster id.
  explicit TsdbSeriesSource(
      std::map<std::string, std::unique_ptr<tsdb::Client>, std::less<>> clients);

  /// Creates a client for each cluster that has a TSDB (ingest::tsdb_of_cluster()).
  static Result<std::unique_ptr<TsdbSeriesSource>> create(
      const std::vector<ingest::ClusterConfig>& clusters,
      const std::vector<ingest::UpdaterConfig>& updaters,
      const Clock& clock);

  Result<std::vector<Series>> series(const std::string& cluster_id,
                                     const std::string& uuid,
                                     std::int64_t from_ms,
                                     std::int64_t to_ms) override;

 private:
  std::map<std::string, std::unique_ptr<tsdb::Client>, std::less<>> clients_;
};

}  // namespace ceems::api
