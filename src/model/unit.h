#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace ceems::model {

/// Numbers by sub-metric name, e.g. {"total": 0.25}; the JSON objects of the metric columns.
using MetricMap = std::map<std::string, double, std::less<>>;

/// What is measured about units and usage. Names and weights are in store/schema/tables.h.
enum class Metric : std::size_t {
  kAvgCpuUsage,
  kAvgCpuMemUsage,
  kTotalCpuEnergyUsageKwh,
  kTotalCpuEmissionsGms,
  kAvgGpuUsage,
  kAvgGpuMemUsage,
  kTotalGpuEnergyUsageKwh,
  kTotalGpuEmissionsGms,
  kTotalIoWriteStats,
  kTotalIoReadStats,
  kTotalIngressStats,
  kTotalEgressStats,
};
inline constexpr std::size_t kMetricCount = 12;

/// A job, VM, pod or cgroup as one update run delivers it: times and metrics cover the run's window
/// only, the store accumulates. Texts come from managers and are hostile until printed escaped.
struct Unit {
  std::string cluster_id;
  std::string resource_manager;
  std::string uuid;
  std::string name;
  std::string project;
  std::string groupname;
  std::string username;
  std::string
      created_at;  ///< LOCALZ, e.g. "2031-04-05T06:07:08+0200", or the manager's word for unknown
  std::string started_at;
  std::string ended_at;
  std::int64_t created_at_ts = 0;  ///< epoch milliseconds; 0: unknown
  std::int64_t started_at_ts = 0;
  std::int64_t ended_at_ts = 0;  ///< 0: still running
  std::string elapsed;           ///< [D-]HH:MM:SS
  std::string state;
  std::string allocation = "{}";  ///< JSON object
  std::string tags = "{}";        ///< JSON object
  /// walltime, alloc_cputime, alloc_cpumemtime, alloc_gputime, alloc_gpumemtime in this window;
  /// seconds (MiB·seconds for memory). A missing key counts as 0.
  MetricMap total_time_seconds;
  std::array<MetricMap, kMetricCount> metrics;
  std::array<bool, kMetricCount> has_metric{};  ///< false: no updater said anything about it
  bool ignore = false;                          ///< shorter than the updater's cutoff

  MetricMap& metric(Metric m) { return metrics[static_cast<std::size_t>(m)]; }
  [[nodiscard]] const MetricMap& metric(Metric m) const {
    return metrics[static_cast<std::size_t>(m)];
  }
};

/// A user with their projects, or a project with its users, of one cluster.
struct User {
  std::string uid = {}, cluster_id = {}, resource_manager = {}, name = {};
  std::vector<std::string> projects = {}, tags = {};
};
struct Project {
  std::string uid = {}, cluster_id = {}, resource_manager = {}, name = {};
  std::vector<std::string> users = {}, tags = {};
};

struct Cluster {
  std::string id;       ///< config id
  std::string manager;  ///< "slurm", "local", ...
  std::vector<std::string> updaters;
};

/// The half-open period (start, end] that one update run covers, epoch milliseconds.
struct Window {
  std::int64_t start_ms = 0;
  std::int64_t end_ms = 0;
};

}  // namespace ceems::model
