// The writer's work beside units: admins, purge, checkpoint.
#include "base/clock.h"
#include "store/json.h"
#include "store/sqlite/sql.h"
#include "store/sqlite/writer.h"

namespace ceems::store::sqlite {
namespace {

constexpr std::int64_t kDayMs = 24LL * 60 * 60 * 1000;

Result<> run(Connection& connection, const Sql& sql) {
  auto statement = sql.prepare(connection);
  if (!statement) {
    return fail(std::move(statement).error());
  }
  return statement->run();
}

/// Writes the admins of one source into our own table, then brings the table of the reference in
/// line: a name that no source has any more goes, the others carry the last source that named them.
Result<> replace_admins(Connection& connection,
                        std::string_view source,
                        const std::vector<std::string>& names,
                        const std::string& now) {
  Sql remove("DELETE FROM ceems_admin_sources WHERE source = ");
  remove.value(source);
  if (auto done = run(connection, remove); !done) {
    return done;
  }
  for (const std::string& name : names) {
    if (name.empty()) {
      continue;
    }
    Sql note("INSERT OR IGNORE INTO ceems_admin_sources VALUES (");
    note.value(source).add(",").value(name).add(")");
    if (auto done = run(connection, note); !done) {
      return done;
    }
    Sql add("INSERT INTO admin_users (name, projects, tags, last_updated_at) VALUES (");
    add.value(name)
        .add(",'[]',json_array(")
        .value(source)
        .add("),")
        .value(now)
        .add(
            ") ON CONFLICT (cluster_id, name) DO UPDATE SET tags = excluded.tags,"
            " last_updated_at = excluded.last_updated_at");
    if (auto done = run(connection, add); !done) {
      return done;
    }
  }
  return connection.execute(
      "DELETE FROM admin_users WHERE name NOT IN (SELECT name FROM ceems_admin_sources);"
      "UPDATE admin_users SET tags = (SELECT json_array(max(source)) FROM ceems_admin_sources s"
      " WHERE s.name = admin_users.name) WHERE NOT EXISTS (SELECT 1 FROM ceems_admin_sources s"
      " WHERE s.name = admin_users.name AND json_array(s.source) = admin_users.tags)");
}

Result<> remove_old(Connection& connection, std::int64_t cutoff_ms) {
  Sql ended("DELETE FROM units WHERE ended_at_ts > 0 AND ended_at_ts < ");
  ended.value(cutoff_ms);
  // Gone without an end: not updated for the retention period although its cluster was fetched
  // since. Without the second condition a long stop of this program would purge running units.
  Sql lost("DELETE FROM units WHERE ended_at_ts <= 0 AND last_updated_at_ts < ");
  lost.value(cutoff_ms)
      .add(
          " AND last_updated_at_ts < (SELECT window_end_ms FROM ceems_watermarks w"
          " WHERE w.cluster_id = units.cluster_id) - ")
      .value(kDayMs);
  Sql usage("DELETE FROM usage WHERE last_updated_at_ts < ");
  usage.value(cutoff_ms);
  Sql days("DELETE FROM daily_usage WHERE last_updated_at_ts < ");
  days.value(cutoff_ms - kDayMs);  // the row of a day holds what ended up to 24 h later
  for (const Sql* sql : {&ended, &lost, &usage, &days}) {
    if (auto done = run(connection, *sql); !done) {
      return done;
    }
  }
  return {};
}

}  // namespace

Result<> SqliteWriter::write_admins(std::string_view source,
                                    const std::vector<std::string>& names) {
  const auto now =
      std::chrono::duration_cast<std::chrono::milliseconds>(clock_->now().time_since_epoch());
  auto done = begin();
  if (done) {
    done = replace_admins(connection_, source, names, zone_.local(now.count()));
  }
  if (done) {
    done = commit();
  }
  if (!done) {
    roll_back();
    return fail(std::move(done).error().with_context("writing admins"));
  }
  return {};
}

Result<> SqliteWriter::purge(std::int64_t cutoff_ms) {
  auto done = begin();
  if (done) {
    done = remove_old(connection_, cutoff_ms);
  }
  if (done) {
    done = commit();
  }
  if (!done) {
    roll_back();
    return fail(std::move(done).error().with_context("purging"));
  }
  purged_before_ms_ = cutoff_ms;
  // Gives a bounded number of freed pages back to the file system; nothing to do in data bases that
  // were not created by us.
  return connection_.execute("PRAGMA incremental_vacuum(2000)");
}

Result<> SqliteWriter::checkpoint() {
  return connection_.execute("PRAGMA wal_checkpoint(TRUNCATE)");
}

}  // namespace ceems::store::sqlite
