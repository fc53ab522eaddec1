#include "tool/db/layout.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <utility>

#include "base/strings.h"
#include "base/time/time_zone.h"
#include "store/schema/copying.h"
#include "store/schema/tables.h"
#include "store/sqlite/connection.h"
#include "store/sqlite/schema.h"

namespace ceems::tool::db {
namespace {

using store::sqlite::Connection;

constexpr std::array<std::string_view, 4> kAdministrative{"schema_migrations", "ceems_schema",
                                                          "ceems_leader", store::kCopyTable};

Content content_of(std::string_view table, std::string_view column, std::string_view otherwise) {
  for (const store::Table* described : store::kTables) {
    for (const store::Column& one : described->columns) {
      if (described->name == table && (one.name == column || one.old_name == column)) {
        return one.kind == store::ColumnKind::kMetrics  ? Content::kMetrics
               : one.kind == store::ColumnKind::kObject ? Content::kObject
                                                        : Content::kText;
      }
    }
  }
  const bool sums = table == "ceems_unit_sums" &&
                    (column.starts_with("weight_") ||
                     std::ranges::any_of(store::kMapColumns, [column](const store::Column& one) {
                       return one.name == column;
                     }));
  if (sums || (table == "ceems_gap_units" && column == "times")) {
    return Content::kMetrics;
  }
  return otherwise == "'[]'" ? Content::kList : Content::kText;
}

Result<TableLayout> layout_of(Connection& connection, const std::string& name) {
  TableLayout table{.name = name};
  CEEMS_TRY(rows,
            connection.prepare(
                "SELECT name, lower(type), coalesce(dflt_value, ''), pk FROM pragma_table_info(?)"
                " ORDER BY cid"));
  rows.bind(1, std::string_view(name));
  std::map<std::int64_t, std::size_t> key;  // by the place in the primary key
  while (true) {
    CEEMS_TRY(more, rows.step());
    if (!more) {
      break;
    }
    if (rows.integer(3) > 0) {
      key.emplace(rows.integer(3), table.columns.size());
    }
    table.columns.push_back({.name = std::string(rows.text(0)),
                             .integer = rows.text(1) == "integer",
                             .content = content_of(name, rows.text(0), rows.text(2))});
  }
  for (const auto& [place, column] : key) {
    table.order.push_back(column);
  }
  CEEMS_TRY(indexes,
            connection.prepare(
                "SELECT list.name, info.name FROM pragma_index_list(?) AS list,"
                " pragma_index_info(list.name) AS info WHERE list.origin = 'c' ORDER BY list.name,"
                " info.seqno"));
  indexes.bind(1, std::string_view(name));
  while (true) {
    CEEMS_TRY(more, indexes.step());
    if (!more) {
      break;
    }
    if (table.indexes.empty() || table.indexes.back() != indexes.text(0)) {
      table.indexes.emplace_back(indexes.text(0));
    }
    // A table without a primary key has one index, whose values are not unique.
    if (key.empty() && table.indexes.size() == 1) {
      const auto found =
          std::ranges::find(table.columns, std::string(indexes.text(1)), &Column::name);
      table.order.push_back(static_cast<std::size_t>(found - table.columns.begin()));
    }
  }
  table.key_size = table.order.size();
  if (key.empty()) {
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
      if (std::ranges::find(table.order, i) == table.order.end()) {
        table.order.push_back(i);
      }
    }
  }
  return table;
}

Result<std::vector<TableLayout>> layouts(Connection& connection) {
  CEEMS_TRY(names,
            connection.prepare(
                "SELECT name FROM sqlite_schema WHERE type='table' AND name NOT LIKE 'sqlite_%'"));
  std::vector<TableLayout> result;
  while (true) {
    CEEMS_TRY(more, names.step());
    if (!more) {
      return result;
    }
    if (is_administrative(names.text(0))) {
      continue;
    }
    CEEMS_TRY(table, layout_of(connection, std::string(names.text(0))));
    result.push_back(std::move(table));
  }
}

int compare_cells(const Column& column, const Cell& a, const Cell& b) {
  if (column.integer) {
    const auto x = parse_int<std::int64_t>(a.text).value_or(0);
    const auto y = parse_int<std::int64_t>(b.text).value_or(0);
    return x < y ? -1 : x > y ? 1 : 0;
  }
  return a.text.compare(b.text);
}

}  // namespace

