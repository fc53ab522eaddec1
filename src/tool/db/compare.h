#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "tool/db/layout.h"
#include "tool/db/tables.h"

namespace ceems::tool::db {

/// How rows change on the way to a database. PostgreSQL has no NULL in these tables, only UTF-8
/// without NUL bytes, and only arrays in columns of lists.
class Conversion {
 public:
  /// `table` outlives the object.
  Conversion(store::Dialect destination, const TableLayout& table);
  /// Changes a row; returns the number of values that mean something else now: texts that were not
  /// UTF-8, and lists that were none.
  std::int64_t apply(Row& row) const;

 private:
  const TableLayout* table_;
  bool postgres_;
};

/// The sums of the numbers of a metric by their name, "total_time_seconds.walltime".
using MetricSums = std::map<std::string, double>;
/// Adds the numbers of a row.
void add_sums(const TableLayout& table, const Row& row, MetricSums& sums);

struct TableComparison {
  std::string table = {};
  std::int64_t rows_from = 0;
  std::int64_t rows_to = 0;
  std::int64_t different = 0;                 ///< rows that differ, or that one side lacks
  std::vector<std::string> differences = {};  ///< the first of them
  MetricSums sums_from = {};
  MetricSums sums_to = {};

  [[nodiscard]] bool equal() const { return different == 0 && rows_from == rows_to; }
};

/// Compares all rows and all columns of a table. Reads both sides side by side, a row at a time.
/// `on_row` is called for each row of the source.
Result<TableComparison> compare_table(Tables& from,
                                      Tables& to,
                                      const TableLayout& table,
                                      const std::function<void()>& on_row);

}  // namespace ceems::tool::db
