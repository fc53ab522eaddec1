#include "store/schema/sums_columns.h"

#include <vector>

#include <fmt/format.h>

#include "store/schema/tables.h"

namespace ceems::store {
namespace {

constexpr int kFirstVersion = 2;  // of ceems_schema in which the table was added

/// Returns the names of the sums of these columns.
template <typename Wanted>
std::vector<std::string> sums_of(std::span<const Column> maps, Wanted wanted) {
  std::vector<std::string> names;
  for (const Column& column : maps) {
    if (wanted(column)) {
      names.emplace_back(column.name);
    }
  }
  for (const Column& column : maps) {
    if (wanted(column) && column.update == Update::kMean) {
      names.push_back(fmt::format("weight_{}", column.name));
    }
  }
  return names;
}

std::string_view type(Dialect dialect) {
  return dialect == Dialect::kSqlite ? "text" : "text COLLATE \"C\" NOT NULL DEFAULT ''";
}

}  // namespace

std::string sums_columns(const WantedMaps& wanted) {
  std::string maps;
  std::string weights;
  for (std::size_t map = 0; map < wanted.size(); ++map) {
    const Column& column = kMapColumns[map];
    maps += map == 0 ? "" : ",";
    maps += wanted.at(map) ? column.name : "''";
    if (column.update == Update::kMean) {
      weights += wanted.at(map) ? fmt::format(",weight_{}", column.name) : ",''";
    }
  }
  return maps + weights;
}

std::string unit_columns(const WantedMaps& wanted, int reference) {
  std::string maps;
  std::string weights;
  for (std::size_t map = 0; map < wanted.size(); ++map) {
    const Column& column = kMapColumns[map];
    maps += map == 0 ? "" : ",";
    maps += (map == 0 || wanted.at(map)) && is_in(column, reference) ? column.name : "''";
    weights += column.update == Update::kMean ? ",''" : "";
  }
  return maps + weights;
}

std::string sums_definitions(Dialect dialect, std::span<const Column> maps) {
  std::string text;
  for (const std::string& name :
       sums_of(maps, [](const Column& column) { return column.since <= kFirstVersion; })) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ",", name, type(dialect));
  }
  return text;
}

std::string add_sums_columns(Dialect dialect, std::span<const Column> maps, int version) {
  std::string sql;
  if (version <= kFirstVersion) {
    return sql;
  }
  for (const std::string& name :
       sums_of(maps, [version](const Column& column) { return column.since == version; })) {
    sql += fmt::format("ALTER TABLE ceems_unit_sums ADD {}{} {};",
                       dialect == Dialect::kSqlite ? "COLUMN " : "", name, type(dialect));
  }
  return sql;
}

}  // namespace ceems::store
