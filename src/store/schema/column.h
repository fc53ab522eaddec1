#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "model/unit.h"

namespace ceems::store {

// What is known about a column of a table, in one row. Everything that has to agree about columns
// derives from these rows: statements (schema/table_sql.h), how a window changes a stored row
// (unit_change.h), and the fields of answers (fields.h).

/// What a column holds. It decides the SQL type, and the type of the field in answers.
enum class ColumnKind : std::uint8_t {
  kText,
  kTime,     ///< text of a moment, in the time zone of the database
  kMoment,   ///< milliseconds since 1970; 0: unknown
  kNumber,   ///< integer
  kObject,   ///< text: JSON object
  kMetrics,  ///< text: JSON object of numbers
};

/// What a window does to the value that is stored already.
enum class Update : std::uint8_t {
  kNever,        ///< the value says which row it is, or was right from the start
  kFirstKnown,   ///< replaced only while it is empty; a time, while its moment is 0
  kNewest,       ///< replaced
  kNewestGiven,  ///< replaced unless the new object is empty
  kCount,        ///< one more for each window or unit that is added
  kCountNew,     ///< one more for each unit that was not stored before
  kSum,          ///< the numbers of each name are added up (merge.h)
  kMean,         ///< the numbers of each name are averaged, weighted with Column::weight (merge.h)
  kWeights,      ///< weights of the averages (merge.h)
};

/// Where answers show a column: by place, and within a place in the order of the table. The order
/// of answers is that of the reference, which is not the order of its tables.
enum class Place : std::uint8_t { kHidden, kFirst, kBody, kLate, kMetrics, kLast };

/// The texts of a row of `usage` or `daily_usage`.
struct UsageNames {
  std::string cluster_id, resource_manager, project, groupname, username;
};

/// Where the value of a new row comes from.
struct ClusterOfWindow {};
struct EndOfWindow {};  ///< as text or moment; in daily_usage the day
struct TimeOfUnit {
  std::string model::Unit::* text = nullptr;
  std::int64_t model::Unit::* moment = nullptr;
};
using Source = std::variant<std::monostate,  // follows from Column::update
                            ClusterOfWindow,
                            EndOfWindow,
                            TimeOfUnit,
                            std::string model::Unit::*,
                            std::int64_t model::Unit::*,
                            bool model::Unit::*,
                            model::Metric,
                            std::string UsageNames::*>;

struct Column {
  std::string_view name;  ///< key in JSON, too
  ColumnKind kind = ColumnKind::kText;
  Update update = Update::kNewest;
  Source source = {};
  /// The name in total_time_seconds that weights a mean, e.g. "alloc_cputime". A weight that is not
  /// there counts as 0.
  std::string_view weight = {};

  Place place = Place::kHidden;
  bool always = false;            ///< shown in answers when empty or 0, too
  std::string_view help = {};     ///< what it means, for the documentation of the API
  std::string_view example = {};  ///< JSON

  /// Version of ceems_schema (docs/api/database.md) that added the column; 0: the reference has it.
  int since = 0;
  /// Name up to version 8 of the reference's schema.
  std::string_view old_name = {};
  // Types where they are not those of the kind (schema/table_sql.h).
  std::string_view sqlite_type = {};
  std::string_view postgres_type = {};
};

/// True when the new value of a row depends on the stored one.
constexpr bool builds_on_stored(const Column& column) {
  return column.update != Update::kNever && column.update != Update::kNewest;
}

/// A table with a column `id`, which numbers its rows, before the others.
struct Table {
  std::string_view name;
  std::span<const Column> columns;        ///< in the order of SQLite files
  std::span<const std::string_view> key;  ///< columns that no two rows share
  std::string_view key_index;             ///< the unique index over them
  // SQLite files keep the text of CREATE statements. Those of the first version had a blank in some
  // places and none in others, and files that are made today have the same bytes.
  std::span<const std::string_view> tight = {};  ///< columns without a blank before them
  bool tight_key = false;                        ///< no blank between table and columns of the key
};

/// The newest version that a column of the tables names.
constexpr int newest_version(std::span<const Table* const> tables) {
  int newest = 0;
  for (const Table* table : tables) {
    for (const Column& column : table->columns) {
      newest = std::max(newest, column.since);
    }
  }
  return newest;
}

constexpr bool is_key(const Table& table, std::string_view column) {
  return std::ranges::find(table.key, column) != table.key.end();
}

}  // namespace ceems::store
