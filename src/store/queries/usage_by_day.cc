// Usage by day and group, for charts of months and years.
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/time/durations.h"
#include "store/json.h"
#include "store/merge.h"
#include "store/queries/fact_statements.h"
#include "store/queries/sql_reader.h"

namespace ceems::store {
namespace {

std::string_view group_column(UsageBy by) {
  switch (by) {
    case UsageBy::kProject:
      return "project";
    case UsageBy::kUser:
      return "username";
    case UsageBy::kCluster:
      return "cluster_id";
    case UsageBy::kNothing:
      break;
  }
  return "''";
}

void add_filters(Sql& sql, const UsageSeriesQuery& query) {
  sql.and_filter_in("project", query.projects).and_filter_in("cluster_id", query.clusters);
  sql.and_filter_in("username", query.users).and_usage_of(query.members);
}

double total_of(std::string_view text) {
  const auto map = parse_metric_map(text);
  return map ? value_or_zero(*map, "total") : 0;
}

/// Emissions of the source that facts count (store/facts/rows.cc).
double grams_of(std::string_view text) {
  const auto map = parse_metric_map(text);
  if (!map || map->empty()) {
    return 0;
  }
  return value_or_zero(*map, first_source(*map));
}

Result<> read_days(Cursor& rows, std::vector<UsageOfDay>& days) {
  while (true) {
    CEEMS_TRY(row, rows.next());
    if (!row) {
      return {};
    }
    const std::int64_t day = rows.integer(0);
    UsageOfDay one{.day_ms = day, .group = std::string(rows.text(1))};
    one.units = rows.integer(2);
    one.cluster = rows.text(8);
    const auto times = parse_metric_map(rows.text(3)).value_or(model::MetricMap());
    one.cpu_seconds = value_or_zero(times, "alloc_cputime");
    one.gpu_seconds = value_or_zero(times, "alloc_gputime");
    one.cpu_kwh = total_of(rows.text(4));
    one.gpu_kwh = total_of(rows.text(5));
    const auto weights = parse_metric_map(rows.text(9)).value_or(model::MetricMap());
    const bool measured = one.kwh().has_value();
    one.cpu_seconds_with_energy = time_with_energy("alloc_cputime", measured, times, weights);
    one.gpu_seconds_with_energy = time_with_energy("alloc_gputime", measured, times, weights);
    one.cpu_grams = grams_of(rows.text(6));
    one.gpu_grams = grams_of(rows.text(7));
    days.push_back(std::move(one));
  }
}

Result<> read_idle(Cursor& rows, std::vector<UsageOfDay>& days) {
  while (true) {
    CEEMS_TRY(row, rows.next());
    if (!row) {
      return {};
    }
    UsageOfDay one{.day_ms = rows.integer(0), .group = std::string(rows.text(1))};
    const auto kwh_at = [&rows](std::size_t column) {
      return static_cast<double>(rows.integer(column)) * kEnergyUnitKwh;
    };
    one.idle_kwh = kwh_at(2);
    one.idle_of_kwh = kwh_at(3);
    if (rows.integer(4) > 0) {
      one.not_used_kwh = kwh_at(5);
      one.not_used_of_kwh = kwh_at(6);
    }
    days.push_back(std::move(one));
  }
}

}  // namespace

Result<std::int64_t> SqlReader::first_usage_day(const TimeRange& days,
                                                const std::vector<std::string>& clusters) {
  Sql sql =
      query_of("SELECT last_updated_at_ts FROM daily_usage WHERE last_updated_at_ts BETWEEN ");
  sql.value(days.from_ms).add(" AND ").value(days.to_ms).and_filter_in("cluster_id", clusters);
  sql.add(" ORDER BY last_updated_at_ts LIMIT 1");
  CEEMS_TRY(rows, open(sql, kFactLimit));
  CEEMS_TRY(row, rows->next());
  return row ? rows->integer(0) : 0;
}

Result<std::vector<UsageOfDay>> SqlReader::usage_by_day(const UsageSeriesQuery& query) {
  const std::string_view group = group_column(query.by);
  Sql days = query_of("SELECT last_updated_at_ts, ");
  days.add(group).add(
      ", num_units, total_time_seconds, total_cpu_energy_usage_kwh, total_gpu_energy_usage_kwh,"
      " total_cpu_emissions_gms, total_gpu_emissions_gms, cluster_id, ceems_weights FROM "
      "daily_usage"
      " WHERE last_updated_at_ts BETWEEN ");
  days.value(query.days.from_ms).add(" AND ").value(query.days.to_ms);
  add_filters(days, query);
  days.add(" ORDER BY last_updated_at_ts");
  std::vector<UsageOfDay> all;
  {
    CEEMS_TRY(rows, open(days, kFactLimit));
    CEEMS_TRY(read_days(*rows, all));
  }
  if (!query.idle) {
    return all;
  }
  // A quarter of an hour is a part of one day, whatever the time zone.
  constexpr std::int64_t kQuarterMs = 15 * kMinuteMs;
  const std::string quarter = fmt::format("ended_at_ts - ended_at_ts % {}", kQuarterMs);
  Sql idle = query_of("SELECT ");
  idle.add(quarter).add(", ").add(group).add(" AS grouped");
  for (const std::string_view one : {fact_sum::kIdle, fact_sum::kIdleOf, fact_sum::kNotUsedUnits,
                                     fact_sum::kNotUsed, fact_sum::kNotUsedOf}) {
    idle.add(fmt::format(", CAST(sum({}) AS bigint)", one));
  }
  idle.add(" FROM ceems_unit_facts WHERE idle_energy >= 0 AND ended_at_ts BETWEEN ");
  idle.value(std::max<std::int64_t>(query.ended.from_ms, 1)).add(" AND ");
  idle.value(query.ended.to_ms);
  add_filters(idle, query);
  idle.add(" GROUP BY ").add(quarter).add(", grouped");
  CEEMS_TRY(rows, open(idle, kFactLimit));
  CEEMS_TRY(read_idle(*rows, all));
  return all;
}

}  // namespace ceems::store
