#include "store/sqlite/own_tables.h"

#include <fmt/format.h>

#include "store/schema/effects_table.h"
#include "store/schema/ended_tables.h"
#include "store/schema/fact_columns.h"
#include "store/schema/feedback_table.h"
#include "store/schema/flavor_table.h"
#include "store/schema/mail_tables.h"
#include "store/schema/members_table.h"
#include "store/schema/node_columns.h"
#include "store/schema/report_tables.h"
#include "store/schema/sums_columns.h"
#include "store/schema/table_sql.h"
#include "store/schema/tables.h"
#include "store/schema/token_table.h"

namespace ceems::store::sqlite {
namespace {

/// Our additions. The reference ignores extra tables, indexes and columns, so it can still open the
/// file. Its updates do not set last_updated_at_ts: the triggers mark such rows, and take_over()
/// corrects them.
constexpr const char* kFirstOwnStep =
    "CREATE TABLE ceems_schema (version integer not null);"
    "INSERT INTO ceems_schema VALUES (1);"
    "CREATE TABLE ceems_watermarks (cluster_id text not null primary key,"
    " window_end_ms integer not null) WITHOUT ROWID;"
    "CREATE TABLE ceems_admin_sources (source text not null, name text not null,"
    " PRIMARY KEY (source, name)) WITHOUT ROWID;"
    "CREATE INDEX ceems_units_updated ON units (last_updated_at_ts);"
    "CREATE INDEX ceems_units_ended ON units (ended_at_ts);"
    "CREATE INDEX ceems_units_user_ended ON units (username, ended_at_ts);"
    "CREATE INDEX ceems_daily_usage_day ON daily_usage (last_updated_at_ts);"
    "CREATE TRIGGER ceems_units_foreign AFTER UPDATE OF last_updated_at ON units"
    " WHEN NEW.last_updated_at_ts IS OLD.last_updated_at_ts"
    " AND NEW.last_updated_at IS NOT OLD.last_updated_at"
    " BEGIN UPDATE units SET last_updated_at_ts = NULL WHERE id = NEW.id; END;"
    "CREATE TRIGGER ceems_usage_foreign AFTER UPDATE OF last_updated_at ON usage"
    " WHEN NEW.last_updated_at_ts IS OLD.last_updated_at_ts"
    " AND NEW.last_updated_at IS NOT OLD.last_updated_at"
    " BEGIN UPDATE usage SET last_updated_at_ts = NULL WHERE id = NEW.id; END;";

/// Version 2: sums over units (sums/unit_sums.h).
std::string sums_tables() {
  return "CREATE TABLE ceems_unit_spans (level integer not null, span integer not null,"
         " PRIMARY KEY (level, span)) WITHOUT ROWID;"
         "CREATE TABLE ceems_unit_sums (level integer not null, span integer not null,"
         "cluster_id text, username text, project text, groupname text, resource_manager text,"
         "ended integer, first_id integer, num_units integer," +
         sums_definitions(Dialect::kSqlite, kMapColumns) +
         ");CREATE INDEX ceems_unit_sums_span ON ceems_unit_sums (level, span);";
}

/// Version 3: gaps (writer/gaps.h); updates by the reference clear the weights of averages
/// (merge.h).
constexpr const char* kGapTables =
    "DROP TRIGGER ceems_units_foreign;"
    "DROP TRIGGER ceems_usage_foreign;"
    "CREATE TRIGGER ceems_units_foreign AFTER UPDATE OF last_updated_at ON units"
    " WHEN NEW.last_updated_at_ts IS OLD.last_updated_at_ts"
    " AND NEW.last_updated_at IS NOT OLD.last_updated_at BEGIN"
    " UPDATE units SET last_updated_at_ts = NULL, ceems_weights = NULL WHERE id = NEW.id; END;"
    "CREATE TRIGGER ceems_usage_foreign AFTER UPDATE OF last_updated_at ON usage"
    " WHEN NEW.last_updated_at_ts IS OLD.last_updated_at_ts"
    " AND NEW.last_updated_at IS NOT OLD.last_updated_at BEGIN"
    " UPDATE usage SET last_updated_at_ts = NULL, ceems_weights = NULL WHERE id = NEW.id; END;"
    "CREATE TABLE ceems_gaps (id integer not null primary key, cluster_id text not null,"
    " updater text not null, parts text not null, start_ms integer not null,"
    " end_ms integer not null);"
    "CREATE TABLE ceems_gap_units (gap_id integer not null, uuid text not null, started_at text,"
    " started_at_ts integer, ended_at_ts integer, times text);"
    "CREATE INDEX ceems_gap_units_gap ON ceems_gap_units (gap_id);";

/// Version 4: the leads of each project according to the resource managers.
constexpr const char* kLeadsTable =
    "CREATE TABLE ceems_project_leads (name text not null, cluster_id text not null,"
    " project text not null, PRIMARY KEY (name, cluster_id, project)) WITHOUT ROWID;";

/// Version 5: the names of accounts by the ids of the resource manager. Accounts of the newest
/// lists keep their names.
constexpr const char* kNamesTable =
    "CREATE TABLE ceems_names (cluster_id text not null, kind text not null, id text not null,"
    " name text not null, PRIMARY KEY (cluster_id, kind, id)) WITHOUT ROWID;"
    "CREATE UNIQUE INDEX ceems_names_name ON ceems_names (cluster_id, kind, name);"
    "INSERT OR IGNORE INTO ceems_names SELECT cluster_id, 'user', uid, name FROM users"
    " WHERE resource_manager = 'openstack' AND uid <> '' AND name <> ''"
    " ORDER BY last_updated_at DESC;"
    "INSERT OR IGNORE INTO ceems_names SELECT cluster_id, 'project', uid, name FROM projects"
    " WHERE resource_manager = 'openstack' AND uid <> '' AND name <> ''"
    " ORDER BY last_updated_at DESC;";

/// Version 6: everything that counts of units need (queries/counted_units.h).
constexpr const char* kCountsIndex =
    "CREATE INDEX ceems_units_counts ON units (cluster_id, project, username, ended_at_ts);";

/// Version 7: the units of a project by their end, as PostgreSQL has had from version 1.
constexpr const char* kProjectsIndex =
    "CREATE INDEX ceems_units_project_ended ON units (project, ended_at_ts);";

/// Returns the statements of a version of our additions, except for new columns.
std::string own_tables(int version) {
  switch (version) {
    case 1:
      return kFirstOwnStep;
    case 2:
      return sums_tables();
    case 3:
      return kGapTables;
    case 4:
      return kLeadsTable;
    case 5:
      return kNamesTable;
    case 6:
      return kCountsIndex;
    case 7:
      return kProjectsIndex;
    case 9:
      return create_facts(Dialect::kSqlite);
    case 10:
      return create_reports(Dialect::kSqlite);
    case 11:
      return create_mail_tables(Dialect::kSqlite);
    case 12:
      return create_node_tables(Dialect::kSqlite);
    case 13:
      return create_flavor_table(Dialect::kSqlite);
    case 14:
      return std::string(kArraysIndex);
    case 15:
      return create_members_table(Dialect::kSqlite);
    case 16:
      return add_not_used(Dialect::kSqlite);
    case 17:
      return add_judgement(Dialect::kSqlite);
    case 18:
      return create_token_table(Dialect::kSqlite);
    case 19:
      return create_feedback_table(Dialect::kSqlite);
    case 20:
      return create_effects_table(Dialect::kSqlite);
    case 21:
      return create_ended_tables(Dialect::kSqlite);
    default:
      return {};
  }
}

}  // namespace

std::string own_steps(int version) {
  std::string sql;
  while (++version <= kOwnVersion) {
    for (const Table* table : kTables) {
      sql += add_columns(Dialect::kSqlite, *table, version);
    }
    sql += add_sums_columns(Dialect::kSqlite, kMapColumns, version) + own_tables(version) +
           fmt::format("UPDATE ceems_schema SET version = {};", version);
  }
  return sql;
}

}  // namespace ceems::store::sqlite
