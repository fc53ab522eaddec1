#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/tsdb/hour_energy.h"
#include "api/tsdb/neighbours_tsdb.h"
#include "api/tsdb/series.h"
#include "api/tsdb/series_tsdb.h"
#include "api/tsdb/stragglers_tsdb.h"
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
  std::optional<double> idle_kwh = {};     ///< since the month began, of what no unit had reserved
  std::optional<double> month_kwh = {};    ///< of all of the node, over the same samples
  std::optional<double> month_hours = {};  ///< of the month, in which there are such samples
  std::optional<std::int64_t> idle_since_ms = {}, seen_ms = {};
};

/// The grid's carbon intensity according to one provider.
struct GridSeries {
  std::string provider = {}, country = {};
  std::vector<std::pair<std::int64_t, double>> points = {};  ///< epoch ms and g/kWh, ascending
};

/// What a unit did on a GPU in a period: shares of the whole period, from 0 to 1. What is not
/// known is absent.
struct GpuPart {
  std::string uuid = {};
  std::optional<double> busy = {}, sm = {};
};

/// A GPU, or an instance of one, over some periods.
struct GpuRow {
  struct Cell {
    bool seen = false;  ///< false: it is not known what the GPU did
    std::vector<GpuPart> parts = {};
  };
  std::string host = {}, index = {}, instance = {};
  std::vector<Cell> cells = {};
};

/// The GPUs of a cluster over periods that end at these times (epoch ms, ascending).
struct GpuBoard {
  std::vector<std::int64_t> ends_ms = {};
  std::vector<GpuRow> rows = {};  ///< by host, index and instance
};
inline constexpr std::int64_t kGpuPeriodMs = std::int64_t{10} * 60 * 1000;
inline constexpr std::size_t kGpuPeriods = 7;

/// What a node, or one of its GPUs, did in each hour of a day. What is not known is absent.
using HourValues = std::vector<std::optional<double>>;
struct GpuDay {
  std::string index = {}, instance = {};
  std::optional<double> now = {};  ///< percent, over the last 10 min
  HourValues values = {};          ///< percent
};
struct NodeDay {
  std::string states = {};        ///< a letter an hour: 'b' busy, 'i' idle, 's' silent
  HourValues values = {};         ///< of the metric; empty for "state"
  std::vector<GpuDay> gpus = {};  ///< by index and instance; of the metric "gpu"
};

/// All nodes of a cluster over hours that end at these times (epoch ms, ascending).
struct FleetDay {
  std::vector<std::int64_t> ends_ms = {};
  std::map<std::string, NodeDay> nodes = {};  ///< by name
};
inline constexpr std::size_t kFleetHours = 24;

/// A unit that did nothing for an hour or longer.
struct IdleUnit {
  std::string uuid = {};
  std::int64_t since_ms = 0;  ///< at least since then; two days ago if it is longer
  std::optional<double> watts = {};
};

/// By node, the signs of broken hardware of the last day by name (fleet::name_of()), where there
/// are some: seconds of throttling, otherwise numbers of events.
using HardSigns = std::map<std::string, std::map<std::string, double>>;

/// Moments, epoch ms, and values, ascending.
using Points = std::vector<std::pair<std::int64_t, double>>;

