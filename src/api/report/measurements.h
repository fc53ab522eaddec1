#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/report/marks.h"
#include "base/result.h"
#include "report/report.h"
#include "store/reports.h"
#include "store/strip.h"

namespace ceems::api {

using Number = report::Number;

/// What the exporter's counters had reached at the end of a unit, by node.
struct NodeMeasurements {
  struct Gpu {
    std::string index = {}, uuid = {};
    Number busy_seconds = {}, sm_seconds = {}, mem_peak = {}, mem_total = {};
  };
  std::string node = {};
  Number cpus = {}, cpu_seconds = {}, cpu_used_max = {};
  Number mem_peak = {}, mem_total = {}, mem_fail_count = {};
  Number idle_seconds = {}, io_bytes = {};
  /// Of the collector `placement`: what was so at least half of the time, and the most CPUs at any.
  Number busy_threads = {}, far_gpus = {}, thread_cpus = {};
  /// By domain: all energy, the part of it that is idle power of what was reserved, and what
  /// was not used of it.
  std::map<std::string, double> joules = {}, idle_joules = {}, not_used_joules = {};
  std::vector<Gpu> gpus = {};
  Number node_cpus = {}, node_mem = {};  ///< of the machine
  double covered_seconds = 0;
};

struct UnitMeasurements {
  std::vector<NodeMeasurements> nodes = {};
  std::string method = {};  ///< the weakest of "measured", "derived" and "modelled"; empty: unknown
  bool marked = false;      ///< it has series of marks (marks())
};

/// One life of a unit.
struct UnitRun {
  std::string uuid = {};
  std::int64_t started_ms = 0;
  std::int64_t ended_ms = 0;  ///< of a running unit: now
  /// No sample after this time is read, because the next life of the ID may be somebody else's.
  std::int64_t until_ms = 0;
};

/// The few numbers of an earlier run that rules compare.
using RunMeasurements = store::RunNumbers;
/// The measurements of a run.
RunMeasurements numbers_of(const UnitMeasurements& unit);

/// Reads what the TSDB knows of units. Safe for concurrent use.
class MeasurementSource {
 public:
  virtual ~MeasurementSource() = default;
  /// Whether the cluster has a TSDB.
  [[nodiscard]] virtual bool measures(std::string_view /*cluster_id*/) const { return true; }
  /// Ends questions that wait for an answer, for good.
  virtual void cancel() {}
  /// kNotFound if the cluster has no TSDB. A TSDB without data of the unit gives no nodes. Passes
  /// on other errors of tsdb::Client.
  virtual Result<UnitMeasurements> measure(const std::string& cluster_id, const UnitRun& run) = 0;
  /// The same for many runs, in their order, by few questions. Fails as a whole.
  virtual Result<std::vector<UnitMeasurements>> measure_all(const std::string& cluster_id,
                                                            const std::vector<UnitRun>& runs);
  /// The few numbers of earlier runs, in their order.
  virtual Result<std::vector<RunMeasurements>> measure_runs(const std::string& cluster_id,
                                                            const std::vector<UnitRun>& runs) = 0;
  /// What a run used over its life, by one question. Nothing is known without data, of a run that
  /// is too short, and where this is not measured.
  virtual Result<store::Strip> strip(const std::string& /*cluster_id*/, const UnitRun& /*run*/) {
    return store::Strip{};
  }
  /// What units have marked, in the order of the runs, none of which has the ID of another, by few
  /// questions. Nothing where this is not read.
  virtual Result<std::vector<UnitMarks>> marks(const std::string& /*cluster_id*/,
                                               const std::vector<UnitRun>& runs) {
    return std::vector<UnitMarks>(runs.size());
  }
};

}  // namespace ceems::api
