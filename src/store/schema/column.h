#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "model/unit.h"

namespace ceems::store {

// Everything known about a column of a table is in one row. All code that must agree about columns
// derives from these rows: SQL statements (schema/table_sql.h), how a window changes a stored row
// (units/unit_row.h), and the fields of answers (fields.h).

/// The versions of the reference's tables that this program works with. CEEMS 0.10.2 to 0.14 write
/// the older one, CEEMS 0.15 and 0.16 the newer one, which has the columns of custom metrics. A
/// SQLite file stays at the older one until a custom metric is configured; tables in PostgreSQL
/// always have all columns.
inline constexpr int kOldestReference = 9;
inline constexpr int kNewestReference = 10;

/// The kind of value in a column. It decides the SQL type and the type of the field in answers.
enum class ColumnKind : std::uint8_t {
  kText,
  kTime,     ///< text: a time in the time zone of the database
  kMoment,   ///< milliseconds since 1970; 0: unknown
  kNumber,   ///< integer
  kObject,   ///< text: JSON object
  kMetrics,  ///< text: JSON object of numbers
};

/// How a window changes a value that is already stored.
enum class Update : std::uint8_t {
  kNever,        ///< never changed: the value is part of the key or final from the start
  kFirstKnown,   ///< replaced only while it is empty; a time, while its moment is 0
  kNewest,       ///< always replaced
  kNewestGiven,  ///< replaced unless the new object is empty
  kCount,        ///< incremented for each window or unit that is added
  kCountNew,     ///< incremented for each unit that was not stored before
  kSum,          ///< the numbers of each name are added up (merge.h)
  kMean,         ///< the numbers of each name are averaged, weighted with Column::weight (merge.h)
  kLeast,        ///< the least number of each name is kept (merge.h)
  kGreatest,     ///< the greatest number of each name is kept (merge.h)
  kWeights,      ///< weights of the averages (merge.h)
};

/// Where answers show a column: sorted by place, and within a place in the order of the table.
/// Answers have the field order of the reference, which differs from the order of its tables.
enum class Place : std::uint8_t { kHidden, kFirst, kBody, kLate, kMetrics, kLast };

/// The text columns of a row of `usage` or `daily_usage`.
struct UsageNames {
  std::string cluster_id, resource_manager, project, groupname, username;
};

/// Where the value of a new row comes from.
struct ClusterOfWindow {};
struct EndOfWindow {};  ///< as text or moment; in daily_usage, the day
struct TimeOfUnit {
  std::string model::Unit::* text = nullptr;
  std::int64_t model::Unit::* moment = nullptr;
};
using Source = std::variant<std::monostate,  // determined by Column::update
                            ClusterOfWindow,
                            EndOfWindow,
                            TimeOfUnit,
                            std::string model::Unit::*,
                            std::int64_t model::Unit::*,
                            bool model::Unit::*,
                            model::Metric,
                            std::string UsageNames::*>;

struct Column {
  std::string_view name;  ///< also the key in JSON
  ColumnKind kind = ColumnKind::kText;
  Update update = Update::kNewest;
  Source source = {};
  /// The name in total_time_seconds by which a mean is weighted, e.g. "alloc_cputime". A missing
  /// weight counts as 0.
  std::string_view weight = {};

  Place place = Place::kHidden;
  bool always = false;            ///< answers show it even if it is empty or 0
  std::string_view help = {};     ///< description for the documentation of the API
  std::string_view example = {};  ///< JSON

  /// Version of ceems_schema (docs/api/database.md) that added the column; 0: the reference has it,
  /// too.
  int since = 0;
  /// Version of the reference's tables that added the column; 0: it is in all that this program
  /// works with.
  int reference = 0;
  /// Its name up to version 8 of the reference's schema.
  std::string_view old_name = {};
  // SQL types, if they differ from the kind's (schema/table_sql.h).
  std::string_view sqlite_type = {};
  std::string_view postgres_type = {};
};

/// Whether tables of this version of the reference have the column.
constexpr bool is_in(const Column& column, int reference) {
  return column.reference <= reference;
}

/// Whether the new value of a row depends on the stored one.
constexpr bool builds_on_stored(const Column& column) {
  return column.update != Update::kNever && column.update != Update::kNewest;
}

/// A table. Before the columns listed here it has a column `id`, which numbers its rows.
struct Table {
  std::string_view name;
  std::span<const Column> columns;        ///< in the order of SQLite files
  std::span<const std::string_view> key;  ///< columns that identify a row
  std::string_view key_index;             ///< name of the unique index over them
  // SQLite files keep the text of CREATE statements. The statements of the first version had a
  // space in some places and none in others, and new files must have the same bytes.
  std::span<const std::string_view> tight = {};  ///< columns without a space before them
  bool tight_key = false;  ///< no space between the table and the columns of the key
};

/// Returns the newest version that added a column to one of the tables.
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
