#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace ceems::api {

/// One line of a chart.
struct Series {
  std::string name;                                     ///< "cpu", "memory", "power"
  std::string unit;                                     ///< "cores", "bytes", "watts"
  std::vector<std::pair<std::int64_t, double>> points;  ///< epoch ms and value, ascending
};

/// Reads the time series of a unit for its page. Safe for concurrent use.
class SeriesSource {
 public:
  virtual ~SeriesSource() = default;
  /// All series of one unit between two times (epoch ms). A series without data has no points.
  /// kNotFound if the cluster has no source, kUnavailable if it does not respond.
  virtual Result<std::vector<Series>> series(const std::string& cluster_id,
                                             const std::string& uuid,
                                             std::int64_t from_ms,
                                             std::int64_t to_ms) = 0;
};

}  // namespace ceems::api
