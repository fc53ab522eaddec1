#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "access/policy.h"
#include "advice/rules_in_use.h"
#include "api/report/measurements.h"
#include "base/recent_map.h"
#include "base/result.h"
#include "model/unit.h"
#include "report/report.h"
#include "store/reader.h"
#include "store/reports.h"

namespace ceems::api {

class Accounting;
struct Evidence;
class Costs;

/// A unit as the database has it: the fields that a report needs. Times, maps and texts cover its
/// whole life.
struct StoredUnit {
  model::Unit unit = {};
  [[nodiscard]] std::optional<double> allocated(
      std::string_view name) const;                            ///< a number of `allocation`
  [[nodiscard]] std::string tag(std::string_view name) const;  ///< a text of `tags`, or ""
  /// What a metric holds for a name; nothing if it has none.
  [[nodiscard]] std::optional<double> metric(model::Metric metric, std::string_view name) const;
};

inline store::ReportKey key_of(const model::Unit& unit) {
  return {.cluster_id = unit.cluster_id, .uuid = unit.uuid, .started_at_ts = unit.started_at_ts};
}

/// Reads the units of a query. Passes on errors of the reader.
Result<std::vector<StoredUnit>> read_stored_units(store::Reader& reader,
                                                  const store::UnitQuery& query);

/// How long after the end of a unit its last samples become visible: a scrape, and what it takes.
inline constexpr std::int64_t kSettleMs = 90'000;

/// A node of a run, and its mean power where that tells something of the node (unit_nodes.h).
struct NodeLoad {
  std::string node = {};
  std::optional<double> watts = {};
};

/// A report, and what reports of later runs of the family and judgements of nodes need of this run.
struct MadeReport {
  report::Report report = {};
  store::RunNumbers numbers = {};
  std::vector<NodeLoad> nodes = {};
};

struct MadeReports {
  std::vector<MadeReport> reports = {};
  /// Why the TSDB told nothing: the reports have what the database knows.
  std::optional<Error> missing = {};
};

/// Makes reports: from units in the database, their families there, and, where there is a TSDB,
/// from the counters at the end of the runs. Safe for concurrent use.
class ReportMaker {
 public:
  /// All outlive the maker; `measurements` and `accounting` may be null.
  ReportMaker(store::Reader& reader,
              MeasurementSource* measurements,
              const advice::RulesInUse& rules,
              const Accounting* accounting = nullptr)
      : reader_(reader), measurements_(measurements), rules_(rules), accounting_(accounting) {}

  /// A rounded report of a unit that the caller may see, with everything in it. `members` are the
  /// users whose usage of the unit's project the caller may see. If the TSDB does not respond, the
  /// report uses the database only. Passes on errors of the reader.
  [[nodiscard]] Result<report::Report> make(const StoredUnit& unit,
                                            const store::Scope& members,
                                            std::int64_t now_ms) const;

  /// Sets the cost of a stored report that has none, as of one that was made before there were
  /// prices.
  void add_cost(const StoredUnit& unit, std::int64_t now_ms, report::Report& report) const;

  /// Whether there is a TSDB for the units of a cluster.
  [[nodiscard]] bool measures(std::string_view cluster_id) const {
    return measurements_ != nullptr && measurements_->measures(cluster_id);
  }

  /// The same for units of one cluster, in their order, with few questions to the TSDB.
  [[nodiscard]] Result<MadeReports> make_all(const std::vector<StoredUnit>& units,
                                             const store::Scope& members,
                                             std::int64_t now_ms) const;

  /// What a run used over its life (MeasurementSource::strip()). The cluster must have a TSDB.
  [[nodiscard]] Result<store::Strip> strip(const std::string& cluster_id,
                                           const UnitRun& run) const {
    return measurements_->strip(cluster_id, run);
  }
  /// What a run has marked (MeasurementSource::marks()). The cluster must have a TSDB.
  [[nodiscard]] Result<UnitMarks> marks(const std::string& cluster_id, const UnitRun& run) const;

 private:
  struct Family;
  struct Batch;
  [[nodiscard]] Result<> find_families(Batch& batch) const;
  void measure_earlier(Batch& batch) const;
  [[nodiscard]] Result<> read_flavors(Batch& batch, const advice::RuleSet& rules) const;
  [[nodiscard]] Result<> find_longest_limits(Batch& batch) const;
  [[nodiscard]] Result<> read_not_used(Batch& batch) const;
  void measure_recent(Batch& batch) const;
  void set_ends(Batch& batch, std::int64_t now_ms) const;
  void measure(Batch& batch) const;
  void read_marks(Batch& batch) const;
  void set_cost(const StoredUnit& unit,
                Costs& costs,
                std::int64_t now_ms,
                report::Report& report) const;
  static advice::Facts judged_facts(const Batch& batch,
                                    std::size_t place,
                                    const Evidence& whole,
                                    const report::Report& report,
                                    const advice::RuleSet& rules);
  static report::Report finish(const Batch& batch, std::size_t place, const advice::RuleSet& rules);

  store::Reader& reader_;
  MeasurementSource* measurements_;
  const advice::RulesInUse& rules_;
  const Accounting* accounting_;
  /// The longest limits of partitions by the hour to which they were looked up.
  mutable RecentMap<std::optional<double>> longest_limits_{1000, 256};
};

}  // namespace ceems::api
