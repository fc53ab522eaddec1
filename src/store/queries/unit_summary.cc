// Sums over the facts of units.
#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "store/advice_rules.h"
#include "store/queries/fact_statements.h"
#include "store/queries/sql_reader.h"

namespace ceems::store {
namespace {

constexpr double kGram = 1e-6;
constexpr std::int64_t kWhole = 10'000;  // 100 % in hundredths

/// The sums, in the order of the columns.
constexpr std::array<std::string_view, 23> kSums{
    fact_sum::kRunning,
    fact_sum::kEnergy,
    "CASE WHEN cpu_energy > 0 THEN cpu_energy ELSE 0 END",
    "CASE WHEN gpu_energy > 0 THEN gpu_energy ELSE 0 END",
    fact_sum::kGrams,
    "cpu_seconds",
    "CASE WHEN cpu_use >= 0 THEN cpu_seconds ELSE 0 END",
    "CASE WHEN cpu_use > 0 THEN CAST(cpu_seconds * 1.0 * cpu_use / 10000 AS bigint) ELSE 0 END",
    "gpu_seconds",
    "CASE WHEN gpu_use >= 0 THEN gpu_seconds ELSE 0 END",
    "CASE WHEN gpu_use > 0 THEN CAST(gpu_seconds * 1.0 * gpu_use / 10000 AS bigint) ELSE 0 END",
    fact_sum::kIdle,
    fact_sum::kIdleUnits,
    fact_sum::kIdleOf,
    fact_sum::kMeasured,
    "CASE WHEN cpu_energy >= 0 THEN 1 ELSE 0 END",
    "CASE WHEN gpu_energy >= 0 THEN 1 ELSE 0 END",
    fact_sum::kGramsKnown,
    fact_sum::kNotUsedUnits,
    fact_sum::kNotUsedOf,
    fact_sum::kNotUsed,
    fact_sum::kCpuSecondsWithEnergy,
    fact_sum::kGpuSecondsWithEnergy,
};

/// The bin of a use, or -1.
void add_bin(Sql& columns, Fact fact, std::size_t bins) {
  const std::string_view use = column_of(fact).sql;
  columns.add(
      fmt::format("CASE WHEN {0} < 0 THEN -1 WHEN {0} >= {1} THEN {2}"
                  " ELSE {0} * {3} / {1} END",
                  use, kWhole, bins - 1, bins));
}

/// PostgreSQL adds up the rows that have the same keys; from SQLite, they come one by one, which
/// costs less than its sorting them.
Sql summary_statement(Dialect dialect, const SummaryQuery& query) {
  const bool grouped = dialect == Dialect::kPostgres;
  Sql columns(dialect, "");
  std::size_t keys = 0;
  for (const Fact fact : query.facets) {
    columns.add(column_of(fact).sql).add(fmt::format(" AS k{}, ", keys++));
  }
  if (query.heat) {
    for (const Fact fact : *query.heat) {
      add_bin(columns, fact, query.bins);
      columns.add(fmt::format(" AS k{}, ", keys++));
    }
  }
  columns.add("1 AS units");
  for (std::size_t i = 0; i < kSums.size(); ++i) {
    columns.add(fmt::format(", {} AS s{}", kSums.at(i), i));
  }
  Sql rows = filtered_facts(dialect, query.filter, columns);
  if (!grouped) {
    return rows;
  }
  Sql sql(dialect, "SELECT ");
  std::string list;
  for (std::size_t key = 0; key < keys; ++key) {
    list += fmt::format("{}k{}", key == 0 ? "" : ", ", key);
  }
  sql.add(list).add(keys == 0 ? "" : ", ").add("coalesce(sum(units), 0)");
  for (std::size_t i = 0; i < kSums.size(); ++i) {
    sql.add(fmt::format(", coalesce(sum(s{}), 0)", i));
  }
  sql.add(" FROM (").append(rows).add(") AS rows");
  return keys == 0 ? sql : sql.add(" GROUP BY ").add(list);
}

struct Count {
  std::int64_t units = 0;
  double kwh = 0, idle_of_kwh = 0, idle_kwh = 0, not_used_of_kwh = 0, not_used_kwh = 0;

  void add(const Count& more) {
    units += more.units;
    kwh += more.kwh;
    idle_of_kwh += more.idle_of_kwh;
    idle_kwh += more.idle_kwh;
    not_used_of_kwh += more.not_used_of_kwh;
    not_used_kwh += more.not_used_kwh;
  }
};

class Adding {
 public:
  explicit Adding(const SummaryQuery& query) : query_(query), facets_(query.facets.size()) {
    if (query.heat) {
      cells_.resize(query.bins * query.bins);
    }
  }

