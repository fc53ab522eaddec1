#include "store/queries/units_query.h"

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "store/fields.h"
#include "store/queries/owners.h"

namespace ceems::store {
namespace {

constexpr std::int64_t kNeverEnds = std::numeric_limits<std::int64_t>::max();

/// Indexes find ended and running units as two ranges. With OR, all units of the owner would be
/// read.
enum class UnitPart { kAll, kEnded, kRunning };

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

void add_part(Sql& sql, const UnitQuery& query, UnitPart part) {
  if (part == UnitPart::kRunning) {
    sql.add(" AND ended_at_ts = 0");
  } else if (query.ended) {
    sql.and_ended(rest_of(query, *query.ended), part == UnitPart::kAll && query.running);
  } else if (part == UnitPart::kEnded) {
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

Sql rows_of(
    const UnitQuery& query, FieldList fields, const Sql& owner, UnitPart part, int reference) {
  std::string columns;
  for (const std::size_t field : fields) {
    columns +=
        fmt::format("{}{}", columns.empty() ? "" : ",", selected(unit_fields()[field], reference));
  }
  const std::string end = part == UnitPart::kRunning ? fmt::to_string(kNeverEnds) : "ended_at_ts";
  Sql sql(owner.dialect(), fmt::format("SELECT {}{}{} AS key0,cluster_id AS key1,uuid AS key2,"
                                       "started_at AS key3 FROM units WHERE ignore = 0",
                                       columns, columns.empty() ? "" : ",", end));
  sql.append(owner);
  add_part(sql, query, part);
  add_after(sql, query, end);
  return sql;
}

/// The order of the rows, and how many there are at most.
void add_page(Sql& sql, const UnitQuery& query) {
  const bool by_end = query.order == UnitOrder::kByEnd;
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
}

}  // namespace

Sql units_statement(Dialect dialect, const UnitQuery& query, FieldList fields, int reference) {
  // SQLite allows 500 parts in a statement.
  constexpr std::size_t kMaxOwners = 200;
  const bool by_end = query.order == UnitOrder::kByEnd;
  const bool with_running = query.ended ? query.running : by_end;
  const bool apart = with_running && (by_end || !query.owners.everybody);
  std::vector<Sql> owners;
  if (query.uuids.empty() && (by_end || !query.owners.led_projects.empty())) {
    owners = single_owners(dialect, query);
  }
  if (owners.empty() || owners.size() > kMaxOwners) {
    owners = {every_owner(dialect, query)};
  }
  std::vector<Sql> parts;
  for (const Sql& owner : owners) {
    parts.push_back(rows_of(query, fields, owner,
                            apart || (by_end && !with_running) ? UnitPart::kEnded : UnitPart::kAll,
                            reference));
    if (apart) {
      parts.push_back(rows_of(query, fields, owner, UnitPart::kRunning, reference));
    }
  }
  if (parts.size() == 1) {
    add_page(parts.front(), query);
    return parts.front();
  }
  // SQLite merges the parts, and reads of each only what it needs. PostgreSQL would read and sort
  // them all, unless each is a page of its own.
  const bool pages = dialect == Dialect::kPostgres && query.limit > 0;
  Sql sql(dialect, "");
  for (Sql& part : parts) {
    sql.add(sql.text().empty() ? "" : " UNION ALL ");
    if (pages) {
      add_page(part, query);
    }
    sql.add(pages ? "(" : "").append(part).add(pages ? ")" : "");
  }
  add_page(sql, query);
  return sql;
}

}  // namespace ceems::store
