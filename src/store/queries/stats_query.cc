// Counts of units per cluster.
#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "store/queries/counted_units.h"
#include "store/queries/sql_reader.h"
#include "store/sums/unit_sums.h"

namespace ceems::store {
namespace {

constexpr auto kStatsLimit = std::chrono::minutes(5);

// The kind of a row of the result, its first column.
enum StatsKind : std::int64_t { kUnitsOfUser, kCountsOfSpan, kOddEnds };

struct Counts {
  std::string manager;
  std::int64_t units = 0, ended = 0, running = 0;
  std::set<std::string, std::less<>> projects, users;
};

/// A cursor over rows in memory.
class CountRows final : public Cursor {
 public:
  explicit CountRows(const std::map<std::string, Counts>& clusters) {
    for (const auto& [cluster, counts] : clusters) {
      rows_.push_back({cluster, counts.manager, fmt::to_string(counts.units),
                       fmt::to_string(counts.ended), fmt::to_string(counts.running),
                       fmt::to_string(counts.projects.size()),
                       fmt::to_string(counts.users.size())});
    }
  }

  Result<bool> next() override { return ++current_ <= rows_.size(); }
  [[nodiscard]] std::string_view text(std::size_t column) const override {
    return rows_.at(current_ - 1).at(column);
  }
  [[nodiscard]] std::int64_t integer(std::size_t column) const override {
    const std::string_view digits = text(column);
    std::int64_t value = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return value;
  }

 private:
  std::vector<std::array<std::string, 7>> rows_;
  std::size_t current_ = 0;  ///< from 1
};

Sql counts_of(Dialect dialect, const std::vector<std::string>& clusters, const SpanPlan& plan) {
  constexpr std::string_view kNames = "cluster_id, project, username, max(resource_manager)";
  // As an expression, so that no index gives the order of the groups.
  constexpr std::string_view kNamesOfUnits =
      "cluster_id || '', project, username, max(resource_manager)";
  const auto kind = [](StatsKind what) { return static_cast<std::int64_t>(what); };
  Sql sql(dialect, fmt::format("SELECT {}, {}, count(*), count(*) FILTER (WHERE ended_at_ts > 0),"
                               " count(*) FILTER (WHERE ended_at_ts = 0) FROM units",
                               kind(kUnitsOfUser), kNamesOfUnits));
  add_rest(sql, plan.rest);
  sql.and_in("cluster_id", clusters).add(" GROUP BY cluster_id || '', project, username");
  sql.add(
      fmt::format(" UNION ALL SELECT {}, {}, sum(num_units), sum(num_units * ended),"
                  " sum(num_units * (1 - ended)) FROM ceems_unit_sums",
                  kind(kUnitsOfUser), kNames));
  add_runs(sql, SumsOf::kUnitSums, plan.runs);
  sql.and_in("cluster_id", clusters).add(" GROUP BY cluster_id, project, username");
  sql.add(fmt::format(" UNION ALL SELECT {}, '', '', '', '', count(*), 0, 0 FROM ceems_unit_spans",
                      kind(kCountsOfSpan)));
  add_runs(sql, SumsOf::kUnitSums, plan.runs);
  return sql.add(
      fmt::format(" UNION ALL SELECT {}, '', '', '', '', count(*), 0, 0 FROM units"
                  " WHERE ended_at_ts < 0 OR last_updated_at_ts IS NULL",
                  kind(kOddEnds)));
}

void add(std::map<std::string, Counts>& clusters, const Cursor& row) {
  Counts& counts = clusters[std::string(row.text(1))];
  counts.projects.emplace(row.text(2));
  counts.users.emplace(row.text(3));
  counts.manager = std::max(counts.manager, std::string(row.text(4)));
  counts.units += row.integer(5);
  counts.ended += row.integer(6);
  counts.running += row.integer(7);
}

/// Adds up all rows. False if a write has touched one of the spans since they were looked up, or if
/// there are units that the sums do not cover.
Result<bool> add_all(std::map<std::string, Counts>& clusters, Cursor& rows, std::size_t spans) {
  while (true) {
    const auto row = rows.next();
    if (!row || !*row) {
      return row ? Result<bool>(true) : row;
    }
    const std::int64_t kind = rows.integer(0);
    if (kind == kUnitsOfUser) {
      add(clusters, rows);
    } else if (std::cmp_not_equal(rows.integer(5), kind == kCountsOfSpan ? spans : 0)) {
      return false;
    }
  }
}

}  // namespace

Result<bool> SqlReader::has_few_units(const TimeRange& ended) {
  CEEMS_TRY(rows, open(estimate_units(dialect_, ended), kStatsLimit));
  const auto row = rows->next();
  if (!row || !*row) {
    return row;
  }
  return rows->integer(0) < rows->integer(1);
}

Result<std::unique_ptr<Cursor>> SqlReader::count_units(const std::vector<std::string>& clusters,
                                                       const std::optional<TimeRange>& ended) {
  std::map<std::string, std::string> managers;
  {
    const auto all = this->clusters();
    auto row = all ? (*all)->next() : fail(all.error());
    for (; row && *row; row = (*all)->next()) {
      managers.emplace((*all)->text(0), (*all)->text(1));
    }
    if (!row) {
      return fail(std::move(row).error());
    }
  }
  CEEMS_TRY(few, ended ? has_few_units(*ended) : Result<bool>(false));
  CEEMS_TRY(rows, open(few ? count_few_units(dialect_, clusters, ended.value_or(TimeRange{}))
                           : count_all_units(dialect_, clusters, ended),
                       kStatsLimit));
  std::map<std::string, Counts> counts;
  while (true) {
    CEEMS_TRY(row, rows->next());
    if (!row) {
      return std::make_unique<CountRows>(counts);
    }
    const std::string cluster(rows->text(0));
    Counts& sum = counts[cluster];
    sum.manager = managers[cluster];
    sum.projects.emplace(rows->text(1));
    sum.users.emplace(rows->text(2));
    sum.units += rows->integer(3);
    sum.ended += rows->integer(4);
    sum.running += rows->integer(5);
  }
}

Result<std::unique_ptr<Cursor>> SqlReader::stats(const std::vector<std::string>& clusters,
                                                 const std::optional<TimeRange>& ended) {
  const TimeRange ever{0, std::numeric_limits<std::int64_t>::max()};
  CEEMS_TRY(spans, ended ? Result<Spans>(Spans()) : known_spans(SumsOf::kUnitSums, ever));
  SpanPlan plan = plan_spans(ever, spans);
  if (plan.runs.empty()) {
    return count_units(clusters, ended);
  }
  plan.rest.push_back({std::numeric_limits<std::int64_t>::min(), -1});
  std::map<std::string, Counts> counts;
  {
    CEEMS_TRY(rows, open(counts_of(dialect_, clusters, plan), kStatsLimit));
    CEEMS_TRY(added, add_all(counts, *rows, plan.spans));
    if (added) {
      return std::make_unique<CountRows>(counts);
    }
  }
  return count_units(clusters, ended);
}

}  // namespace ceems::store
