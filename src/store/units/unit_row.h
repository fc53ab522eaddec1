#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "model/unit.h"
#include "store/schema/column.h"
#include "store/sql/session.h"

namespace ceems::store {

// A row of `units` column by column, as its table says. Pure functions.

/// What the rows of one write have in common.
struct Batch {
  model::Cluster cluster;
  model::Window window;
  std::string updated;  ///< LOCAL end of the window
  std::string day;      ///< marker of the window's day
  std::int64_t day_ms = 0;
};

/// The texts of the times, of the metrics in the order of model::Metric, and of the weights.
using MapTexts = std::array<std::string, model::kMetricCount + 2>;

/// What is read of a row before a window is added to it.
struct StoredUnit {
  std::int64_t id = 0;
  /// Holds the columns that tell units apart, the moments, and the columns that build on what is
  /// stored; other members are as if nothing was known.
  model::Unit unit;
  std::int64_t num_updates = 0;
  std::int64_t last_updated_at_ts = 0;
  MapTexts maps;
};

/// Reads StoredUnits. Immutable.
class StoredColumns {
 public:
  /// The table has to outlive the object.
  explicit StoredColumns(const Table& table);

  /// "id,uuid,...": what to select for read().
  [[nodiscard]] const std::string& names() const { return names_; }
  [[nodiscard]] StoredUnit read(const AnswerRow& row) const;
  /// The id that the manager gave the unit; lives until the next row.
  [[nodiscard]] std::string_view uuid(const AnswerRow& row) const { return row.text(uuid_); }

 private:
  std::vector<const Column*> columns_;  ///< behind the id
  std::string names_ = "id";
  std::size_t uuid_ = 0;
};

/// The values of an INSERT of the table or, with a stored row, those of its UPDATE
/// (schema/table_sql.h). `maps` are those of the merged row. Objects of managers that are malformed
/// are logged and count as empty.
std::vector<SqlValue> unit_values(const Table& table,
                                  const Batch& batch,
                                  const model::Unit& unit,
                                  const StoredUnit* stored,
                                  MapTexts maps);

}  // namespace ceems::store
