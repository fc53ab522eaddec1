#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/tsdb/series_tsdb.h"
#include "base/result.h"
#include "fleet/io_storms.h"
#include "fleet/neighbours.h"

namespace ceems::api {

/// The pairs of a node.
struct NodeNeighbours {
  std::string node;
  std::vector<fleet::Neighbour> pairs;
};

/// What a unit asked of a file system on average of the last hour, a second, and its share of what
/// all asked for.
struct FileSystemTop {
  std::string file_system, uuid;
  std::optional<double> bytes = {}, requests = {}, metadata = {};
  std::optional<double> share = {};  ///< the highest of the three
};

/// Who asks what of the file systems of a cluster.
struct IoLoad {
  std::vector<fleet::IoStorm> storms;  ///< of which the last hour has a part
  std::vector<FileSystemTop> top;      ///< by file system, the highest share first
  std::int64_t from_ms = 0;            ///< when the first window of the storms begins
  std::int64_t step_ms = 0;
};

/// A range query over the two hours up to `until_ms`. Nodes with one unit have no pairs.
/// Passes on errors of tsdb::Client; kUnavailable for more series than are read.
Result<std::vector<NodeNeighbours>> read_neighbours(const ClusterTsdb& tsdb,
                                                    std::string_view cluster_id,
                                                    const std::vector<std::string>& nodes,
                                                    std::int64_t until_ms);

/// The nodes that a unit had in the two hours up to `until_ms`, by one query.
Result<std::vector<std::string>> read_nodes_of(const ClusterTsdb& tsdb,
                                               std::string_view cluster_id,
                                               std::string_view uuid,
                                               std::int64_t until_ms);

/// Likewise over two hours: the units that ask most of each file system, by Lustre's servers and by
/// eBPF, and what all units ask of it; where one asks for most, by a second query the units that
/// wait for I/O. Local directories are left out. What eBPF counts of metadata has no file system;
/// its name is empty.
Result<IoLoad> read_io_load(const ClusterTsdb& tsdb,
                            std::string_view cluster_id,
                            std::int64_t until_ms);

}  // namespace ceems::api
