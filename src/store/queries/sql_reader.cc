#include "store/queries/sql_reader.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "store/queries/counted_units.h"
#include "store/queries/units_query.h"

namespace ceems::store {
namespace {

std::string column_list(std::span<const Field> all,
                        FieldList fields,
                        int reference = kNewestReference) {
  std::string text = "SELECT ";
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (i > 0) {
      text += ',';
    }
    text += selected(all[fields[i]], reference);
  }
  return text;
}

std::string all_columns(std::span<const Field> all) {
  std::vector<std::size_t> fields(all.size());
  for (std::size_t i = 0; i < fields.size(); ++i) {
    fields[i] = i;
  }
  return column_list(all, fields);
}

/// Whether a query failed because the database has no such table.
bool lacks_table(const Error& error, std::string_view table) {
  const auto has = [&error](std::string_view text) {
    return error.message.find(text) != std::string::npos;
  };
  return has(table) && (has("no such table") || has("(42P01)"));  // PostgreSQL: undefined_table
}

}  // namespace

Result<std::unique_ptr<Cursor>> SqlReader::open(const Sql& sql, std::chrono::milliseconds limit) {
  CEEMS_TRY(upgrade_ != nullptr ? upgrade_->ready() : Result<>());
  return open_early(sql, limit);
}

Result<> SqlReader::ping() {
  CEEMS_TRY(rows, open_early(query_of("SELECT version FROM schema_migrations"), kShortLimit));
  CEEMS_TRY(rows->next());
  return {};
}

Result<bool> SqlReader::is_admin(std::string_view user) {
  Sql query = query_of("SELECT 1 FROM admin_users WHERE name = ");
  query.value(user);
  CEEMS_TRY(rows, open_early(query, kShortLimit));
  return rows->next();
}

Result<bool> SqlReader::knows_user(std::string_view user) {
  Sql query = query_of("SELECT 1 WHERE EXISTS (SELECT 1 FROM users WHERE name = ");
  query.value(user).add(") OR EXISTS (SELECT 1 FROM units WHERE username = ").value(user);
  query.add(") OR NOT EXISTS (SELECT 1 FROM units)");
  CEEMS_TRY(rows, open_early(query, kShortLimit));
  return rows->next();
}

Result<std::vector<ClusterProject>> SqlReader::led_projects(std::string_view user) {
  Sql query = query_of("SELECT cluster_id, project FROM ceems_project_leads WHERE name = ");
  query.value(user).add(" ORDER BY cluster_id, project");
  const auto rows = open_early(query, kShortLimit);
  if (!rows && lacks_table(rows.error(), "ceems_project_leads")) {
    return std::vector<ClusterProject>{};  // an old database, not yet upgraded
  }
  if (!rows) {
    return fail(rows.error());
  }
  std::vector<ClusterProject> led;
  while (true) {
    CEEMS_TRY(row, (*rows)->next());
    if (!row) {
      return led;
    }
    led.push_back(
        {.cluster_id = std::string((*rows)->text(0)), .project = std::string((*rows)->text(1))});
  }
}

Result<std::vector<std::string>> SqlReader::leads_of(std::string_view cluster_id,
                                                     std::string_view project) {
  Sql query = query_of("SELECT DISTINCT name FROM ceems_project_leads WHERE project = ");
  query.value(project);
  if (!cluster_id.empty()) {
    query.add(" AND cluster_id = ").value(cluster_id);
  }
  query.add(" ORDER BY name");
  const auto rows = open_early(query, kShortLimit);
  if (!rows && lacks_table(rows.error(), "ceems_project_leads")) {
    return std::vector<std::string>{};  // an old database, not yet upgraded
  }
  if (!rows) {
    return fail(rows.error());
  }
  std::vector<std::string> names;
  while (true) {
    CEEMS_TRY(row, (*rows)->next());
    if (!row) {
      return names;
    }
    names.emplace_back((*rows)->text(0));
  }
}

Result<std::map<std::string, std::int64_t>> SqlReader::watermarks() {
  const auto rows =
      open_early(query_of("SELECT cluster_id, window_end_ms FROM ceems_watermarks"), kShortLimit);
  if (!rows && lacks_table(rows.error(), "ceems_watermarks")) {
    return std::map<std::string, std::int64_t>{};  // an old database, not yet upgraded
  }
  if (!rows) {
    return fail(rows.error());
  }
  std::map<std::string, std::int64_t> read;
  while (true) {
    CEEMS_TRY(row, (*rows)->next());
    if (!row) {
      return read;
    }
    read.emplace((*rows)->text(0), (*rows)->integer(1));
  }
}