bool TableLayout::has_ids() const {
  const Column& first = columns[order.front()];
  return key_size == 1 && first.name == "id" && first.integer;
}

std::string TableLayout::names() const {
  std::string text;
  for (const Column& column : columns) {
    text += fmt::format("{}{}", text.empty() ? "" : ",", column.name);
  }
  return text;
}

std::string TableLayout::select(bool after_key) const {
  std::string key;
  std::string marks;
  std::string sorted;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const Column& column = columns[order[i]];
    const std::string_view comma = i == 0 ? "" : ",";
    if (i < key_size) {
      key += fmt::format("{}{}", comma, column.name);
      marks += fmt::format("{}?", comma);
      sorted += fmt::format("{}{}", comma, column.name);
    } else {
      sorted += fmt::format("{}coalesce({},{})", comma, column.name, column.integer ? "0" : "''");
    }
  }
  return fmt::format("SELECT {} FROM {}{} ORDER BY {}", names(), name,
                     after_key ? fmt::format(" WHERE ({}) > ({})", key, marks) : "", sorted);
}

int TableLayout::compare(const Row& a, const Row& b, std::size_t count) const {
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t column = order[i];
    if (const int result = compare_cells(columns[column], a[column], b[column]); result != 0) {
      return result;
    }
  }
  return 0;
}

Result<std::vector<TableLayout>> current_layout(bool custom_stats) {
  CEEMS_TRY(connection, Connection::open(":memory:", store::sqlite::OpenMode::kReadWrite));
  const int version =
      custom_stats ? store::sqlite::kCustomStatsVersion : store::sqlite::kSchemaVersion;
  CEEMS_TRY(store::sqlite::upgrade(connection, ":memory:", TimeZone(), 0,
                                   {.version = version, .finish = false}));
  return layouts(connection);
}

Result<std::vector<TableLayout>> reference_layout(int version) {
  CEEMS_TRY(connection, Connection::open(":memory:", store::sqlite::OpenMode::kReadWrite));
  CEEMS_TRY(store::sqlite::create_reference_schema(connection, version));
  return layouts(connection);
}

Result<std::vector<std::string>> missing_parts(Tables& tables,
                                               const std::vector<TableLayout>& layout) {
  std::vector<std::string> missing;
  CEEMS_TRY(names, tables.table_names());
  for (const TableLayout& table : layout) {
    if (std::ranges::find(names, table.name) == names.end()) {
      missing.push_back(fmt::format("table {} is missing", table.name));
      continue;
    }
    CEEMS_TRY(columns, tables.column_names(table.name));
    for (const Column& column : table.columns) {
      if (std::ranges::find(columns, column.name) == columns.end()) {
        missing.push_back(fmt::format("table {} lacks the column {}", table.name, column.name));
      }
    }
    if (tables.dialect() != store::Dialect::kSqlite) {
      continue;  // PostgreSQL has other indexes
    }
    CEEMS_TRY(indexes, tables.indexes(table.name));
    for (const std::string& index : table.indexes) {
      if (std::ranges::none_of(indexes,
                               [&index](const Row& row) { return row.front().text == index; })) {
        missing.push_back(fmt::format("table {} lacks the index {}", table.name, index));
      }
    }
  }
  return missing;
}

Result<bool> has_custom_stats(Tables& tables) {
  CEEMS_TRY(columns, tables.column_names("units"));
  return std::ranges::any_of(store::kMapColumns, [&columns](const store::Column& column) {
    return column.reference > 0 && std::ranges::find(columns, column.name) != columns.end();
  });
}

Result<bool> uses_custom_stats(Tables& tables) {
  const auto present = has_custom_stats(tables);
  if (!present || !*present) {
    return present;
  }
  for (const store::Table* table : store::kTables) {
    std::string values;
    for (const store::Column& column : store::kMapColumns) {
      if (column.reference > 0) {
        values += fmt::format("{}coalesce({}, '') NOT IN ('', '{{}}', 'null')",
                              values.empty() ? "" : " OR ", column.name);
      }
    }
    CEEMS_TRY(any, tables.integer(fmt::format(
                       "SELECT count(*) FROM (SELECT 1 FROM {} WHERE {} LIMIT 1) AS one",
                       table->name, values)));
    if (any > 0) {
      return true;
    }
  }
  return false;
}

bool is_administrative(std::string_view table) {
  return std::ranges::find(kAdministrative, table) != kAdministrative.end();
}

}  // namespace ceems::tool::db
