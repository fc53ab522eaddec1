#pragma once

#include <span>
#include <string>
#include <string_view>

#include "store/schema/column.h"
#include "store/schema/dialect.h"

namespace ceems::store {

// The SQL statements for the columns of a table. Pure functions; each value is a ? in the
// statement. With an older version of the reference's tables, a statement has the same number of
// values: values for columns that its tables lack have no effect. Only SQLite files can have an
// older version, so its numbered ?N are used there.

/// CREATE TABLE of the table's first version, terminated by ";". In SQLite it has the columns of
/// the reference before its version 8. In PostgreSQL it has the columns of version 1 of
/// ceems_schema: texts first, then numbers, JSON, and columns that answers do not show.
std::string create_table(Dialect dialect, const Table& table);
/// CREATE UNIQUE INDEX over the key, terminated by ";".
std::string create_key(Dialect dialect, const Table& table);
/// The ALTER statements that upgrade to a version of ceems_schema (from 1), each terminated by ";".
/// Empty if the version adds no columns besides those that create_table() makes.
std::string add_columns(Dialect dialect, const Table& table, int version);

/// The ALTER statements that add the columns of a later version of the reference's tables to a
/// SQLite file that has only `present`, each terminated by ";".
std::string add_reference_columns(const Table& table,
                                  int reference,
                                  std::span<const std::string> present);

/// "units (cluster_id,...)": all columns except the id.
std::string insert_target(const Table& table);
/// INSERT with one value for each column of the target.
std::string insert_text(std::string_view target);
/// INSERT of all columns except the id.
std::string insert_text(const Table& table, int reference = kNewestReference);
/// UPDATE of all columns except those with Update::kNever, in their order; the last value is the
/// id.
std::string update_text(const Table& table, int reference = kNewestReference);
/// UPDATE of the maps and their weights, in their order; the last value is the id.
std::string update_maps_text(const Table& table, int reference = kNewestReference);
/// SELECT of the id and of the columns whose new value depends on the stored one, in their order.
/// The values are the key's.
std::string find_text(const Table& table, int reference = kNewestReference);

/// What a SELECT has for the column: its name, or an empty map if the tables lack it.
std::string_view selected(const Column& column, int reference);
/// "a,b,c"
std::string names_of(std::span<const Column> columns);
/// "a,b,'{}'"
std::string selected_of(std::span<const Column> columns, int reference);
std::string joined(std::span<const std::string_view> names, std::string_view between);

}  // namespace ceems::store
