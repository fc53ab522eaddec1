#include "store/queries/units_query.h"

#include <algorithm>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <vector>

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

std::set<std::string> set_of(const std::vector<std::string>& texts) {
  return {texts.begin(), texts.end()};
}

bool allows(const std::vector<std::string>& list, const std::string& value) {
  return list.empty() || std::ranges::find(list, value) != list.end();
}

/// The conditions on projects and clusters. Where the units are those of one owner, they must not
/// choose the index, unless they fix all columns of ceems_units_counts before the end.
void add_filters(Sql& sql, const UnitQuery& query, bool one_owner) {
  if (one_owner && (query.projects.size() != 1 || query.clusters.size() != 1)) {
    sql.and_filter_in("project", query.projects).and_filter_in("cluster_id", query.clusters);
  } else {
    sql.and_in("project", query.projects).and_in("cluster_id", query.clusters);
  }
}

void add_users(const UnitQuery& query, Dialect dialect, std::vector<Sql>& owners) {
  const Scope& scope = query.owners;
  const std::set<std::string> names = set_of(scope.names);
  for (const std::string& name : names) {
    Sql& owner = owners.emplace_back(dialect, " AND username = ").value(name);
    add_filters(owner, query, true);
  }
  for (const std::string& project : set_of(scope.service_projects)) {
    const std::string account = project + ":svc";
    if (!names.contains(account)) {
      Sql& owner = owners.emplace_back(dialect, " AND username = ").value(account);
      owner.and_service_of(project, scope);
      add_filters(owner, query, true);
    }
  }
}

void add_led(const UnitQuery& query, Dialect dialect, std::vector<Sql>& owners) {
  const Scope& scope = query.owners;
  std::set<std::pair<std::string, std::string>> led;
  for (const ClusterProject& one : scope.led_projects) {
    if (allows(query.clusters, one.cluster_id) && allows(query.projects, one.project)) {
      led.emplace(one.project, one.cluster_id);
    }
  }
  for (const auto& [project, cluster] : led) {
    Sql& owner = owners.emplace_back(dialect, " AND project = ").value(project);
    owner.and_filter_in("cluster_id", {cluster});
    if (!scope.names.empty()) {
      owner.add(" AND coalesce(username, '') NOT IN ").list(scope.names);
    }
  }
}

/// The conditions of the owners one by one, none of which selects a row of another. An index has
/// the units of one user or of one project by their end, but not those of several.
std::vector<Sql> single_owners(Dialect dialect, const UnitQuery& query) {
  std::vector<Sql> owners;
  if (!query.owners.everybody) {
    add_users(query, dialect, owners);
    add_led(query, dialect, owners);
  } else if (query.projects.empty()) {
    owners.emplace_back(dialect, "").and_filter_in("cluster_id", query.clusters);
  } else {
    for (const std::string& project : set_of(query.projects)) {
      Sql& owner = owners.emplace_back(dialect, " AND project = ").value(project);
      owner.and_filter_in("cluster_id", query.clusters);
    }
  }
  return owners;
}

/// All owners in one condition.
Sql every_owner(Dialect dialect, const UnitQuery& query) {
  Sql owner(dialect, "");
  owner.and_owner_in(query.owners);
  add_filters(owner, query,
              !query.owners.everybody && query.uuids.empty() && query.clusters.empty());
  return owner.and_in("uuid", query.uuids);
}

Sql rows_of(const UnitQuery& query, FieldList fields, const Sql& owner, Part part, int reference) {
  std::string columns;
  for (const std::size_t field : fields) {
    columns +=
        fmt::format("{}{}", columns.empty() ? "" : ",", selected(unit_fields()[field], reference));
  }
  const std::string end = part == Part::kRunning ? fmt::to_string(kNeverEnds) : "ended_at_ts";
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
                            apart || (by_end && !with_running) ? Part::kEnded : Part::kAll,
                            reference));
    if (apart) {
      parts.push_back(rows_of(query, fields, owner, Part::kRunning, reference));
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