  void add(const Cursor& row) {
    std::size_t column = query_.facets.size() + (query_.heat ? 2 : 0);
    const std::size_t first = column + 1;
    const std::int64_t units = row.integer(column);
    const auto number = [&row, first](std::size_t sum) {
      return static_cast<double>(row.integer(first + sum));
    };
    const double kwh = number(1) * kEnergyUnitKwh;
    sums_.units += units;
    sums_.running += row.integer(first);
    sums_.kwh += kwh;
    sums_.cpu_kwh += number(2) * kEnergyUnitKwh;
    sums_.gpu_kwh += number(3) * kEnergyUnitKwh;
    sums_.grams += number(4) * kGram;
    sums_.cpu_seconds += number(5);
    sums_.cpu_seconds_measured += number(6);
    sums_.cpu_seconds_used += number(7);
    sums_.gpu_seconds += number(8);
    sums_.gpu_seconds_measured += number(9);
    sums_.gpu_seconds_used += number(10);
    sums_.idle_kwh += number(11) * kEnergyUnitKwh;
    sums_.idle_units += row.integer(first + 12);
    sums_.idle_of_kwh += number(13) * kEnergyUnitKwh;
    sums_.measured += row.integer(first + 14);
    sums_.cpu_measured += row.integer(first + 15);
    sums_.gpu_measured += row.integer(first + 16);
    sums_.grams_known += row.integer(first + 17);
    sums_.not_used_units += row.integer(first + 18);
    sums_.not_used_of_kwh += number(19) * kEnergyUnitKwh;
    sums_.not_used_kwh += number(20) * kEnergyUnitKwh;
    sums_.cpu_seconds_with_energy += number(21);
    sums_.gpu_seconds_with_energy += number(22);
    const Count count{.units = units,
                      .kwh = kwh,
                      .idle_of_kwh = number(13) * kEnergyUnitKwh,
                      .idle_kwh = number(11) * kEnergyUnitKwh,
                      .not_used_of_kwh = number(19) * kEnergyUnitKwh,
                      .not_used_kwh = number(20) * kEnergyUnitKwh};
    for (std::size_t i = 0; i < facets_.size(); ++i) {
      if (query_.facets[i] == Fact::kAdvice) {
        add_advice(facets_[i], row.integer(i), count);
        continue;
      }
      text_ = row.text(i);
      facets_[i][text_].add(count);
    }
    if (query_.heat) {
      const std::int64_t x = row.integer(facets_.size());
      const std::int64_t y = row.integer(facets_.size() + 1);
      if (x >= 0 && y >= 0) {
        cells_.at(static_cast<std::size_t>(x) * query_.bins + static_cast<std::size_t>(y))
            .add(count);
      }
    }
  }

  UnitSummary done() {
    for (const auto& facet : facets_) {
      std::vector<FacetValue>& values = sums_.facets.emplace_back();
      for (const auto& [value, count] : facet) {
        values.push_back({.value = value,
                          .units = count.units,
                          .kwh = count.kwh,
                          .idle_of_kwh = count.idle_of_kwh,
                          .idle_kwh = count.idle_kwh,
                          .not_used_of_kwh = count.not_used_of_kwh,
                          .not_used_kwh = count.not_used_kwh});
      }
      std::ranges::sort(values, [](const FacetValue& a, const FacetValue& b) {
        return a.units != b.units ? a.units > b.units : a.value < b.value;
      });
    }
    for (std::size_t i = 0; i < cells_.size(); ++i) {
      if (cells_[i].units > 0) {
        sums_.heat.push_back({.x = i / query_.bins,
                              .y = i % query_.bins,
                              .units = cells_[i].units,
                              .kwh = cells_[i].kwh});
      }
    }
    return std::move(sums_);
  }

 private:
  using Facet = std::unordered_map<std::string, Count>;

  static void add_advice(Facet& facet, std::int64_t bits, const Count& count) {
    for (const auto& [id, mask] : advice_rules()) {
      if ((bits & mask) != 0) {
        facet[std::string(id)].add(count);
      }
    }
  }

  const SummaryQuery& query_;
  UnitSummary sums_;
  std::vector<Facet> facets_;
  std::vector<Count> cells_;  ///< x · bins + y
  std::string text_;
};

}  // namespace

Result<std::unique_ptr<Cursor>> SqlReader::unit_facts(const FactListQuery& query) {
  return open(facts_statement(dialect_, query), query.limit > 0 ? kFactLimit : kListLimit);
}

Result<bool> SqlReader::has_more_units(const FactFilter& filter, std::int64_t limit) {
  CEEMS_TRY(rows, open(count_facts_up_to(dialect_, filter, limit), kFactLimit));
  CEEMS_TRY(row, rows->next());
  return row && rows->integer(0) > limit;
}

Result<UnitSummary> SqlReader::unit_summary(const SummaryQuery& query) {
  CEEMS_TRY(rows, open(summary_statement(dialect_, query), kFactLimit));
  Adding adding(query);
  while (true) {
    CEEMS_TRY(row, rows->next());
    if (!row) {
      return adding.done();
    }
    adding.add(*rows);
  }
}

Result<bool> SqlReader::facts_complete() {
  CEEMS_TRY(rows, open(query_of("SELECT 1 FROM ceems_facts_todo LIMIT 1"), kShortLimit));
  CEEMS_TRY(row, rows->next());
  return !row;
}

}  // namespace ceems::store
