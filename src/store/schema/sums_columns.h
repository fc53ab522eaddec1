#pragma once

#include <array>
#include <span>
#include <string>

#include "model/unit.h"
#include "store/schema/column.h"
#include "store/schema/dialect.h"

namespace ceems::store {

// The columns of ceems_unit_sums that hold sums (docs/api/database.md, "Sums over time"): the maps
// of units in their order, then "weight_" and the name for each that is an average. All are texts.

/// Which of total_time_seconds and the metrics, in their order, are asked for.
using WantedMaps = std::array<bool, model::kMetricCount + 1>;

inline constexpr WantedMaps kAllMaps = [] {
  WantedMaps maps{};
  maps.fill(true);
  return maps;
}();

/// To select the sums; '' stands for maps that are not wanted. With kAllMaps, their names.
std::string sums_columns(const WantedMaps& wanted);
/// To select the same from units and daily_usage, which have no weights. The times, which are the
/// weights of averages, are always read.
std::string unit_columns(const WantedMaps& wanted);

/// For CREATE TABLE: "name type,name type" of the columns that the first version of the table had.
/// `maps` are kMapColumns.
std::string sums_definitions(Dialect dialect, std::span<const Column> maps);
/// The ALTER statements that lead to a later version of ceems_schema, each ended by ";".
std::string add_sums_columns(Dialect dialect, std::span<const Column> maps, int version);

}  // namespace ceems::store
