#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "gate/shared_ids.h"

namespace ceems::api {

/// How the series of clusters that share a TSDB are told apart.
struct SeriesOptions {
  /// Whether selectors are confined to the cluster; absent: only where clusters share a TSDB.
  std::optional<bool> pin_cluster = {};
  std::string cluster_label = "ceems_id";  ///< its value is the ID of the cluster
};

/// One line of a chart.
struct Series {
  std::string name;                                     ///< "cpu", "memory", "power"
  std::string unit;                                     ///< "cores", "bytes", "watts"
  std::vector<std::pair<std::int64_t, double>> points;  ///< epoch ms and value, ascending
};

/// Whose series to read, and from when to when (epoch ms).
struct SeriesRequest {
  std::string cluster_id = {};
  std::string uuid = {};
  std::int64_t from_ms = 0;
  std::int64_t to_ms = 0;
  /// The lives of the uuid that the caller may see, and those that the caller must not.
  gate::SharedId lives = {};
};

/// Reads the time series of a unit for its page. Safe for concurrent use.
class SeriesSource {
 public:
  virtual ~SeriesSource() = default;
  /// All series of one uuid during its own lives (gate::own_parts()). A series without data has no
  /// points. kNotFound if the cluster has no source, kUnavailable if it does not respond,
  /// kPermissionDenied if it is unclear whether the series belong to the cluster.
  virtual Result<std::vector<Series>> series(const SeriesRequest& request) = 0;
};

}  // namespace ceems::api
