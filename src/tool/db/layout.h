#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tool/db/tables.h"

namespace ceems::tool::db {

/// What a text column holds.
enum class Content : std::uint8_t {
  kText,
  kMetrics,  ///< JSON object of numbers
  kObject,   ///< JSON object
  kList,     ///< JSON array
};

struct Column {
  std::string name = {};
  bool integer = false;
  Content content = Content::kText;
};

/// A table as the current version has it, in both systems.
struct TableLayout {
  std::string name = {};
  std::vector<Column> columns = {};  ///< in the order of SQLite
  /// The columns by which rows are ordered: first the key, by which an interrupted copy continues,
  /// then, if the key is not unique, the others. Indexes of `columns`.
  std::vector<std::size_t> order = {};
  std::size_t key_size = 0;
  std::vector<std::string> indexes = {};  ///< of SQLite

  [[nodiscard]] bool has_ids() const;
  /// "a,b,c"
  [[nodiscard]] std::string names() const;
  /// SELECT of all columns in this order; with `after_key`, of the rows after a key, whose values
  /// are bound.
  [[nodiscard]] std::string select(bool after_key) const;
  /// Less than, equal to or greater than 0, as the rows of a select() are ordered.
  [[nodiscard]] int compare(const Row& a, const Row& b, std::size_t count) const;
};

/// All tables that hold data, except the description of the database itself: the versions of the
/// schema, and the leader of PostgreSQL. They are the same as in a new SQLite database. With
/// `custom_stats`, they have the columns of custom metrics.
Result<std::vector<TableLayout>> current_layout(bool custom_stats);
/// The tables of a version of the reference's schema, without our additions.
Result<std::vector<TableLayout>> reference_layout(int version);

/// What a database lacks of these tables, as lines for people.
Result<std::vector<std::string>> missing_parts(Tables& tables,
                                               const std::vector<TableLayout>& layout);

/// Whether the tables have the columns of custom metrics.
Result<bool> has_custom_stats(Tables& tables);
/// Whether one of them holds a value.
Result<bool> uses_custom_stats(Tables& tables);

/// Tables that hold no data of their own.
bool is_administrative(std::string_view table);

}  // namespace ceems::tool::db
