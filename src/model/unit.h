#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace ceems::model {

/// Numbers by sub-metric name, e.g. {"total": 0.25}. The metric columns hold them as JSON objects.
using MetricMap = std::map<std::string, double, std::less<>>;

/// The metrics of units and usage. Their names and weights are in store/schema/tables.h:
/// store::column_name() and store::weight_name(), which is empty for all but averages. The last
/// four hold what a site defines itself, by names of its own.
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
  kTotalCustomStats,
  kAvgCustomStats,
  kMinCustomStats,
  kMaxCustomStats,
};
inline constexpr std::size_t kMetricCount = 16;

/// A job, VM, pod or cgroup as one update delivers it. Times and metrics cover only the window of
/// the update, and the store adds them up. Texts come from resource managers and are untrusted:
/// escape them before printing.
struct Unit {
  std::string cluster_id;
  std::string resource_manager;
  std::string uuid;
  std::string name;
  std::string project;
  std::string groupname;
  std::string username;
  std::string created_at;  ///< local time, e.g. "2031-04-05T06:07:08+0200", or what the manager
                           ///< prints for an unknown time
  std::string started_at;
  std::string ended_at;
  std::int64_t created_at_ts = 0;  ///< epoch milliseconds; 0: unknown
  std::int64_t started_at_ts = 0;
  std::int64_t ended_at_ts = 0;  ///< 0: still running
  std::string elapsed;           ///< [D-]HH:MM:SS
  std::string state;
  std::string allocation = "{}";  ///< JSON object
  // Values that the manager had to put in place of ones that it could not read. The store marks
  // them and takes the first good ones instead.
  bool owner_stands_in = false;       ///< user and group, such as a number for a name
  bool allocation_stands_in = false;  ///< and the allocated times
  std::string tags = "{}";            ///< JSON object
  /// walltime, alloc_cputime, alloc_cpumemtime, alloc_gputime and alloc_gpumemtime in this window,
  /// in seconds (MiB·seconds for memory). A missing key counts as 0.
  MetricMap total_time_seconds;
  std::array<MetricMap, kMetricCount> metrics;
  std::array<bool, kMetricCount> has_metric{};  ///< false: no updater provided this metric
  // What else the window measured, for store/facts. Absent: not measured, which is not 0.
  /// Most memory that one node's part of the unit used at a time in the window. The store keeps the
  /// greatest of all windows.
  std::optional<double> peak_memory_bytes = {};
  /// From 0 to 1: the part of the window's alloc_gputime in which a GPU ran nothing. The store adds
  /// up seconds, idle and measured ones, so that windows count by their GPU time.
  std::optional<double> gpu_idle_share = {};
  /// The idle power of what the unit had reserved over the window, in kWh, and the part of it that
  /// the unit did not use at its time. The store adds them up.
  std::optional<double> idle_kwh = {};
  std::optional<double> not_used_kwh = {};
  bool ignore = false;  ///< the unit ran for less than the updater's cutoff

  MetricMap& metric(Metric m) { return metrics[static_cast<std::size_t>(m)]; }
  [[nodiscard]] const MetricMap& metric(Metric m) const {
    return metrics[static_cast<std::size_t>(m)];
  }
};

/// A user of one cluster with their projects.
struct User {
  std::string uid = {}, cluster_id = {}, resource_manager = {}, name = {};
  std::vector<std::string> projects = {}, tags = {};
};
/// A project of one cluster with its users.
struct Project {
  std::string uid = {}, cluster_id = {}, resource_manager = {}, name = {};
  std::vector<std::string> users = {}, tags = {};
};

struct Cluster {
  std::string id;       ///< `id` in the configuration
  std::string manager;  ///< "slurm", "local", ...
  std::vector<std::string> updaters;
};

/// The half-open span of time (start, end] that one update covers, in epoch milliseconds.
struct Window {
  std::int64_t start_ms = 0;
  std::int64_t end_ms = 0;
};

}  // namespace ceems::model
