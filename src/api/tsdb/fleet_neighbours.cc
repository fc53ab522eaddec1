// Who disturbs whom, kept for a minute.
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/tsdb/fleet.h"
#include "base/strings.h"

namespace ceems::api {
namespace {

constexpr std::size_t kMaxKeptNeighbours = 200;

}  // namespace

Result<std::vector<NodeNeighbours>> Fleet::neighbours(const std::string& cluster_id,
                                                      const std::vector<std::string>& nodes,
                                                      std::int64_t until_ms) {
  CEEMS_TRY(tsdb, tsdb_of(cluster_id));
  if (nodes.empty()) {
    return std::vector<NodeNeighbours>{};
  }
  const std::string key =
      fmt::format("{}\n{}\n{}", cluster_id, until_ms / kFleetKept.count(), fmt::join(nodes, "\n"));
  const auto now = clock_->steady_now();
  {
    const MutexLock lock(mutex_);
    const auto found = neighbours_.find(key);
    if (found != neighbours_.end() && now < found->second.until) {
      return found->second.nodes;
    }
  }
  auto rows = read_neighbours(*tsdb, cluster_id, nodes, until_ms);
  if (rows) {
    const MutexLock lock(mutex_);
    if (neighbours_.size() >= kMaxKeptNeighbours) {
      neighbours_.clear();
    }
    neighbours_[key] = {.until = now + kFleetKept, .nodes = *rows};
  }
  return rows;
}

Result<std::vector<std::string>> Fleet::nodes_of(const std::string& cluster_id,
                                                 const std::string& uuid,
                                                 std::int64_t until_ms) const {
  CEEMS_TRY(tsdb, tsdb_of(cluster_id));
  return read_nodes_of(*tsdb, cluster_id, uuid, until_ms);
}

Result<std::shared_ptr<const IoLoad>> Fleet::io_load(const std::string& cluster_id) {
  CEEMS_TRY(tsdb, tsdb_of(cluster_id));
  const auto now = clock_->steady_now();
  {
    const MutexLock lock(mutex_);
    const auto found = loads_.find(cluster_id);
    if (found != loads_.end() && now < found->second.until) {
      return found->second.load;
    }
  }
  CEEMS_TRY(read, read_io_load(*tsdb, cluster_id, clock_->now_ms()));
  auto load = std::make_shared<const IoLoad>(std::move(read));
  const MutexLock lock(mutex_);
  loads_[cluster_id] = {.until = now + kFleetKept, .load = load};
  return load;
}

}  // namespace ceems::api
