#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/tsdb/unit_charts.h"
#include "base/result.h"
#include "gate/shared_ids.h"

namespace ceems::api {

/// How the series of clusters that share a TSDB are told apart.
struct SeriesOptions {
  /// Whether selectors are confined to the cluster; absent: only where clusters share a TSDB.
  std::optional<bool> pin_cluster = {};
  std::string cluster_label = "ceems_id";  ///< its value is the ID of the cluster
};

/// Why a chart has no line.
enum class NoLine : std::uint8_t { kNotCollected, kTooShort };

/// One line of a chart.
struct Series {
  std::string name;                                     ///< "cpu", "memory", "power"
  std::string unit;                                     ///< "cores", "bytes", "watts"
  std::vector<std::pair<std::int64_t, double>> points;  ///< epoch ms and value, ascending
  /// What the line is of: hostname, index, gpuuuid, gpuiid, domain; or quantile. Not the empty
  /// ones.
  std::vector<std::pair<std::string, std::string>> labels = {};
  std::optional<double> limit = {};  ///< the amount that was reserved
  std::optional<NoLine> none = {};   ///< the chart has no line but this one, which has no points
  std::string collector = {};        ///< with `none`: which collector measures it, if not always
};

/// Whose series to read, and from when to when (epoch ms).
struct SeriesRequest {
  std::string cluster_id = {};
  std::string uuid = {};
  std::int64_t from_ms = 0;
  std::int64_t to_ms = 0;
  /// The lives of the uuid that the caller may see, and those that the caller must not.
  gate::SharedId lives = {};
  /// Names of unit_charts(). Empty: cpu, memory and power, each with one line even without data.
  std::vector<std::string> charts = {};
  ChartBy by = ChartBy::kSum;     ///< where a chart has no such lines, it has one
  std::int64_t max_points = 300;  ///< of a line
  std::size_t max_lines = 64;     ///< of a chart: if there are more, it has their quantiles
};

/// Reads the time series of a unit for its page. Safe for concurrent use.
class SeriesSource {
 public:
  virtual ~SeriesSource() = default;
  /// The charts of one uuid during its own lives (gate::own_parts()). kNotFound if the cluster has
  /// no source, kUnavailable if it does not respond in time, kPermissionDenied if it is unclear
  /// whether the series belong to the cluster.
  virtual Result<std::vector<Series>> series(const SeriesRequest& request) = 0;
};

}  // namespace ceems::api
