#include "store/sqlite/reader.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "store/json.h"
#include "store/sqlite/sql.h"
#include "store/usage_groups.h"

namespace ceems::store::sqlite {
namespace {

// A listing is streamed while a client reads it, so it may take as long as the reference allows.
constexpr auto kListLimit = std::chrono::minutes(5);
constexpr auto kShortLimit = std::chrono::seconds(10);

std::string column_list(std::span<const Field> all, FieldList fields) {
  std::string text = "SELECT ";
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (i > 0) {
      text += ',';
    }
    text += all[fields[i]].column;
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

/// A map of a row; malformed text counts as empty, so one bad row does not take the answer away.
model::MetricMap map_of(std::string_view text) {
  auto map = parse_metric_map(text);
  return map ? std::move(*map) : model::MetricMap();
}

}  // namespace

class SqliteReader::Rows final : public Cursor {
 public:
  Rows(Pool::Lease lease, Statement statement)
      : lease_(std::move(lease)), statement_(std::move(statement)) {}

  Result<bool> next() override { return statement_.step(); }
  [[nodiscard]] std::string_view text(std::size_t column) const override {
    return statement_.text(static_cast<int>(column));
  }
  [[nodiscard]] std::int64_t integer(std::size_t column) const override {
    return statement_.integer(static_cast<int>(column));
  }

