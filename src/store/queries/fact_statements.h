#pragma once

#include <cstdint>
#include <string_view>

#include "store/facts.h"
#include "store/sql/sql.h"

namespace ceems::store {

// Statements over ceems_unit_facts. Pure functions.

/// The unit of energies in the table, in kWh.
inline constexpr double kEnergyUnitKwh = 1e-9;

/// What sums over units add up, of which the same count has one definition in all of them.
namespace fact_sum {
inline constexpr std::string_view kRunning =
    "CASE WHEN ended_at_ts = 0 AND started_at_ts > 0 THEN 1 ELSE 0 END";
inline constexpr std::string_view kEnergy = "CASE WHEN energy > 0 THEN energy ELSE 0 END";
inline constexpr std::string_view kMeasured = "CASE WHEN energy >= 0 THEN 1 ELSE 0 END";
inline constexpr std::string_view kCpuSecondsWithEnergy =
    "CASE WHEN energy >= 0 THEN cpu_seconds ELSE 0 END";
inline constexpr std::string_view kGpuSecondsWithEnergy =
    "CASE WHEN energy >= 0 THEN gpu_seconds ELSE 0 END";
inline constexpr std::string_view kGramsKnown = "CASE WHEN grams >= 0 THEN 1 ELSE 0 END";
inline constexpr std::string_view kGrams = "CASE WHEN grams > 0 THEN grams ELSE 0 END";
inline constexpr std::string_view kIdle = "CASE WHEN idle_energy > 0 THEN idle_energy ELSE 0 END";
inline constexpr std::string_view kIdleUnits = "CASE WHEN idle_energy >= 0 THEN 1 ELSE 0 END";
inline constexpr std::string_view kIdleOf =
    "CASE WHEN idle_energy >= 0 AND energy > 0 THEN energy ELSE 0 END";
inline constexpr std::string_view kNotUsed =
    "CASE WHEN not_used_energy > 0 THEN not_used_energy ELSE 0 END";
inline constexpr std::string_view kNotUsedUnits =
    "CASE WHEN not_used_energy >= 0 THEN 1 ELSE 0 END";
inline constexpr std::string_view kNotUsedOf =
    "CASE WHEN not_used_energy >= 0 AND energy > 0 THEN energy ELSE 0 END";
}  // namespace fact_sum

/// The columns of the query, then the value that the rows are sorted by and the number of the row.
Sql facts_statement(Dialect dialect, const FactListQuery& query);

/// One row with the number of units of the owners that ended in the period of the filter, or have
/// not ended; at most limit + 1. Other conditions do not count: it is about how much there is to
/// read.
Sql count_facts_up_to(Dialect dialect, const FactFilter& filter, std::int64_t limit);

/// "SELECT <columns> FROM ..." of the units that the filter selects, in any order.
Sql filtered_facts(Dialect dialect, const FactFilter& filter, const Sql& columns);

/// The value of a column, as the filter lets it be seen.
void append_fact(Sql& sql, Fact fact, const NameRule& names);
/// The same of a column that holds a name of the unit.
void append_name(Sql& sql, std::string_view column, const NameRule& names);

}  // namespace ceems::store