inline constexpr std::chrono::milliseconds kFleetKept{60'000};  ///< for how long answers are kept
inline constexpr std::chrono::milliseconds kFleetTimeout{10'000};  ///< of one query
inline constexpr std::chrono::minutes kAllStragglersKept{5};

/// Data about nodes, GPUs and the grid from the TSDBs of the clusters. Safe for concurrent use.
/// Errors: kNotFound if the cluster has no TSDB, otherwise any of the TSDB.
class Fleet {
 public:
  /// Both must outlive it.
  Fleet(const ClusterTsdbs& tsdbs, const Clock& clock) : tsdbs_(&tsdbs), clock_(&clock) {}
  Fleet(const Fleet&) = delete;
  Fleet& operator=(const Fleet&) = delete;

  /// The nodes that were seen within a day, by name. Kept for a minute. `month_ms` is when the
  /// month began.
  Result<std::vector<Node>> nodes(const std::string& cluster_id, std::int64_t month_ms);
  /// What units did on the GPUs in the last periods before the minute of `now_ms`, by one range
  /// query. Kept for that minute.
  Result<std::shared_ptr<const GpuBoard>> gpus(const std::string& cluster_id, std::int64_t now_ms);
  /// What nodes did in each of the last 24 hours before the minute of `now_ms`: `metric` is one of
  /// day_metrics(). At most four queries; kept for that minute.
  Result<std::shared_ptr<const FleetDay>> day(const std::string& cluster_id,
                                              std::string_view metric,
                                              std::int64_t now_ms);
  /// The ids of the units that the node had in the period, at most some thousand.
  Result<std::vector<std::string>> units_on(const std::string& cluster_id,
                                            const std::string& host,
                                            std::int64_t from_ms,
                                            std::int64_t to_ms);
  /// What the node did over time: "cpu", "memory", "gpu" (percent), "power" (watts) and "units",
  /// with at most 300 points each; only `names`, or all if it is empty. Without readings: no
  /// points.
  Result<std::vector<Series>> node_series(const std::string& cluster_id,
                                          const std::string& host,
                                          const std::vector<std::string>& names,
                                          std::int64_t from_ms,
                                          std::int64_t to_ms);
  /// From the first TSDB that has such series; the provider that counts most comes first.
  Result<std::vector<GridSeries>> grid(std::int64_t from_ms, std::int64_t to_ms);
  /// The same by hour: each value is the mean of the hour that ends at its time.
  Result<std::vector<GridSeries>> grid_hours(std::int64_t from_ms, std::int64_t to_ms);
  /// The units that have done nothing for the last hour on any of their nodes, by the seconds that
  /// the exporter counts as idle, and that draw at most a tenth more than the idle power of what
  /// they reserved. A unit of which that is not known is not among them. Three queries; kept for a
  /// minute.
  Result<std::vector<IdleUnit>> idle_units(const std::string& cluster_id);
  /// Three queries, not kept.
  [[nodiscard]] Result<HardSigns> hard_signs(const std::string& cluster_id) const;
  /// The sum of a query's series at each step, of the cluster, or of the first one that has a TSDB.
  /// The last answers are kept for a minute.
  Result<Points> values(const std::string& cluster_id,
                        const std::string& query,
                        std::int64_t from_ms,
                        std::int64_t to_ms,
                        std::chrono::milliseconds step);

  /// The energy of units, or of the whole cluster, by hour. That of a whole cluster is kept for a
  /// minute.
  Result<std::shared_ptr<const EnergyByUnit>> energy_by_hour(const EnergyRequest& request);

  /// The slow members of a unit. The answer is kept for a minute.
  Result<std::vector<fleet::Straggler>> stragglers(const std::string& cluster_id,
                                                   const StragglerRequest& request);
  /// The running units that have slow members. Four queries; kept for five minutes.
  Result<std::shared_ptr<const std::vector<StragglersOfUnit>>> all_stragglers(
      const std::string& cluster_id);

  /// The pairs of units of these nodes of which one slows the other down, in the two hours up to
  /// this time. One query; kept for a minute.
  Result<std::vector<NodeNeighbours>> neighbours(const std::string& cluster_id,
                                                 const std::vector<std::string>& nodes,
                                                 std::int64_t until_ms);
  /// The nodes that a unit had in the two hours up to this time. One query, not kept.
  [[nodiscard]] Result<std::vector<std::string>> nodes_of(const std::string& cluster_id,
                                                          const std::string& uuid,
                                                          std::int64_t until_ms) const;
  /// Who asks what of the file systems. At most two queries; kept for a minute.
  Result<std::shared_ptr<const IoLoad>> io_load(const std::string& cluster_id);

  /// The names of node_series().
  static std::span<const std::string_view> node_series_names();
  /// The metrics of day(): power (watts), cpu, memory, gpu (percent) and state.
  static std::span<const std::string_view> day_metrics();

 private:
  struct Kept {
    Clock::SteadyTime until;
    std::vector<Node> nodes;
  };
  struct KeptIdle {
    Clock::SteadyTime until;
    std::vector<IdleUnit> units;
  };
  struct KeptPoints {
    Clock::SteadyTime until;
    Points points;
  };
  struct KeptEnergy {
    Clock::SteadyTime until;
    std::shared_ptr<const EnergyByUnit> energy;
  };
  struct KeptStragglers {
    Clock::SteadyTime until;
    std::vector<fleet::Straggler> rows;
  };
  struct KeptAllStragglers {
    Clock::SteadyTime until;
    std::shared_ptr<const std::vector<StragglersOfUnit>> units;
  };
  struct KeptNeighbours {
    Clock::SteadyTime until;
    std::vector<NodeNeighbours> nodes;
  };
  struct KeptLoad {
    Clock::SteadyTime until;
    std::shared_ptr<const IoLoad> load;
  };
  struct KeptDay {
    std::int64_t minute_ms;
    std::shared_ptr<const FleetDay> day;
  };
  using ByHost = std::map<std::string, Node>;

  /// Never null. kNotFound if the cluster has none.
  [[nodiscard]] Result<const ClusterTsdb*> tsdb_of(const std::string& cluster_id) const;
  [[nodiscard]] Result<std::vector<Node>> ask(const ClusterTsdb& tsdb,
                                              const std::string& cluster_id,
                                              std::int64_t month_ms) const;
  [[nodiscard]] Result<std::vector<IdleUnit>> ask_idle(const ClusterTsdb& tsdb,
                                                       const std::string& cluster_id) const;
  [[nodiscard]] Result<std::vector<GridSeries>> ask_grid(const std::string& query,
                                                         std::int64_t from_ms,
                                                         std::int64_t to_ms,
                                                         std::chrono::milliseconds step) const;

  const ClusterTsdbs* tsdbs_;
  const Clock* clock_;
  Mutex mutex_;
  std::map<std::string, Kept> kept_ CEEMS_GUARDED_BY(mutex_);
  std::map<std::string, std::shared_ptr<const GpuBoard>> kept_gpus_ CEEMS_GUARDED_BY(mutex_);
  std::map<std::string, KeptDay> days_ CEEMS_GUARDED_BY(mutex_);  ///< by metric and cluster
  std::map<std::string, KeptIdle> idle_ CEEMS_GUARDED_BY(mutex_);
  std::map<std::string, KeptStragglers> stragglers_ CEEMS_GUARDED_BY(mutex_);  ///< by run
  std::map<std::string, KeptAllStragglers> all_stragglers_ CEEMS_GUARDED_BY(mutex_);
  std::map<std::string, KeptNeighbours> neighbours_ CEEMS_GUARDED_BY(mutex_);  ///< by question
  std::map<std::string, KeptLoad> loads_ CEEMS_GUARDED_BY(mutex_);
  std::map<std::string, KeptPoints> points_ CEEMS_GUARDED_BY(mutex_);  ///< by all that was asked
  std::map<std::string, KeptEnergy> energy_ CEEMS_GUARDED_BY(mutex_);  ///< of clusters, likewise
};

}  // namespace ceems::api
