#include "store/queries/fact_statements.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/strings.h"
#include "store/queries/owners.h"

namespace ceems::store {
namespace {

/// What a unit that has not ended, or a value that is not known, is sorted by where it comes last.
constexpr std::int64_t kLast = std::numeric_limits<std::int64_t>::max();
/// The same of texts: no other character comes after it.
constexpr std::string_view kLastText = "\xF4\x8F\xBF\xBF";
/// SQLite allows 500 parts in a statement, of which an owner may need two.
constexpr std::size_t kMaxOwners = 100;
/// Of so many users, the units of each are read by its index.
constexpr std::size_t kFewUsers = 8;

enum class Part { kAll, kEnded, kRunning };

bool is_text(Fact fact) {
  return column_of(fact).kind == FactKind::kText;
}

UnitQuery owners_of(const FactFilter& filter) {
  UnitQuery query;
  query.owners = filter.owners;
  query.projects = filter.projects;
  query.clusters = filter.clusters;
  query.uuids = filter.uuids;
  return query;
}

/// Whether the ids choose the index: they find few units, however many an owner has.
bool is_by_ids(const FactFilter& filter) {
  return !filter.uuids.empty() || !filter.array_prefix.empty();
}

/// The owners as a condition that chooses no index.
void add_owners_as_filter(Sql& sql, const Scope& owners) {
  if (!owners.everybody) {
    sql.add(" AND (1 = 1").and_owner_in(owners).add(") IS TRUE");
  }
}

/// The conditions of the owners, each for a part of the statement.
std::vector<Sql> owner_parts(Dialect dialect, const FactFilter& filter) {
  std::vector<Sql> owners;
  if (is_by_ids(filter)) {
    Sql owner(dialect, "");
    add_owners_as_filter(owner, filter.owners);
    owner.and_filter_in("project", filter.projects).and_in("cluster_id", filter.clusters);
    if (!filter.uuids.empty() && filter.clusters.empty()) {
      owner.add(" AND cluster_id IN (SELECT cluster_id FROM ceems_watermarks)");  // for the index
    }
    owner.and_in("uuid", filter.uuids);
    owners.push_back(std::move(owner));
    return owners;
  }
  if (filter.id_prefix.empty() && !filter.users.empty() && filter.users.size() <= kFewUsers) {
    // Of a led project with many units, or of everybody, few may be of these users.
    for (const std::string& user : filter.users) {
      Sql& owner = owners.emplace_back(dialect, " AND username = ").value(user);
      add_owners_as_filter(owner, filter.owners);
      owner.and_filter_in("project", filter.projects).and_filter_in("cluster_id", filter.clusters);
    }
    return owners;
  }
  if (filter.id_prefix.empty()) {
    owners = single_owners(dialect, owners_of(filter));
  }
  if (owners.empty() || owners.size() > kMaxOwners) {
    owners.clear();
    owners.push_back(every_owner(dialect, owners_of(filter)));
  }
  return owners;
}

std::vector<Part> time_parts(const FactFilter& filter) {
  if (!filter.ended) {
    return {Part::kEnded, Part::kRunning};
  }
  return filter.running ? std::vector{Part::kEnded, Part::kRunning} : std::vector{Part::kEnded};
}

void add_time(Sql& sql, const FactFilter& filter, Part part) {
  sql.add(is_by_ids(filter) ? " AND ended_at_ts + 0" : " AND ended_at_ts");
  if (part == Part::kRunning) {
    sql.add(" = 0");
  } else if (filter.ended) {
    sql.add(" BETWEEN ").value(std::max<std::int64_t>(filter.ended->from_ms, 1));
    sql.add(" AND ").value(filter.ended->to_ms);
  } else {
    sql.add(" > 0");
  }
}

/// A word begins one of the ids, or is in one of the texts.
void add_word(Sql& sql, const FactFilter& filter, const std::string& word) {
  const std::string_view position = sql.dialect() == Dialect::kSqlite ? "instr" : "strpos";
  sql.add(" AND (substr(lower(uuid), 1, ").add(std::to_string(word.size())).add(") = ");
  sql.value(word);
  sql.add(" OR substr(array_id, 1, ").add(std::to_string(word.size())).add(") = ").value(word);
  for (const Fact fact : {Fact::kName, Fact::kUser, Fact::kProject}) {
    sql.add(" OR ").add(position).add("(lower(");
    append_fact(sql, fact, filter.names);
    sql.add("), ").value(word).add(") > 0");
  }
  sql.add(")");
}

void add_conditions(Sql& sql, const FactFilter& filter) {
  if (filter.members) {
    sql.and_usage_of(*filter.members);
  }
  sql.and_filter_in("username", filter.users).and_in("queue", filter.partitions);
  if (filter.state_running) {
    sql.add(" AND ((ended_at_ts = 0 AND started_at_ts > 0)");
    if (!filter.states.empty()) {
      sql.add(" OR state IN ").list(filter.states);
    }
    sql.add(")");
  } else if (!filter.states.empty()) {
    sql.add(" AND state IN ").list(filter.states);
  }
  if (filter.advice != 0) {
    sql.add(" AND (advice & ").value(filter.advice).add(") <> 0");
  }
  for (const FactRange& range : filter.ranges) {
    sql.add(" AND ");
    append_fact(sql, range.fact, filter.names);
    sql.add(" BETWEEN ").value(std::max<std::int64_t>(range.low, 0)).add(" AND ");
    sql.value(range.high);
  }
  if (!filter.id_prefix.empty()) {
    // The index of ids begins with the cluster.
    sql.add(" AND cluster_id IN (SELECT cluster_id FROM ceems_watermarks) AND uuid >= ");
    sql.value(filter.id_prefix).add(" AND uuid < ");
    sql.value(filter.id_prefix + std::string(kLastText));
  }
  if (!filter.array_prefix.empty()) {
    // The first condition is that of the index.
    sql.add(" AND array_id <> '' AND array_id >= ").value(filter.array_prefix);
    sql.add(" AND array_id < ").value(filter.array_prefix + std::string(kLastText));
  }
  for (const std::string& word : filter.words) {
    add_word(sql, filter, word);
  }
}

/// What the rows are sorted by. Values that are not known come last in both directions.
void add_sort_value(Sql& sql, const FactListQuery& query) {
  const FactColumn& column = column_of(query.sort);
  if (query.sort == Fact::kEnded) {
    sql.add(fmt::format("(CASE WHEN ended_at_ts = 0 THEN {} ELSE ended_at_ts END)", kLast));
  } else if (query.descending) {
    append_fact(sql, query.sort, query.filter.names);
  } else if (is_text(query.sort)) {
    sql.add("coalesce(nullif(");
    append_fact(sql, query.sort, query.filter.names);
    sql.add(", ''), ").value(kLastText).add(")");
  } else {
    const std::string_view unknown = column.kind == FactKind::kMoment ? "<= 0" : "< 0";
    sql.add("(CASE WHEN ").add(column.sql).add(" ").add(unknown);
    sql.add(fmt::format(" THEN {} ELSE ", kLast)).add(column.sql).add(" END)");
  }
}

bool descends(const FactListQuery& query) {
  return query.descending != query.backwards;
}

void add_after(Sql& sql, const FactListQuery& query, Part part) {
  if (!query.after) {
    return;
  }
  const FactPlace& after = *query.after;
  if (query.sort == Fact::kEnded && part == Part::kEnded) {
    // It keeps the scan of the index short.
    const auto ended = parse_int<std::int64_t>(after.value).value_or(0);
    sql.add(descends(query) ? " AND ended_at_ts <= " : " AND ended_at_ts >= ").value(ended);
  }
  sql.add(" AND (");
  add_sort_value(sql, query);
  sql.add(descends(query) ? ", id) < (" : ", id) > (");
  if (is_text(query.sort)) {
    sql.value(after.value);
  } else {
    sql.value(parse_int<std::int64_t>(after.value).value_or(0));
  }
  sql.add(", ").value(after.id).add(")");
}

void add_order(Sql& sql, const FactListQuery& query, std::string_view key) {
  const std::string_view direction = descends(query) ? " DESC" : "";
  sql.add(" ORDER BY ").add(key).add(direction).add(", number").add(direction);
  if (query.limit > 0) {
    sql.add(" LIMIT ").value(static_cast<std::int64_t>(query.limit));
  }
}

Sql one_part(const FactListQuery& query, const Sql& owner, Part part) {
  Sql sql(owner.dialect(), "SELECT ");
  for (std::size_t i = 0; i < query.columns.size(); ++i) {
    append_fact(sql, query.columns[i], query.filter.names);
    sql.add(fmt::format(" AS c{}, ", i));
  }
  add_sort_value(sql, query);
  sql.add(" AS place, id AS number FROM ceems_unit_facts WHERE ignore = 0").append(owner);
  add_time(sql, query.filter, part);
  add_conditions(sql, query.filter);
  add_after(sql, query, part);
  // Within a part, an index has the rows by their end.
  const bool indexed = query.sort == Fact::kEnded && !is_by_ids(query.filter);
  add_order(sql, query, !indexed ? "place" : "ended_at_ts");
  return sql;
}

}  // namespace

void append_fact(Sql& sql, Fact fact, const NameRule& names) {
  if (fact != Fact::kName && fact != Fact::kStrip) {
    sql.add(column_of(fact).sql);
  } else {
    append_name(sql, column_of(fact).sql, names);
  }
}

void append_name(Sql& sql, std::string_view column, const NameRule& names) {
  if (names.everybody) {
    sql.add(column);
    return;
  }
  sql.add("(CASE WHEN username = ").value(names.user);
  if (!names.led.empty()) {
    sql.add(" OR (cluster_id, project) IN (VALUES ");
    for (std::size_t i = 0; i < names.led.size(); ++i) {
      sql.add(i == 0 ? "(" : ",(").value(names.led[i].cluster_id).add(",");
      sql.value(names.led[i].project).add(")");
    }
    sql.add(")");
  }
  sql.add(" THEN ").add(column).add(" ELSE '' END)");
}

Sql facts_statement(Dialect dialect, const FactListQuery& query) {
  std::vector<Sql> parts;
  for (const Sql& owner : owner_parts(dialect, query.filter)) {
    for (const Part part : time_parts(query.filter)) {
      parts.push_back(one_part(query, owner, part));
    }
  }
  if (parts.size() == 1) {
    return std::move(parts.front());
  }
  Sql sql(dialect, "");
  for (const Sql& part : parts) {
    sql.add(sql.text().empty() ? "SELECT * FROM (" : " UNION ALL SELECT * FROM (");
    sql.append(part).add(fmt::format(") AS part{}", &part - parts.data()));
  }
  add_order(sql, query, "place");
  return sql;
}

Sql count_facts_up_to(Dialect dialect, const FactFilter& filter, std::int64_t limit) {
  Sql sql(dialect, "SELECT count(*) FROM (");
  bool first = true;
  for (const Sql& owner : owner_parts(dialect, filter)) {
    for (const Part part : time_parts(filter)) {
      sql.add(first ? "" : " UNION ALL ").add("SELECT 1 AS one FROM ceems_unit_facts WHERE 1 = 1");
      sql.append(owner);
      add_time(sql, filter, part);
      first = false;
    }
  }
  return sql.add(" LIMIT ").value(limit + 1).add(") AS found");
}

Sql filtered_facts(Dialect dialect, const FactFilter& filter, const Sql& columns) {
  Sql sql(dialect, "");
  for (const Sql& owner : owner_parts(dialect, filter)) {
    for (const Part part : time_parts(filter)) {
      sql.add(sql.text().empty() ? "SELECT " : " UNION ALL SELECT ").append(columns);
      sql.add(" FROM ceems_unit_facts WHERE ignore = 0").append(owner);
      add_time(sql, filter, part);
      add_conditions(sql, filter);
    }
  }
  return sql;
}

}  // namespace ceems::store
