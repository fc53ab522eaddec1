#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/series_tsdb.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"

namespace ceems::api {

/// A node as it is now. What is not known is absent.
struct Node {
  std::string host = {};
  std::string state = {};  ///< "busy", "idle", "silent"
  std::optional<double> units = {}, cpus = {}, gpus = {};
  std::optional<double> cpu = {}, mem = {}, gpu = {};  ///< percent
  std::optional<double> watts = {};
  std::optional<double> idle_kwh = {};  ///< since the month began, of what no unit had reserved
  std::optional<std::int64_t> idle_since_ms = {}, seen_ms = {};
};

/// The grid's carbon intensity according to one provider.
struct GridSeries {
  std::string provider = {}, country = {};
  std::vector<std::pair<std::int64_t, double>> points = {};  ///< epoch ms and g/kWh, ascending
};

/// What the TSDBs of the clusters know of nodes and of the grid. Safe for concurrent use. Errors:
/// kNotFound if the cluster has no TSDB, otherwise those of the TSDB.
class Fleet {
 public:
  /// Both must outlive it.
  Fleet(const ClusterTsdbs& tsdbs, const Clock& clock) : tsdbs_(&tsdbs), clock_(&clock) {}
  Fleet(const Fleet&) = delete;
  Fleet& operator=(const Fleet&) = delete;

  /// The nodes that were seen within a day, by name. Kept for a minute. `month_ms` is when the
  /// month began.
  Result<std::vector<Node>> nodes(const std::string& cluster_id, std::int64_t month_ms);
  /// The ids of the units that the node had in the period, at most some thousand.
  Result<std::vector<std::string>> units_on(const std::string& cluster_id,
                                            const std::string& host,
                                            std::int64_t from_ms,
                                            std::int64_t to_ms);
  /// From the first TSDB that has such series; the provider that counts most comes first.
  Result<std::vector<GridSeries>> grid(std::int64_t from_ms, std::int64_t to_ms);

 private:
  struct Kept {
    Clock::SteadyTime until;
    std::vector<Node> nodes;
  };
  using ByHost = std::map<std::string, Node>;

  [[nodiscard]] const ClusterTsdb* find(const std::string& cluster_id) const;
  [[nodiscard]] Result<std::vector<Node>> ask(const ClusterTsdb& tsdb,
                                              const std::string& cluster_id,
                                              std::int64_t month_ms) const;

  const ClusterTsdbs* tsdbs_;
  const Clock* clock_;
  Mutex mutex_;
  std::map<std::string, Kept> kept_ CEEMS_GUARDED_BY(mutex_);
};

}  // namespace ceems::api
