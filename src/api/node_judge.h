#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "api/site.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "fleet/node_health.h"
#include "metrics/registry.h"
#include "store/reader.h"

namespace ceems::api {

class Fleet;

/// The sick nodes of a cluster.
struct JudgedNodes : fleet::FleetHealth {
  bool without_signs = false;  ///< the TSDB did not respond
};

/// Judges which nodes of a cluster are sick (fleet/node_health.h): from what nodes drew in units
/// and how those ended, as the database has it, and from signs of broken hardware in the TSDB. Safe
/// for concurrent use.
class NodeJudge {
 public:
  struct Sources {
    store::Reader* reader = nullptr;
    Fleet* fleet = nullptr;  ///< null: no cluster has a TSDB
    const SiteOptions* site = nullptr;
    metrics::Registry* registry = nullptr;
    const Clock* clock = nullptr;
  };
  /// All outlive it.
  explicit NodeJudge(const Sources& sources) : sources_(sources) {}

  /// Kept for some minutes, or for one if the TSDB does not respond. Then, or without a TSDB, the
  /// signs of hardware are missing. Passes on errors of the reader.
  Result<std::shared_ptr<const JudgedNodes>> judge(const SiteCluster& cluster)
      CEEMS_EXCLUDES(mutex_);

  /// Sets ceems_node_health_effect, ceems_node_health_score and ceems_api_server_straggler_units by
  /// a thread, at most every five minutes.
  void set_gauges() CEEMS_EXCLUDES(mutex_);

 private:
  struct Kept {
    Clock::SteadyTime until;
    std::shared_ptr<const JudgedNodes> health;
  };
  void measure_all();
  void count_stragglers(const SiteCluster& cluster);

  /// Effect and score of all nodes that the gauges have had, by cluster. Of the measurer alone.
  std::map<std::string, std::map<std::string, std::pair<double, int>>> gauged_;

  const Sources sources_;
  Mutex mutex_;
  std::map<std::string, Kept> kept_ CEEMS_GUARDED_BY(mutex_);
  Clock::SteadyTime next_gauges_ CEEMS_GUARDED_BY(mutex_);
  bool measuring_ CEEMS_GUARDED_BY(mutex_) = false;
  std::jthread measurer_ CEEMS_GUARDED_BY(mutex_);  // last, so that it ends before the others
};

/// The histories of the nodes of a cluster, from its rows. A failed unit is not explained if its
/// node failed, or if a unit of the same user and family ended without a failure on another node.
/// Nodes of a class that is not known are left out. Pure.
std::vector<fleet::NodeHistory> node_histories(const std::vector<store::NodeEffect>& rows,
                                               const std::vector<store::KnownNode>& nodes);

}  // namespace ceems::api
