#include "store/sqlite/schema.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/log.h"
#include "store/schema/copying.h"
#include "store/schema/table_sql.h"
#include "store/schema/tables.h"
#include "store/sqlite/own_tables.h"

namespace ceems::store::sqlite {
namespace {

/// Version 8 has one row per admin; before, there was one row per source.
constexpr const char* kAdminsByName =
    "ALTER TABLE admin_users RENAME TO admin_users_by_source;"
    "CREATE TABLE admin_users (id integer not null primary key, uid text default '',"
    "cluster_id text default 'all', resource_manager text default '', name text,"
    "projects text default '[]', tags text default '[]', last_updated_at text);"
    "INSERT OR REPLACE INTO admin_users (name, tags, last_updated_at)"
    " SELECT person.value, json_array(source), last_updated_at FROM admin_users_by_source,"
    " json_each(CASE WHEN json_valid(users) THEN users ELSE '[]' END) AS person"
    " WHERE person.type = 'text' AND person.value <> '' GROUP BY person.value;"
    "DROP TABLE admin_users_by_source;"
    "CREATE UNIQUE INDEX uq_cluster_id_admin_user ON admin_users (cluster_id, name);";

/// Returns the statements that upgrade from the previous version to this one, for 1 to 7;
/// step_sql() has those for 8 to 10.
std::string first_steps(int version) {
  switch (version) {
    case 1:
      return create_table(Dialect::kSqlite, kUnits) +
             "CREATE INDEX idx_cluster_id_usr_uuid ON units (cluster_id, username, uuid);" +
             create_key(Dialect::kSqlite, kUnits);
    case 2:
      return create_table(Dialect::kSqlite, kUsage) + create_key(Dialect::kSqlite, kUsage);
    case 3:
      return "CREATE TABLE users (id integer not null primary key, uid text, cluster_id text,"
             "resource_manager text, name text, projects text default '[]', tags text default '[]',"
             "last_updated_at text);"
             "CREATE UNIQUE INDEX uq_cluster_id_user ON users (cluster_id, name);";
    case 4:
      return "CREATE TABLE projects (id integer not null primary key, uid text, cluster_id text,"
             "resource_manager text, name text, users text default '[]', tags text default '[]',"
             "last_updated_at text);"
             "CREATE UNIQUE INDEX uq_cluster_id_project ON projects (cluster_id, name);";
    case 5:
      return "CREATE TABLE admin_users (id integer not null primary key, source text,"
             "users text default '[]', last_updated_at text);"
             "CREATE UNIQUE INDEX uq_source ON admin_users (source);";
    case 6:
      return "CREATE INDEX idx_cluster_id_project_user_ended ON units"
             "(cluster_id, project, username, ended_at);";
    default:
      return create_table(Dialect::kSqlite, kDailyUsage) +
             create_key(Dialect::kSqlite, kDailyUsage);
  }
}

/// The SQL function ceems_local_ms(text) converts a local time to epoch milliseconds; 0 if the text
/// is not a local time.
void local_ms(sqlite3_context* context, int /*count*/, sqlite3_value** values) {
  const auto* zone = static_cast<const TimeZone*>(sqlite3_user_data(context));
  const auto* data = static_cast<const char*>(sqlite3_value_blob(values[0]));
  const int size = sqlite3_value_bytes(values[0]);
  const auto ms = data == nullptr
                      ? std::nullopt
                      : zone->parse_local(std::string_view(data, static_cast<std::size_t>(size)));
  sqlite3_result_int64(context, ms.value_or(0));
}

/// Runs `sql` and sets the reference's version in one transaction.
Result<> in_transaction(Connection& connection, const std::string& sql) {
  auto done = connection.execute("BEGIN IMMEDIATE");
  if (done) {
    done = connection.execute(sql);
  }
  if (done) {
    done = connection.execute("COMMIT");
  }
  if (!done && !connection.autocommit()) {
    static_cast<void>(connection.execute("ROLLBACK"));
  }
  return done;
}

Result<bool> has_column(Connection& connection, std::string_view table, std::string_view column) {
  CEEMS_TRY(count,
            connection.query_integer(fmt::format(
                "SELECT count(*) FROM pragma_table_info('{}') WHERE name = '{}'", table, column)));
  return count > 0;
}

Result<std::vector<std::string>> columns_of(Connection& connection, std::string_view table) {
  CEEMS_TRY(rows,
            connection.prepare(fmt::format("SELECT name FROM pragma_table_info('{}')", table)));
  std::vector<std::string> names;
  while (true) {
    CEEMS_TRY(more, rows.step());
    if (!more) {
      return names;
    }
    names.emplace_back(rows.text(0));
  }
}

/// The statements that add the columns of the version that tables lack, none of which rewrites a
/// table. Where an upgrade was interrupted, some of them exist.
Result<std::string> missing_columns(Connection& connection, int version) {
  std::string sql;
  for (const Table* table : kTables) {
    CEEMS_TRY(present, columns_of(connection, table->name));
    sql += add_reference_columns(*table, version, present);
  }
  return sql;
}

/// Development versions of the reference created databases that already have columns of a later
/// version. Only missing ones are added.
Result<std::string> step_sql(Connection& connection, int version) {
  if (version > kSchemaVersion) {
    return missing_columns(connection, version);
  }
  if (version < 8) {
    return first_steps(version);
  }
  if (version == 8) {
    CEEMS_TRY(by_source, has_column(connection, "admin_users", "source"));
    return std::string(by_source ? kAdminsByName : "");
  }
  std::string sql;
  for (const Table* table : kTables) {
    for (const Column& column : table->columns) {
      if (column.old_name.empty()) {
        continue;
      }
      CEEMS_TRY(old_name, has_column(connection, table->name, column.old_name));
      if (old_name) {
        sql += fmt::format("ALTER TABLE {} RENAME COLUMN {} TO {};", table->name, column.old_name,
                           column.name);
      }
    }
  }
  return sql;
}

Result<> run_step(Connection& connection, int version) {
  auto sql = step_sql(connection, version);
  CEEMS_TRY_IN(
      fmt::format("upgrading to schema version {}", version),
      sql ? in_transaction(connection,
                           *sql + fmt::format("DELETE FROM schema_migrations;"
                                              "INSERT INTO schema_migrations VALUES ({}, 0)",
                                              version))
          : Result<>(fail(std::move(sql).error())));
  return {};
}

Result<bool> has_table(Connection& connection, std::string_view name) {
  CEEMS_TRY(count,
            connection.query_integer(fmt::format(
                "SELECT count(*) FROM sqlite_master WHERE type='table' AND name='{}'", name)));
  return count > 0;
}

Result<> take_over(Connection& connection, const TimeZone& zone) {
  // The function holds a pointer to the zone, so it must not stay registered.
  TimeZone copy = zone;
  if (sqlite3_create_function_v2(connection.handle(), "ceems_local_ms", 1,
                                 SQLITE_UTF8 | SQLITE_DETERMINISTIC, &copy, local_ms, nullptr,
                                 nullptr, nullptr) != SQLITE_OK) {
    return fail(last_error(connection.handle(), "registering a function"));
  }
  auto done =
      in_transaction(connection,
                     // A cluster continues at its newest row of usage, as with the reference.
                     "INSERT INTO ceems_watermarks (cluster_id, window_end_ms)"
                     " SELECT cluster_id, max(ceems_local_ms(last_updated_at)) AS last FROM usage"
                     " WHERE last_updated_at_ts IS NULL AND cluster_id IS NOT NULL"
                     " GROUP BY cluster_id HAVING last > 0"
                     " ON CONFLICT (cluster_id) DO UPDATE"
                     " SET window_end_ms = max(window_end_ms, excluded.window_end_ms);"
                     // The reference may have purged units, so no sums are valid any more.
                     "DELETE FROM ceems_unit_spans WHERE EXISTS"
                     " (SELECT 1 FROM usage WHERE last_updated_at_ts IS NULL);"
                     // Nor are facts of units that it has purged. Facts of units that it has
                     // written are written again.
                     "DELETE FROM ceems_unit_facts WHERE EXISTS"
                     " (SELECT 1 FROM usage WHERE last_updated_at_ts IS NULL) AND NOT EXISTS"
                     " (SELECT 1 FROM units AS u WHERE u.cluster_id = ceems_unit_facts.cluster_id"
                     " AND u.uuid = ceems_unit_facts.uuid"
                     " AND u.started_at_ts = ceems_unit_facts.started_at_ts);"
                     "INSERT INTO ceems_facts_todo SELECT * FROM"
                     " (SELECT min(id) AS least, max(id) AS most FROM units"
                     " WHERE last_updated_at_ts IS NULL) WHERE least IS NOT NULL"
                     " ON CONFLICT (first_id) DO UPDATE"
                     " SET last_id = max(last_id, excluded.last_id);"
                     "UPDATE usage SET last_updated_at_ts = ceems_local_ms(last_updated_at)"
                     " WHERE last_updated_at_ts IS NULL;"
                     "UPDATE units SET last_updated_at_ts = ceems_local_ms(last_updated_at)"
                     " WHERE last_updated_at_ts IS NULL;"
                     "UPDATE daily_usage SET last_updated_at_ts = ceems_local_ms(last_updated_at)"
                     " WHERE last_updated_at_ts IS NULL;"
                     "INSERT OR IGNORE INTO ceems_admin_sources (source, name)"
                     " SELECT tag.value, name FROM admin_users,"
                     " json_each(CASE WHEN json_valid(tags) THEN tags ELSE '[]' END) AS tag"
                     " WHERE tag.type = 'text' AND name <> '';");
  sqlite3_create_function_v2(connection.handle(), "ceems_local_ms", 1, SQLITE_UTF8, nullptr,
                             nullptr, nullptr, nullptr, nullptr);
  if (!done) {
    return fail(std::move(done).error().with_context("taking over rows of another program"));
  }
  return {};
}

/// The size of the database in bytes.
Result<std::int64_t> size_of(Connection& connection) {
  return connection.query_integer(
      "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()");
}

/// The writer's cache, in KiB: index pages that a window touches are read and written once. In a
/// small database these are few, but a copy or an index would fill the cache (sorting takes as much
/// again), which would be most of the program's memory.
std::int64_t cache_kib(std::int64_t bytes) {
  constexpr std::int64_t kMin = std::int64_t{12} << 10U;
  constexpr std::int64_t kMax = std::int64_t{64} << 10U;
  constexpr std::int64_t kShare = std::int64_t{16} << 10U;  // of the file
  return std::clamp(bytes / kShare, kMin, kMax);
}

Result<> set_modes(Connection& connection, bool empty) {
  if (empty) {
    // Only possible before the first table. A purge can return space to the file system then.
    CEEMS_TRY(connection.execute("PRAGMA auto_vacuum = INCREMENTAL"));
  }
  // WAL: reading continues while a window is written, and replication programs (litestream) work.
  // NORMAL: a power failure may lose the newest windows, which are then fetched again, but never
  // damages the file.
  CEEMS_TRY(bytes, size_of(connection));
  return connection.execute(
      fmt::format("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;"
                  "PRAGMA wal_autocheckpoint = 16000; PRAGMA cache_size = -{}",
                  cache_kib(bytes)));
}

bool needs_steps(const SchemaState& state, const SchemaTarget& target) {
  return state.version < target.version || state.own < kOwnVersion || !state.complete;
}

/// Checks the room for a copy, and for the log and the indexes of an upgrade. The first one writes
/// a column of every row, so the log becomes as large as the file.
Result<> check_space(const std::string& path,
                     const SchemaState& state,
                     std::int64_t bytes,
                     const SchemaTarget& target,
                     bool copied) {
  std::error_code error;
  const auto space = std::filesystem::space(std::filesystem::path(path).parent_path(), error);
  if (error) {
    return {};  // the copy will tell
  }
  const std::uint64_t needed = space_to_upgrade(state, bytes, target);
  const std::uint64_t had = copied ? std::min(needed, static_cast<std::uint64_t>(bytes)) : 0;
  return sqlite::check_space(path, needed - had, space.available);
}

/// The end of the name of a copy that is not whole yet.
constexpr std::string_view kPartial = ".part";

/// The files beside the database whose names begin and end so.
std::vector<std::filesystem::path> files_beside(const std::string& path,
                                                std::string_view begin,
                                                std::string_view end) {
  const std::filesystem::path file(path);
  const std::string start = file.filename().string() + std::string(begin);
  std::error_code error;
  std::vector<std::filesystem::path> found;
  std::filesystem::directory_iterator entry(file.has_parent_path() ? file.parent_path() : ".",
                                            error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with(start) && name.ends_with(end)) {
      found.push_back(entry->path());
    }
  }
  return found;
}

/// Removes what programs that were killed left of their copies.
void remove_unfinished_copies(const std::string& path) {
  std::error_code error;
  for (const std::string_view open : {"", "-journal", "-wal", "-shm"}) {
    const std::string end = ".bak" + std::string(kPartial) + std::string(open);
    for (const auto& file : files_beside(path, ".v", end)) {
      std::filesystem::remove(file, error);
    }
  }
}

/// Whether there seems to be a copy of the database as it is now: one of its size that is newer. It
/// is read before it is relied on.
bool seems_copied(const std::string& path, int version, std::int64_t bytes) {
  std::error_code error;
  const auto changed = std::filesystem::last_write_time(path, error);
  if (error) {
    return false;
  }
  return std::ranges::any_of(
      files_beside(path, fmt::format(".v{}-", version), ".bak"), [&](const auto& file) {
        std::error_code failure;
        const auto copied = std::filesystem::last_write_time(file, failure);
        return !failure && copied >= changed &&
               std::cmp_equal(std::filesystem::file_size(file, failure), bytes) && !failure;
      });
}

/// Whether the copy can be read and is as large as the original, which no other program changes.
/// Reads all of it; kTimeout if it is stopped meanwhile.
Result<> check_copy(Connection& original, const std::string& copy, const std::stop_token& stop) {
  // For writing, so that SQLite removes its files beside it afterwards.
  CEEMS_TRY(connection, Connection::open(copy, OpenMode::kReadWrite));
  connection.stop_with(stop);
  CEEMS_TRY(statement, connection.prepare("PRAGMA quick_check(1)"));
  CEEMS_TRY(row, statement.step());
  if (!row || statement.text(0) != "ok") {
    return fail(ErrorCode::kInternal, "{} is damaged: {}", copy, row ? statement.text(0) : "");
  }
  CEEMS_TRY(bytes, size_of(original));
  CEEMS_TRY(copied, size_of(connection));
  if (bytes != copied) {
    return fail(ErrorCode::kInternal, "{} has {} of {} bytes", copy, copied, bytes);
  }
  return {};
}

/// A whole copy of the database as it is now, from an upgrade that was interrupted; empty if there
/// is none.
Result<std::string> copy_of_before(Connection& connection,
                                   const std::string& path,
                                   int version,
                                   const std::stop_token& stop) {
  // Afterwards the file is no newer than its last commit.
  CEEMS_TRY(connection.execute("PRAGMA wal_checkpoint(TRUNCATE)"));
  std::error_code error;
  const auto log = std::filesystem::file_size(path + "-wal", error);
  const bool logged = !error && log > 0;  // somebody reads it
  const auto changed = std::filesystem::last_write_time(path, error);
  if (error || logged) {
    return "";
  }
  for (const auto& file : files_beside(path, fmt::format(".v{}-", version), ".bak")) {
    const auto copied = std::filesystem::last_write_time(file, error);
    if (error || copied < changed) {
      continue;
    }
    const auto whole = check_copy(connection, file.string(), stop);
    if (whole) {
      return file.string();
    }
    if (stop.stop_requested()) {
      return fail(whole.error());
    }
  }
  return "";
}

/// Gives a file that is on the disk its name, and waits until that is there, too.
Result<> put_in_place(const std::string& from, const std::string& to) {
  if (std::rename(from.c_str(), to.c_str()) != 0) {
    return fail(errno_error(errno, fmt::format("renaming {} to {}", from, to)));
  }
  const std::filesystem::path directory = std::filesystem::path(to).parent_path();
  const UniqueFd folder(
      ::open(directory.empty() ? "." : directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid() || ::fsync(folder.get()) != 0) {
    return fail(errno_error(errno, fmt::format("writing {}", directory.string())));
  }
  return {};
}

Result<> make_copy(Connection& connection,
                   const std::string& path,
                   int version,
                   int to,
                   std::int64_t now_ms,
                   const std::stop_token& stop) {
  std::string stamp = TimeZone().local(now_ms);
  std::erase_if(stamp, [](char c) { return c == '-' || c == ':'; });
  std::string backup = fmt::format("{}.v{}-{}.bak", path, version, stamp);
  std::error_code error;
  for (int i = 2; std::filesystem::exists(backup, error); ++i) {  // a start within the same second
    backup = fmt::format("{}.v{}-{}-{}.bak", path, version, stamp, i);
  }
  CEEMS_TRY(bytes, size_of(connection));
  log::info("database will be upgraded: copying it first",
            {{"file", path}, {"from", version}, {"to", to}, {"bytes", bytes}});
  constexpr std::int64_t kLarge = std::int64_t{32} << 20;
  std::function<void(int)> progress;
  if (bytes > kLarge) {
    progress = [](int percent) {
      log::info("copying the database before its upgrade", {{"percent", percent}});
    };
  }
  const auto keep_going = [](void* token) {
    return !static_cast<const std::stop_token*>(token)->stop_requested();
  };
  std::stop_token token = stop;
  const std::string partial = backup + std::string(kPartial);
  auto done = connection.copy_to(partial, keep_going, &token, progress);
  if (done) {
    done = check_copy(connection, partial, stop);
  }
  if (done) {
    done = put_in_place(partial, backup);
  }
  if (!done) {
    std::filesystem::remove(partial, error);
    return fail(std::move(done).error().with_context("backup before the upgrade"));
  }
  log::info("copied the database before its upgrade", {{"backup", backup}});
  return {};
}

}  // namespace

Result<SchemaState> schema_state(Connection& connection,
                                 const std::string& path,
                                 const SchemaTarget& target) {
  SchemaState state;
  CEEMS_TRY(tables, connection.query_integer("SELECT count(*) FROM sqlite_master"));
  state.empty = tables == 0;
  if (state.empty) {
    return state;
  }
  CEEMS_TRY(copying, has_table(connection, kCopyTable));
  if (copying) {
    return fail(ErrorCode::kInvalidArgument, kUnfinishedCopy, path);
  }
  CEEMS_TRY(migrations, has_table(connection, "schema_migrations"));
  if (!migrations) {
    return fail(ErrorCode::kInvalidArgument,
                "database {}: holds tables but no schema_migrations: not a database of CEEMS",
                path);
  }
  CEEMS_TRY(row, connection.prepare("SELECT version, dirty FROM schema_migrations"));
  CEEMS_TRY(found, row.step());
  if (!found) {
    return state;  // migrations never ran
  }
  const std::int64_t version = row.integer(0);
  // The reference binds a Go bool, which its driver stores as 0 or 1; words are accepted as well.
  const bool dirty = row.integer(1) != 0 || row.text(1) == "true";
  const bool can_finish = version == kCustomStatsVersion;
  if (dirty && !(can_finish && target.finish)) {
    return fail(ErrorCode::kInvalidArgument,
                "database {}: schema version {} is marked dirty: an upgrade was interrupted; {}",
                path, version,
                can_finish ? "restore a backup, or complete the upgrade with --db.migrate"
                           : "restore a backup or repair it by hand");
  }
  if (version < 0 || version > kCustomStatsVersion) {
    return fail(ErrorCode::kInvalidArgument,
                "database {}: schema version {} is newer than {}, the newest this program knows",
                path, version, kCustomStatsVersion);
  }
  state.version = static_cast<int>(version);
  if (state.version == kCustomStatsVersion) {
    CEEMS_TRY(missing, missing_columns(connection, state.version));
    state.complete = !dirty && missing.empty();
  }
  CEEMS_TRY(own, has_table(connection, "ceems_schema"));
  if (own) {
    CEEMS_TRY(own_version, connection.query_integer("SELECT max(version) FROM ceems_schema"));
    if (own_version > kOwnVersion) {
      return fail(ErrorCode::kInvalidArgument,
                  "database {}: was written by a newer version of this program (ceems_schema {})",
                  path, own_version);
    }
    state.own = static_cast<int>(own_version);
  }
  return state;
}

std::uint64_t space_to_upgrade(const SchemaState& state,
                               std::int64_t bytes,
                               const SchemaTarget& target) {
  if (state.empty || !needs_steps(state, target)) {
    return 0;
  }
  const auto size = static_cast<std::uint64_t>(bytes);
  if (state.version >= kSchemaVersion && state.own == kOwnVersion) {
    return size;  // new columns only, which rewrite no rows
  }
  return size + (state.own == 0 ? size + size / 2 : size / 2);
}

Result<> check_space(const std::string& path, std::uint64_t needed, std::uint64_t available) {
  if (needed <= available) {
    return {};
  }
  return fail(
      ErrorCode::kUnavailable,
      "database {}: an upgrade needs {} MB of free space in this directory, for a copy, the "
      "log and indexes; {} MB are free",
      path, needed / 1'000'000, available / 1'000'000);
}

Result<std::int64_t> bytes_to_upgrade(Connection& connection,
                                      const std::string& path,
                                      const SchemaTarget& target) {
  CEEMS_TRY(state, schema_state(connection, path, target));
  if (state.empty || !needs_steps(state, target)) {
    return 0;
  }
  const auto bytes = size_of(connection);
  if (!bytes) {
    return bytes;
  }
  auto done = check_space(path, state, *bytes, target, seems_copied(path, state.version, *bytes));
  if (done) {
    done = set_modes(connection, false);
  }
  return done ? bytes : fail(std::move(done).error());
}

Result<> create_reference_schema(Connection& connection, int version) {
  CEEMS_TRY(
      connection.execute("CREATE TABLE IF NOT EXISTS schema_migrations"
                         " (version uint64, dirty bool);"
                         "CREATE UNIQUE INDEX IF NOT EXISTS version_unique"
                         " ON schema_migrations (version);"));
  for (int step = 1; step <= version; ++step) {
    CEEMS_TRY(run_step(connection, step));
  }
  return {};
}

Result<int> upgrade(Connection& connection,
                    const std::string& path,
                    const TimeZone& zone,
                    std::int64_t now_ms,
                    const SchemaTarget& target,
                    const std::stop_token& stop) {
  CEEMS_TRY(state, schema_state(connection, path, target));
  CEEMS_TRY(set_modes(connection, state.empty));
  const bool change = needs_steps(state, target);
  const int version = std::max(state.version, target.version);
  if (change && !state.empty) {
    remove_unfinished_copies(path);
    CEEMS_TRY(bytes, size_of(connection));
    CEEMS_TRY(before, copy_of_before(connection, path, state.version, stop));
    CEEMS_TRY(check_space(path, state, bytes, target, !before.empty()));
    if (before.empty()) {
      CEEMS_TRY(make_copy(connection, path, state.version, version, now_ms, stop));
    } else {
      log::info("database will be upgraded; it was copied before",
                {{"file", path}, {"from", state.version}, {"to", version}, {"backup", before}});
    }
  }
  if (change) {
    if (state.empty || state.version == 0) {
      CEEMS_TRY(create_reference_schema(connection, 0));
    }
    if (!state.empty) {
      log::info("adding tables, columns and indexes to the database", {{"file", path}});
    }
    for (int step = state.version + (state.complete ? 1 : 0); step <= version; ++step) {
      CEEMS_TRY(run_step(connection, step));
    }
    if (state.own < kOwnVersion) {
      CEEMS_TRY_IN("adding tables", in_transaction(connection, own_steps(state.own)));
    }
  }
  if (state.own == 0 && !state.empty) {
    log::info("reading the times of all units", {{"file", path}});
  }
  CEEMS_TRY(take_over(connection, zone));
  return version;
}

}  // namespace ceems::store::sqlite
