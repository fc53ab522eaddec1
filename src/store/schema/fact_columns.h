#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "store/schema/dialect.h"
#include "store/schema/tables.h"

namespace ceems::store {

// The table ceems_unit_facts (store/facts.h) and the statements that write it. Pure functions.

/// What stands for a number that is not known.
inline constexpr std::int64_t kUnknownFact = -1;
/// How many of the metrics of a unit, from the first one, facts are made from.
inline constexpr std::size_t kFactMetrics =
    static_cast<std::size_t>(model::Metric::kTotalGpuEmissionsGms) + 1;

/// The table with its indexes, and the ranges of units whose facts are still to be written: all.
std::string create_facts(Dialect dialect);

// Statements of the writer, with a ? for each value.

/// The values are the columns except id and advice, which an existing row keeps.
std::string put_facts_text();
/// The values are those of the columns from `wall` on, with peak_memory twice and idle_energy three
/// times, then the key.
std::string fill_facts_text();
std::string delete_facts_text();

}  // namespace ceems::store
