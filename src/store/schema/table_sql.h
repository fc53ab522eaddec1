#pragma once

#include <span>
#include <string>
#include <string_view>

#include "store/schema/column.h"
#include "store/schema/dialect.h"

namespace ceems::store {

// The statements that follow from the columns of a table. Pure functions; a ? stands for each
// value.

/// CREATE TABLE as it was first made, ended by ";": in SQLite the columns of the reference before
/// its version 8, in PostgreSQL those of version 1 of ceems_schema, texts first, then numbers,
/// JSON, and what answers do not show.
std::string create_table(Dialect dialect, const Table& table);
/// CREATE UNIQUE INDEX over the key, ended by ";".
std::string create_key(Dialect dialect, const Table& table);
/// The ALTER statements that lead to a version of ceems_schema, each ended by ";"; empty where the
/// version, from 1, has no new columns that create_table() does not make.
std::string add_columns(Dialect dialect, const Table& table, int version);

/// "units (cluster_id,...)": all columns but the id.
std::string insert_target(const Table& table);
/// INSERT with a value for each column of the target.
std::string insert_text(std::string_view target);
/// UPDATE of all columns but those with Update::kNever, in their order; the last value is the id.
std::string update_text(const Table& table);
/// UPDATE of the maps and their weights, in their order; the last value is the id.
std::string update_maps_text(const Table& table);
/// SELECT of the id and of the columns that build on what is stored, in their order. The values are
/// those of the key.
std::string find_text(const Table& table);

/// "a,b,c"
std::string names_of(std::span<const Column> columns);
std::string joined(std::span<const std::string_view> names, std::string_view between);

}  // namespace ceems::store