Result<std::unique_ptr<Cursor>> SqlReader::units(const UnitQuery& query, FieldList fields) {
  return open(units_statement(dialect_, query, fields, reference()), kListLimit);
}

/// An old database has no table of who joined when. Then members see all of their projects.
Result<std::unique_ptr<Cursor>> SqlReader::open_seen(
    const std::function<Sql(bool since)>& statement) {
  auto rows = open_early(statement(true), kShortLimit);
  return !rows && lacks_table(rows.error(), "ceems_members")
             ? open_early(statement(false), kShortLimit)
             : std::move(rows);
}

Result<std::size_t> SqlReader::count_member_units(const Scope& members,
                                                  const std::vector<std::string>& clusters,
                                                  const std::vector<std::string>& uuids) {
  CEEMS_TRY(rows, open_seen([&](bool since) {
              return count_members_of(dialect_, members, clusters, uuids, since);
            }));
  CEEMS_TRY(row, rows->next());
  return row ? static_cast<std::size_t>(rows->integer(0)) : 0;
}

Result<std::vector<UnitLife>> SqlReader::unit_lives(const Scope& members,
                                                    const std::string& cluster,
                                                    const std::vector<std::string>& uuids) {
  Sql units = query_of(" FROM units WHERE cluster_id = ");
  units.value(cluster).add(" AND uuid IN ").list(uuids);
  CEEMS_TRY(rows, open_seen([&](bool since) {
              Sql query = query_of("SELECT uuid, CASE WHEN 1=1");
              query.and_seen_among(members, units, since);
              query.add(" THEN 1 ELSE 0 END, created_at_ts, started_at_ts, ended_at_ts");
              return query.append(units).add(" ORDER BY uuid, started_at");
            }));
  std::vector<UnitLife> lives;
  while (true) {
    CEEMS_TRY(row, rows->next());
    if (!row) {
      return lives;
    }
    const Cursor& cursor = *rows;
    lives.push_back({.uuid = std::string(cursor.text(0)),
                     .in_scope = cursor.integer(1) != 0,
                     .created_ms = cursor.integer(2),
                     .started_ms = cursor.integer(3),
                     .ended_ms = cursor.integer(4)});
  }
}

Result<std::unique_ptr<Cursor>> SqlReader::users(const Scope& scope,
                                                 const std::vector<std::string>& clusters) {
  Sql sql = query_of(all_columns(user_fields()));
  sql.add(" FROM users WHERE 1=1").and_user_in("name", scope).and_in("cluster_id", clusters);
  sql.add(" ORDER BY cluster_id, name");
  return open_early(sql, kListLimit);
}

Result<std::unique_ptr<Cursor>> SqlReader::admins() {
  Sql sql = query_of(all_columns(user_fields()));
  sql.add(" FROM admin_users ORDER BY id");
  return open_early(sql, kListLimit);
}

Result<std::unique_ptr<Cursor>> SqlReader::projects(const UsageQuery& query) {
  Sql sql = query_of(all_columns(project_fields()));
  sql.add(dialect_ == Dialect::kSqlite
              ? " FROM projects WHERE json_valid(users) AND json_array_length(users) > 0"
              : " FROM projects WHERE users NOT IN ('null', '[]')");
  sql.and_project_of("name", query.members);
  sql.and_in("name", query.projects).and_in("cluster_id", query.clusters);
  sql.add(" ORDER BY cluster_id, name");
  return open_early(sql, kListLimit);
}

Result<std::unique_ptr<Cursor>> SqlReader::clusters() {
  // Jumps from one cluster to the next in the index; DISTINCT would read all units.
  return open_early(
      query_of("WITH RECURSIVE found(cluster) AS (SELECT min(cluster_id) FROM units UNION ALL"
               " SELECT (SELECT min(cluster_id) FROM units WHERE cluster_id > found.cluster)"
               " FROM found WHERE cluster IS NOT NULL)"
               " SELECT cluster, (SELECT resource_manager FROM units WHERE cluster_id = cluster"
               " LIMIT 1) FROM found WHERE cluster IS NOT NULL ORDER BY cluster"),
      kListLimit);
}

Result<std::unique_ptr<Cursor>> SqlReader::usage(const UsageQuery& query, FieldList fields) {
  Sql sql = query_of(column_list(usage_fields(), fields, reference()));
  sql.add(" FROM usage WHERE 1=1").and_usage_of(query.members);
  sql.and_in("project", query.projects).and_in("cluster_id", query.clusters);
  sql.add(" ORDER BY cluster_id, username, project");
  return open(sql, kListLimit);
}

}  // namespace ceems::store
