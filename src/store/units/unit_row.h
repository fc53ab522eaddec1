#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "model/unit.h"
#include "store/schema/column.h"
#include "store/sql/session.h"

namespace ceems::store {

// Reads and builds rows of `units` column by column from the table's description. Without access to
// the database.

/// What all rows of one write share.
struct Batch {
  model::Cluster cluster;
  model::Window window;
  std::string updated;      ///< end of the window as a LOCAL text
  std::string day;          ///< local midnight at which the window's day begins, as a LOCAL text
  std::int64_t day_ms = 0;  ///< the same, epoch ms
};

/// The texts of total_time_seconds, of the metrics in the order of model::Metric, and of the
/// weights.
using MapTexts = std::array<std::string, model::kMetricCount + 2>;

/// The parts of a row that are read before a window is added to it.
struct StoredUnit {
  std::int64_t id = 0;
  /// Has the columns that identify the unit, the moments, and those whose new value depends on the
  /// stored one. The other members are empty.
  model::Unit unit;
  std::int64_t num_updates = 0;
  std::int64_t last_updated_at_ts = 0;
  MapTexts maps;
};

/// Reads StoredUnits. Immutable.
class StoredColumns {
 public:
  /// The table must outlive the object.
  explicit StoredColumns(const Table& table);

  /// "id,uuid,...": the columns that read() needs, as tables of this version of the reference have
  /// them.
  [[nodiscard]] std::string names(int reference = kNewestReference) const;
  [[nodiscard]] StoredUnit read(const AnswerRow& row) const;
  /// The uuid of the unit; valid until the next row.
  [[nodiscard]] std::string_view uuid(const AnswerRow& row) const { return row.text(uuid_); }

 private:
  std::vector<const Column*> columns_;  ///< after the id
  std::size_t uuid_ = 0;
};

/// The values of an INSERT of the table or, with a stored row, of its UPDATE (schema/table_sql.h).
/// `maps` belong to the merged row. A malformed JSON object from a manager is logged and counts as
/// empty.
std::vector<SqlValue> unit_values(const Table& table,
                                  const Batch& batch,
                                  const model::Unit& unit,
                                  const StoredUnit* stored,
                                  MapTexts maps);

}  // namespace ceems::store
