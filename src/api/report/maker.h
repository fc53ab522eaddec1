#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "access/policy.h"
#include "advice/rule.h"
#include "api/report/measurements.h"
#include "base/result.h"
#include "model/unit.h"
#include "report/family.h"
#include "report/report.h"
#include "store/reader.h"

namespace ceems::api {

/// A unit as the database has it: the fields that a report needs. Times, maps and texts cover its
/// whole life.
struct StoredUnit {
  model::Unit unit = {};
  std::optional<double> allocated(std::string_view name) const;  ///< a number of `allocation`
  std::string tag(std::string_view name) const;                  ///< a text of `tags`, or ""
  /// What a metric holds for a name; nothing if it has none.
  std::optional<double> metric(model::Metric metric, std::string_view name) const;
};

/// Reads the units of a query. Errors are those of the reader.
Result<std::vector<StoredUnit>> read_stored_units(store::Reader& reader,
                                                  const store::UnitQuery& query);

/// Makes reports on demand: from the unit in the database, its family there, and, where there is a
/// TSDB, from the counters at the end of the run. Safe for concurrent use.
class ReportMaker {
 public:
  /// All outlive the maker; `measurements` may be null.
  ReportMaker(store::Reader& reader, MeasurementSource* measurements, const advice::RuleSet& rules)
      : reader_(reader), measurements_(measurements), rules_(rules) {}

  /// A rounded report of a unit that the caller may see, with everything in it. `members` are those
  /// whose usage of the unit's project the caller may see. If the TSDB does not respond, the report
  /// has what the database knows. Errors are those of the reader.
  Result<report::Report> make(const StoredUnit& unit,
                              const store::Scope& members,
                              std::int64_t now_ms) const;

 private:
  struct Family;
  [[nodiscard]] Result<Family> family_of(const StoredUnit& unit, const UnitRun& run) const;
  [[nodiscard]] std::int64_t until_of(const StoredUnit& unit, std::int64_t now_ms) const;

  store::Reader& reader_;
  MeasurementSource* measurements_;
  const advice::RuleSet& rules_;
};

}  // namespace ceems::api
