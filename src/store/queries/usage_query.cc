#include "store/queries/usage_query.h"

#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "store/json.h"
#include "store/queries/sql_reader.h"
#include "store/queries/usage_groups.h"
#include "store/schema/sums_columns.h"
#include "store/sums/unit_sums.h"

namespace ceems::store {
namespace {

constexpr auto kLimit = std::chrono::minutes(5);

// The kind of a row of the result, its first column.
enum Kind : std::int64_t { kRow, kSumsRow, kSpanCount };

/// Parses a map of a row. Malformed text counts as empty, so that one bad row does not fail the
/// query.
model::MetricMap map_of(std::string_view text) {
  auto map = parse_metric_map(text);
  return map ? std::move(*map) : model::MetricMap();
}

constexpr std::size_t kFirstMap = 8;
constexpr std::size_t kFirstWeight = kFirstMap + model::kMetricCount + 1;

/// The column of the tags, if the query has conditions on them.
std::size_t tags_column() {
  std::size_t column = kFirstWeight;
  for (std::size_t metric = 0; metric < model::kMetricCount; ++metric) {
    column += is_average(metric) ? 1 : 0;
  }
  return column;
}

void add(UsageGroups& groups, const Cursor& row) {
  UsageGroup names;
  names.cluster_id = row.text(3);
  names.resource_manager = row.text(4);
  names.project = row.text(5);
  names.groupname = row.text(6);
  names.username = row.text(7);
  UsageMaps maps;
  for (std::size_t map = 0; map < maps.size(); ++map) {
    maps[map] = map_of(row.text(kFirstMap + map));
  }
  if (row.integer(0) == kRow) {
    groups.add_row(names, row.integer(1), row.integer(2), maps);
    return;
  }
  UsageSums sums;
  sums.num_units = row.integer(2);
  sums.maps = std::move(maps);
  std::size_t column = kFirstWeight;
  for (std::size_t metric = 0; metric < model::kMetricCount; ++metric) {
    if (is_average(metric)) {
      sums.weights[metric] = map_of(row.text(column++));
    }
  }
  groups.add(names, row.integer(1), sums);
}

/// The conditions on columns that both tables have. Rows of all users are found by their last
/// update: few are outside the sums, while a cluster has many.
void add_rows_wanted(Sql& sql, const CurrentUsageQuery& query) {
  const UsageQuery& rows = query.rows;
  if (rows.members.everybody) {
    sql.and_filter_in("project", rows.projects).and_filter_in("cluster_id", rows.clusters);
    return;
  }
  sql.and_usage_of(rows.members);
  sql.and_in("project", rows.projects).and_in("cluster_id", rows.clusters);
}

}  // namespace

Sql usage_statement(Dialect dialect,
                    const CurrentUsageQuery& query,
                    const SpanPlan& plan,
                    int reference) {
  const SumsOf what = query.daily ? SumsOf::kDaySums : SumsOf::kUnitSums;
  Sql sql(dialect,
          fmt::format("SELECT {}, id, {}, cluster_id, resource_manager, project,"
                      " groupname, username, {}{} FROM {}",
                      static_cast<std::int64_t>(kRow), query.daily ? "num_units" : "1",
                      unit_columns(query.maps, reference), query.tags.empty() ? "" : ", tags",
                      query.daily ? "daily_usage" : "units"));
  add_rest(sql, plan.rest);
  add_rows_wanted(sql, query);
  const bool ended = query.terminated_only && !query.daily;
  sql.add(ended ? " AND ended_at_ts > 0" : "");
  if (plan.runs.empty()) {
    return sql;
  }
  sql.add(
      fmt::format(" UNION ALL SELECT {}, first_id, num_units, cluster_id, resource_manager,"
                  " project, groupname, username, {} FROM ceems_unit_sums",
                  static_cast<std::int64_t>(kSumsRow), sums_columns(query.maps)));
  add_runs(sql, what, plan.runs);
  add_rows_wanted(sql, query);
  sql.add(ended ? " AND ended = 1" : "");
  sql.add(fmt::format(" UNION ALL SELECT {}, 0, count(*)", static_cast<std::int64_t>(kSpanCount)));
  for (std::size_t column = 3; column < kFirstWeight; ++column) {
    sql.add(", ''");
  }
  for (std::size_t metric = 0; metric < model::kMetricCount; ++metric) {
    sql.add(is_average(metric) ? ", ''" : "");
  }
  sql.add(" FROM ceems_unit_spans");
  add_runs(sql, what, plan.runs);
  return sql;
}

Result<Spans> SqlReader::known_spans(SumsOf what, const TimeRange& range) {
  Sql sql = query_of("SELECT level, span FROM ceems_unit_spans WHERE 1=0");
  for (int level = 0; level < kSpanLevels; ++level) {
    sql.add(" OR (level = ").value(stored_level(what, level)).add(" AND span BETWEEN ");
    sql.value(range.from_ms / span_width(level)).add(" AND ");
    sql.value(range.to_ms / span_width(level)).add(")");
  }
  CEEMS_TRY(rows, open(sql, kLimit));
  Spans spans;
  while (true) {
    CEEMS_TRY(row, rows->next());
    if (!row) {
      return spans;
    }
    spans.emplace(static_cast<int>(rows->integer(0) - stored_level(what, 0)), rows->integer(1));
  }
}

Result<std::vector<UsageGroup>> SqlReader::current_usage(const CurrentUsageQuery& query) {
  if (query.daily && !query.tags.empty()) {
    return fail(ErrorCode::kInvalidArgument, "days have no tags");
  }
  SpanPlan plan{.runs = {}, .rest = {query.updated}, .spans = 0};
  // The sums do not know the tags of their units.
  if (query.tags.empty() && query.updated.from_ms >= 0 &&
      query.updated.to_ms - query.updated.from_ms > kSpanMs) {
    CEEMS_TRY(spans,
              known_spans(query.daily ? SumsOf::kDaySums : SumsOf::kUnitSums, query.updated));
    plan = plan_spans(query.updated, spans);
  }
  while (true) {
    CEEMS_TRY(rows, open(usage_statement(dialect_, query, plan, reference()), kLimit));
    UsageGroups groups(query);
    bool changed = false;
    while (true) {
      CEEMS_TRY(row, rows->next());
      if (!row) {
        break;
      }
      if (!query.tags.empty() && !has_tags(rows->text(tags_column()), query.tags)) {
        continue;
      }
      if (rows->integer(0) != kSpanCount) {
        add(groups, *rows);
      } else {
        changed = std::cmp_not_equal(rows->integer(2), plan.spans);
      }
    }
    if (!changed) {
      return std::move(groups).finish();
    }
    // A write has touched one of the spans since they were looked up.
    plan = {.runs = {}, .rest = {query.updated}, .spans = 0};
  }
}

}  // namespace ceems::store
