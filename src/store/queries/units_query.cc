#include "store/queries/units_query.h"

#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "store/fields.h"

namespace ceems::store {
namespace {

constexpr std::int64_t kNeverEnds = std::numeric_limits<std::int64_t>::max();

/// Indexes find ended and running units as two ranges. With OR, all units of the owner would be
/// read.
enum class Part { kAll, kEnded, kRunning };

/// The end of the row that `after` names, as it is ordered.
std::int64_t after_end(const UnitQuery& query) {
  return query.after_ended_ms > 0 ? query.after_ended_ms : kNeverEnds;
}

/// The part of the range that is left behind `after`: it keeps the scan of the index short.
TimeRange rest_of(const UnitQuery& query, TimeRange range) {
  if (query.order == UnitOrder::kByEnd && query.after) {
    if (query.descending) {
      range.to_ms = std::min(range.to_ms, after_end(query));
    } else {
      range.from_ms = std::max(range.from_ms, after_end(query));
    }
  }
  return range;
}

void add_part(Sql& sql, const UnitQuery& query, Part part) {
  if (part == Part::kRunning) {
    sql.add(" AND ended_at_ts = 0");
  } else if (query.ended) {
    sql.and_ended(rest_of(query, *query.ended), part == Part::kAll && query.running);
  } else if (part == Part::kEnded) {
    sql.add(" AND ended_at_ts <> 0");
  }
}

void add_after(Sql& sql, const UnitQuery& query, std::string_view end) {
  if (!query.after) {
    return;
  }
  const bool by_end = query.order == UnitOrder::kByEnd;
  sql.add(" AND (").add(by_end ? fmt::format("{}, ", end) : "").add("cluster_id, uuid, started_at");
  sql.add(query.descending ? ") < (" : ") > (");
  if (by_end) {
    sql.value(after_end(query)).add(",");
  }
  sql.value(query.after->cluster_id).add(",").value(query.after->uuid).add(",");
  sql.value(query.after->started_at).add(")");
}

Sql rows_of(Dialect dialect, const UnitQuery& query, FieldList fields, Part part) {
  std::string columns;
  for (const std::size_t field : fields) {
    columns += fmt::format("{}{}", columns.empty() ? "" : ",", unit_fields()[field].column);
  }
  const std::string end = part == Part::kRunning ? fmt::to_string(kNeverEnds) : "ended_at_ts";
  Sql sql(dialect, fmt::format("SELECT {}{}{} AS key0,cluster_id AS key1,uuid AS key2,"
                               "started_at AS key3 FROM units WHERE ignore = 0",
                               columns, columns.empty() ? "" : ",", end));
  sql.and_owner_in(query.owners).and_in("project", query.projects);
  sql.and_in("cluster_id", query.clusters).and_in("uuid", query.uuids);
  add_part(sql, query, part);
  add_after(sql, query, end);
  return sql;
}

}  // namespace

Sql units_statement(Dialect dialect, const UnitQuery& query, FieldList fields) {
  const bool by_end = query.order == UnitOrder::kByEnd;
  const bool with_running = query.ended ? query.running : by_end;
  const bool apart = with_running && (by_end || !query.owners.everybody);
  Sql sql = rows_of(dialect, query, fields,
                    apart || (by_end && !with_running) ? Part::kEnded : Part::kAll);
  if (apart) {
    sql.add(" UNION ALL ").append(rows_of(dialect, query, fields, Part::kRunning));
  }
  sql.add(" ORDER BY");
  for (const int key : {0, 1, 2, 3}) {
    if (key > 0 || by_end) {
      sql.add(fmt::format("{} key{}{}", key > (by_end ? 0 : 1) ? "," : "", key,
                          query.descending ? " DESC" : ""));
    }
  }
  if (query.limit > 0) {
    constexpr std::size_t kMaxRows = std::numeric_limits<std::int32_t>::max();
    sql.add(" LIMIT ").value(static_cast<std::int64_t>(std::min(query.limit, kMaxRows)));
  }
  return sql;
}

}  // namespace ceems::store
