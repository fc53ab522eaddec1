#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "store/schema/dialect.h"
#include "store/schema/tables.h"

namespace ceems::store {

// The table ceems_unit_facts (store/facts.h) and the statements that write it. Pure functions.

/// How a window changes a number.
enum class FactChange : std::uint8_t {
  kTextKey,
  kKey,
  kText,
  kNumber,
  kGreatest,
  kAdd,
  kAddKnown,
  kAddNotUsed,  ///< known only if all windows that know idle_energy know it
};

struct FactRow {
  std::string_view name;
  FactChange change = FactChange::kNumber;
  bool measured = false;  ///< also changed by a gap that is filled
  int since = 9;          ///< the version with this column
};

/// All columns except id, advice and the columns of add_judgement(), in the order of the values of
/// put_facts_text().
inline constexpr std::array<FactRow, 36> kFactRows{{
    {"cluster_id", FactChange::kTextKey},
    {"uuid", FactChange::kTextKey},
    {"started_at_ts", FactChange::kKey},
    {"name", FactChange::kText},
    {"name_norm", FactChange::kText},
    {"username", FactChange::kText},
    {"project", FactChange::kText},
    {"state", FactChange::kText},
    {"queue", FactChange::kText},
    {"array_id", FactChange::kText},
    {"created_at_ts"},
    {"ended_at_ts"},
    {"cpus"},
    {"memory"},
    {"gpus"},
    {"nodes"},
    {"time_limit"},
    {"req_cpus"},
    {"req_memory"},
    {"ignore"},
    {"wall", FactChange::kNumber, true},
    {"cpu_seconds", FactChange::kNumber, true},
    {"gpu_seconds", FactChange::kNumber, true},
    {"cpu_use", FactChange::kNumber, true},
    {"mem_use", FactChange::kNumber, true},
    {"gpu_use", FactChange::kNumber, true},
    {"gpu_mem_use", FactChange::kNumber, true},
    {"energy", FactChange::kNumber, true},
    {"cpu_energy", FactChange::kNumber, true},
    {"gpu_energy", FactChange::kNumber, true},
    {"grams", FactChange::kNumber, true},
    {"peak_memory", FactChange::kGreatest, true},
    {"gpu_idle_ms", FactChange::kAdd, true},
    {"gpu_seen_ms", FactChange::kAdd, true},
    {"idle_energy", FactChange::kAddKnown, true},
    {"not_used_energy", FactChange::kAddNotUsed, true, 16},
}};

/// The place of a column in kFactRows, which must have it; as a constant, it does not compile
/// otherwise.
constexpr std::size_t fact_place(std::string_view column) {
  std::size_t place = 0;
  while (kFactRows.at(place).name != column) {
    ++place;
  }
  return place;
}

/// What stands for a number that is not known.
inline constexpr std::int64_t kUnknownFact = -1;
/// How many of the metrics of a unit, from the first one, facts are made from.
inline constexpr std::size_t kFactMetrics =
    static_cast<std::size_t>(model::Metric::kTotalGpuEmissionsGms) + 1;

/// The table with its indexes, and the ranges of units whose facts are still to be written: all.
std::string create_facts(Dialect dialect);
/// Version 14: finds tasks of arrays and parts of heterogeneous jobs by the ids that SLURM shows.
inline constexpr std::string_view kArraysIndex =
    "CREATE INDEX ceems_unit_facts_array ON ceems_unit_facts (array_id) WHERE array_id <> '';";
/// Version 16: the part of idle_energy that was not used, unknown for units that are stored.
std::string add_not_used(Dialect dialect);
/// Version 17: what the finisher writes beside advice: the verdict of the report, worked out of the
/// stored findings, and the use over time.
std::string add_judgement(Dialect dialect);

// Statements of the writer, with a ? for each value.

/// The values follow kFactRows. An existing row keeps its id and what the finisher wrote.
std::string put_facts_text();
/// Changes the measured columns. The values follow fill_facts_places().
std::string fill_facts_text();
/// The place in kFactRows of each value of fill_facts_text(): some are needed more than once.
std::vector<std::size_t> fill_facts_places();
std::string delete_facts_text();

}  // namespace ceems::store