 private:
  Pool::Lease lease_;  // outlives the statement
  Statement statement_;
};

Result<std::unique_ptr<Cursor>> SqliteReader::open(const Sql& sql) {
  auto lease = pool_->acquire(kListLimit);
  if (!lease) {
    return fail(std::move(lease).error());
  }
  auto statement = sql.prepare(lease->connection());
  if (!statement) {
    return fail(std::move(statement).error());
  }
  return std::make_unique<Rows>(std::move(*lease), std::move(*statement));
}

Result<> SqliteReader::ping() {
  auto lease = pool_->acquire(kShortLimit);
  if (!lease) {
    return fail(std::move(lease).error());
  }
  const auto version = lease->connection().query_integer("SELECT version FROM schema_migrations");
  if (!version) {
    return fail(version.error());
  }
  return {};
}

Result<bool> SqliteReader::is_admin(std::string_view user) {
  auto lease = pool_->acquire(kShortLimit);
  if (!lease) {
    return fail(std::move(lease).error());
  }
  Sql sql("SELECT 1 FROM admin_users WHERE name = ");
  sql.value(user);
  auto statement = sql.prepare(lease->connection());
  if (!statement) {
    return fail(std::move(statement).error());
  }
  return statement->step();
}

Result<std::unique_ptr<Cursor>> SqliteReader::units(const UnitQuery& query, FieldList fields) {
  Sql sql(column_list(unit_fields(), fields));
  sql.add(" FROM units WHERE ignore = 0").and_owner_in(query.owners);
  sql.and_in("project", query.projects).and_in("cluster_id", query.clusters);
  sql.and_in("uuid", query.uuids);
  if (query.ended) {
    sql.add(" AND (ended_at_ts BETWEEN max(1,").value(query.ended->from_ms);
    sql.add(") AND ").value(query.ended->to_ms);
    sql.add(query.running ? " OR ended_at_ts = 0)" : ")");
  }
  if (query.after) {
    sql.add(" AND (cluster_id, uuid, started_at) > (").value(query.after->cluster_id).add(",");
    sql.value(query.after->uuid).add(",").value(query.after->started_at).add(")");
  }
  sql.add(" ORDER BY cluster_id, uuid, started_at");
  if (query.limit > 0) {
    constexpr std::size_t kMost = std::numeric_limits<std::int32_t>::max();
    sql.add(" LIMIT ").value(static_cast<std::int64_t>(std::min(query.limit, kMost)));
  }
  return open(sql);
}

Result<std::size_t> SqliteReader::count_member_units(const Scope& members,
                                                     const std::vector<std::string>& clusters,
                                                     const std::vector<std::string>& uuids) {
  auto lease = pool_->acquire(kShortLimit);
  if (!lease) {
    return fail(std::move(lease).error());
  }
  Sql sql("SELECT count(DISTINCT uuid) FROM units WHERE cluster_id IN ");
  sql.list(clusters).add(" AND uuid IN ").list(uuids);
  sql.and_project_of("project", members);
  auto statement = sql.prepare(lease->connection());
  if (!statement) {
    return fail(std::move(statement).error());
  }
  const auto row = statement->step();
  if (!row) {
    return fail(row.error());
  }
  return *row ? static_cast<std::size_t>(statement->integer(0)) : 0;
}

Result<std::unique_ptr<Cursor>> SqliteReader::users(const Scope& scope,
                                                    const std::vector<std::string>& clusters) {
  Sql sql(all_columns(user_fields()));
  sql.add(" FROM users WHERE 1").and_user_in("name", scope).and_in("cluster_id", clusters);
  sql.add(" ORDER BY cluster_id, name");
  return open(sql);
}

Result<std::unique_ptr<Cursor>> SqliteReader::admins() {
  Sql sql(all_columns(user_fields()));
  sql.add(" FROM admin_users ORDER BY id");
  return open(sql);
}

Result<std::unique_ptr<Cursor>> SqliteReader::projects(const UsageQuery& query) {
  Sql sql(all_columns(project_fields()));
  sql.add(" FROM projects WHERE json_valid(users) AND json_array_length(users) > 0");
  sql.and_project_of("name", query.members);
  sql.and_in("name", query.projects).and_in("cluster_id", query.clusters);
  sql.add(" ORDER BY cluster_id, name");
  return open(sql);
}

Result<std::unique_ptr<Cursor>> SqliteReader::clusters() {
  Sql sql("SELECT DISTINCT cluster_id, resource_manager FROM units ORDER BY cluster_id");
  return open(sql);
}

Result<std::unique_ptr<Cursor>> SqliteReader::stats(const std::vector<std::string>& clusters,
                                                    const std::optional<TimeRange>& ended) {
  Sql sql(
      "SELECT cluster_id, max(resource_manager), count(*), sum(ended_at_ts > 0),"
      " sum(ended_at_ts = 0), count(DISTINCT project), count(DISTINCT username)"
      " FROM units WHERE 1");
  sql.and_in("cluster_id", clusters);
  if (ended) {
    sql.add(" AND (ended_at_ts BETWEEN max(1,").value(ended->from_ms);
    sql.add(") AND ").value(ended->to_ms).add(" OR ended_at_ts = 0)");
  }
  sql.add(" GROUP BY cluster_id ORDER BY cluster_id");
  return open(sql);
}

Result<std::unique_ptr<Cursor>> SqliteReader::usage(const UsageQuery& query, FieldList fields) {
  Sql sql(column_list(usage_fields(), fields));
  sql.add(" FROM usage WHERE 1").and_project_of("project", query.members);
  sql.and_in("project", query.projects).and_in("cluster_id", query.clusters);
  sql.add(" ORDER BY cluster_id, username, project");
  return open(sql);
}

Result<std::vector<UsageGroup>> SqliteReader::current_usage(const CurrentUsageQuery& query) {
  Sql sql("SELECT cluster_id, resource_manager, ");
  sql.add(query.daily ? "num_units" : "1").add(", project, groupname, username");
  for (std::size_t map = 0; map < query.maps.size(); ++map) {
    // The times are the weights of averages.
    sql.add(",").add(map == 0 || query.maps[map] ? usage_fields()[kUsageTimes + map].column : "''");
  }
  sql.add(query.daily ? " FROM daily_usage" : " FROM units");
  sql.add(" WHERE last_updated_at_ts BETWEEN ").value(query.updated.from_ms);
  sql.add(" AND ").value(query.updated.to_ms);
  sql.and_project_of("project", query.rows.members);
  sql.and_in("project", query.rows.projects).and_in("cluster_id", query.rows.clusters);
  if (query.terminated_only && !query.daily) {
    sql.add(" AND ended_at_ts > 0");
  }
  sql.add(" ORDER BY id");
  const auto rows = open(sql);
  if (!rows) {
    return fail(rows.error());
  }
  UsageGroups groups(query);
  while (true) {
    const auto row = (*rows)->next();
    if (!row) {
      return fail(row.error());
    }
    if (!*row) {
      return std::move(groups).finish();
    }
    UsageGroup group;
    group.cluster_id = (*rows)->text(0);
    group.resource_manager = (*rows)->text(1);
    group.num_units = (*rows)->integer(2);
    group.project = (*rows)->text(3);
    group.groupname = (*rows)->text(4);
    group.username = (*rows)->text(5);
    for (std::size_t map = 0; map < group.maps.size(); ++map) {
      group.maps[map] = map_of((*rows)->text(kUsageTimes + map));
    }
    groups.add(std::move(group));
  }
}

}  // namespace ceems::store::sqlite
