#include "store/queries/counted_units.h"

#include <algorithm>
#include <string_view>

namespace ceems::store {
namespace {

constexpr std::string_view kCounts =
    ", count(*), count(*) FILTER (WHERE ended_at_ts > 0), count(*) FILTER (WHERE ended_at_ts = 0)"
    " FROM units WHERE 1=1";

}  // namespace

Sql count_all_units(Dialect dialect,
                    const std::vector<std::string>& clusters,
                    const std::optional<TimeRange>& ended) {
  Sql sql(dialect, "SELECT cluster_id, project, username");
  sql.add(kCounts).and_in("cluster_id", clusters);
  if (ended) {
    // A sum is in no index of its own, so the order of the groups decides which rows are read.
    sql.add(" AND (ended_at_ts + 0 BETWEEN ").value(std::max<std::int64_t>(ended->from_ms, 1));
    sql.add(" AND ").value(ended->to_ms).add(" OR ended_at_ts + 0 = 0)");
  }
  return sql.add(" GROUP BY cluster_id, project, username");
}

Sql count_few_units(Dialect dialect,
                    const std::vector<std::string>& clusters,
                    const TimeRange& ended) {
  Sql sql(dialect, "");
  for (const bool running : {false, true}) {
    // The group is an expression, so that no index gives its order.
    sql.add(running ? " UNION ALL SELECT" : "SELECT").add(" cluster_id || '', project, username");
    sql.add(kCounts);
    if (running) {
      sql.add(" AND ended_at_ts = 0");
    } else {
      sql.and_ended(ended, false);
    }
    if (!clusters.empty()) {
      sql.add(" AND cluster_id || '' IN ").list(clusters);
    }
    sql.add(" GROUP BY cluster_id || '', project, username");
  }
  return sql;
}

Sql estimate_units(Dialect dialect, const TimeRange& ended) {
  constexpr std::string_view kLimit =
      "(SELECT coalesce(max(id), 0) FROM units) / 20 - (SELECT coalesce(min(id), 0) FROM units) / "
      "20";
  Sql sql(dialect, "SELECT ");
  for (const bool running : {false, true}) {
    sql.add(running ? " + " : "").add("(SELECT count(*) FROM (SELECT 1 FROM units WHERE 1=1");
    if (running) {
      sql.add(" AND ended_at_ts = 0");
    } else {
      sql.and_ended(ended, false);
    }
    sql.add(" LIMIT (").add(kLimit).add(")) AS counted)");
  }
  return sql.add(", ").add(kLimit);
}

Sql count_members_of(Dialect dialect,
                     const Scope& members,
                     const std::vector<std::string>& clusters,
                     const std::vector<std::string>& uuids,
                     bool since) {
  Sql units(dialect, " FROM units WHERE cluster_id IN ");
  units.list(clusters).add(" AND uuid IN ").list(uuids);
  Sql count(dialect, "SELECT count(DISTINCT uuid)");
  return count.append(units).and_seen_among(members, units, since);
}

}  // namespace ceems::store
