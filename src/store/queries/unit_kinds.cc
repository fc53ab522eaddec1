// Sums over runs of one kind.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "store/advice_rules.h"
#include "store/queries/fact_statements.h"
#include "store/queries/read_all.h"
#include "store/queries/sql_reader.h"

namespace ceems::store {
namespace {

constexpr double kGramUnit = 1e-6;
constexpr double kPercent = 100;

/// Where each sum begins; a use has the reserved seconds times the use, and the seconds.
enum Column : std::size_t {
  kUnitsAt = 4,
  kRunningAt,
  kFailedAt,
  kIdleUnitsAt,
  kEnergyAt,
  kIdleAt,
  kGramsAt,
  kCpuAt,
  kMemAt = kCpuAt + 2,
  kGpuAt = kMemAt + 2,
  kEndedAt = kGpuAt + 2,
  kAdvisedAt,
  kBeforeAt,
  kSinceAt = kBeforeAt + 2,
  kNotUsedUnitsAt = kSinceAt + 2,
  kNotUsedOfAt,
  kNotUsedAt,
  kIdleOfAt,
  kMeasuredAt,
  kGramsKnownAt,
};

std::string sum_of(std::string_view one) {
  return fmt::format(", CAST(sum({}) AS bigint)", one);
}

/// The means are weighed by seconds, as sums over units do: seconds in use, and reserved.
std::string mean_of(std::string_view use, std::string_view seconds) {
  return fmt::format(
      ", CAST(sum(CASE WHEN {0} > 0 THEN {1} * 1.0 * {0} / 10000 ELSE 0 END) AS bigint)"
      ", sum(CASE WHEN {0} >= 0 THEN {1} ELSE 0 END)",
      use, seconds);
}

/// Energy and number of the runs that ended on one side of the middle of the period.
std::string half_of(std::string_view side, std::int64_t middle_ms) {
  return fmt::format(
      ", sum(CASE WHEN energy >= 0 AND ended_at_ts > 0 AND ended_at_ts {0} {1} THEN energy ELSE 0 "
      "END), sum(CASE WHEN energy >= 0 AND ended_at_ts > 0 AND ended_at_ts {0} {1} THEN 1 ELSE 0 "
      "END)",
      side, middle_ms);
}

std::string_view order_of(KindQuery::Sort sort) {
  switch (sort) {
    case KindQuery::Sort::kEnergy:
      return "9 DESC";
    case KindQuery::Sort::kUnits:
      return "5 DESC";
    case KindQuery::Sort::kEnded:
      return "18 DESC";
    case KindQuery::Sort::kNotUsed:
      return "26 DESC, 24 DESC, 10 DESC, 9 DESC";  // idle power where it is not known
    case KindQuery::Sort::kUnused:
      break;
  }
  return "10 DESC, 9 DESC";
}

Sql kinds_statement(Dialect dialect, const KindQuery& query) {
  const auto& ended = query.filter.ended;
  const std::int64_t middle = ended ? ended->from_ms + (ended->to_ms - ended->from_ms) / 2 : 0;
  Sql columns(dialect, "cluster_id, username, project, ");
  append_name(columns, "name_norm", query.filter.names);
  columns.add(
      " AS kind, state, ended_at_ts, started_at_ts, energy, idle_energy, not_used_energy, grams,"
      " cpu_seconds, gpu_seconds, cpu_use, mem_use, gpu_use, advice");
  const Sql rows = filtered_facts(dialect, query.filter, columns);
  Sql sql(dialect, "SELECT cluster_id, username, project, kind, count(*)");
  sql.add(sum_of(fact_sum::kRunning));
  sql.add(", sum(CASE WHEN state IN ").list(query.failed).add(" THEN 1 ELSE 0 END)");
  for (const std::string_view one :
       {fact_sum::kIdleUnits, fact_sum::kEnergy, fact_sum::kIdle, fact_sum::kGrams}) {
    sql.add(sum_of(one));
  }
  sql.add(mean_of("cpu_use", "cpu_seconds")).add(mean_of("mem_use", "cpu_seconds"));
  sql.add(mean_of("gpu_use", "gpu_seconds"));
  sql.add(", max(ended_at_ts), max(CASE WHEN (advice & ").value(any_advice());
  sql.add(") <> 0 THEN ended_at_ts ELSE 0 END)");
  sql.add(half_of("<", middle)).add(half_of(">=", middle));
  for (const std::string_view one :
       {fact_sum::kNotUsedUnits, fact_sum::kNotUsedOf, fact_sum::kNotUsed, fact_sum::kIdleOf,
        fact_sum::kMeasured, fact_sum::kGramsKnown}) {
    sql.add(sum_of(one));
  }
  sql.add(" FROM (").append(rows).add(") AS runs GROUP BY cluster_id, username, project, kind");
  sql.add(" ORDER BY ").add(order_of(query.sort)).add(", 1, 2, 3, 4 LIMIT ");
  return sql.value(static_cast<std::int64_t>(query.limit));
}

std::optional<double> mean_at(const Cursor& row, std::size_t place, double unit) {
  const std::int64_t weight = row.integer(place + 1);
  return weight > 0 ? std::optional(static_cast<double>(row.integer(place)) /
                                    static_cast<double>(weight) * unit)
                    : std::nullopt;
}

UnitKind kind_of(const Cursor& row) {
  const auto number = [&row](std::size_t place) { return static_cast<double>(row.integer(place)); };
  return {.cluster_id = std::string(row.text(0)),
          .user = std::string(row.text(1)),
          .project = std::string(row.text(2)),
          .name = std::string(row.text(3)),
          .units = row.integer(kUnitsAt),
          .running = row.integer(kRunningAt),
          .failed = row.integer(kFailedAt),
          .measured = row.integer(kMeasuredAt),
          .idle_units = row.integer(kIdleUnitsAt),
          .not_used_units = row.integer(kNotUsedUnitsAt),
          .grams_known = row.integer(kGramsKnownAt),
          .kwh = number(kEnergyAt) * kEnergyUnitKwh,
          .idle_kwh = number(kIdleAt) * kEnergyUnitKwh,
          .grams = number(kGramsAt) * kGramUnit,
          .idle_of_kwh = number(kIdleOfAt) * kEnergyUnitKwh,
          .not_used_of_kwh = number(kNotUsedOfAt) * kEnergyUnitKwh,
          .not_used_kwh = number(kNotUsedAt) * kEnergyUnitKwh,
          .cpu = mean_at(row, kCpuAt, kPercent),
          .mem = mean_at(row, kMemAt, kPercent),
          .gpu = mean_at(row, kGpuAt, kPercent),
          .last_ended_ms = row.integer(kEndedAt),
          .last_advised_ms = row.integer(kAdvisedAt),
          .kwh_before = mean_at(row, kBeforeAt, kEnergyUnitKwh),
          .kwh_since = mean_at(row, kSinceAt, kEnergyUnitKwh)};
}

}  // namespace

Result<std::vector<UnitKind>> SqlReader::unit_kinds(const KindQuery& query) {
  std::vector<UnitKind> kinds;
  CEEMS_TRY(read_all(open(kinds_statement(dialect_, query), kFactLimit),
                     [&kinds](const Cursor& row) { kinds.push_back(kind_of(row)); }));
  return kinds;
}

}  // namespace ceems::store
