#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "tool/db/progress.h"
#include "tool/db/tables.h"

namespace ceems::tool::db {

/// What verify() found.
struct Findings {
  struct Check {
    std::string name = {};   ///< "file", "schema", "values", "sums", "spans"
    std::string about = {};  ///< what was checked
    std::int64_t faults = 0;
    std::vector<std::string> lines = {};  ///< the first of them
  };
  std::string database = {};
  std::vector<Check> checks = {};
  std::vector<std::string> notes = {};  ///< remarks that are not faults

  [[nodiscard]] bool good() const;
};

/// Checks a database without changing it:
/// - file: SQLite's own check of all pages and indexes
/// - schema: versions, tables, columns and indexes
/// - values: every JSON text can be read
/// - sums: the usage of a cluster is not less than the sum of its units, nor than the sum of its
/// days.
///   It may be more, because units and days are purged.
/// - spans: the sums over spans of time equal the sums of their units and days
/// Passes on errors of opening it; damage is a finding.
Findings verify(Tables& tables, Progress& progress);

std::string findings_text(const Findings& findings);
std::string findings_json(const Findings& findings);

/// Compares the sums of every span that ceems_unit_spans lists (store/sums/unit_sums.h) with the
/// rows that they are the sums of: spans of the first level with units or daily_usage, others with
/// the spans one level below. Calls `fault` with a line for each difference. Both tables and those
/// two must have all columns. Memory holds one span.
Result<> check_spans(Tables& tables,
                     Progress& progress,
                     const std::function<void(std::string)>& fault);

}  // namespace ceems::tool::db
