#pragma once

#include <array>
#include <span>
#include <string>

#include "model/unit.h"
#include "store/schema/column.h"
#include "store/schema/dialect.h"

namespace ceems::store {

// The columns of ceems_unit_sums that hold sums (docs/api/database.md, "Sums over time"): the maps
// of units in their order, then a column "weight_<name>" for each map that is an average. All
// columns are texts.

/// Which of total_time_seconds and the metrics, in this order, are requested.
using WantedMaps = std::array<bool, model::kMetricCount + 1>;

inline constexpr WantedMaps kAllMaps = [] {
  WantedMaps maps{};
  maps.fill(true);
  return maps;
}();

/// The SELECT list for the sums, with '' for maps that are not wanted. With kAllMaps it is a list
/// of their names.
std::string sums_columns(const WantedMaps& wanted);
/// The same SELECT list for units and daily_usage, which have no weights. It always includes the
/// times, because they are the weights of averages. Tables of this version of the reference have
/// the others.
std::string unit_columns(const WantedMaps& wanted, int reference);

/// For CREATE TABLE: "name type,name type" of the columns in the first version of the table. `maps`
/// are kMapColumns.
std::string sums_definitions(Dialect dialect, std::span<const Column> maps);
/// The ALTER statements that upgrade to a later version of ceems_schema, each terminated by ";".
std::string add_sums_columns(Dialect dialect, std::span<const Column> maps, int version);

}  // namespace ceems::store
