#include "store/sqlite/writer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "base/log.h"
#include "base/strings.h"
#include "store/json.h"
#include "store/merge.h"

namespace ceems::store::sqlite {
namespace {

using Maps = std::array<model::MetricMap, model::kMetricCount>;

constexpr std::string_view kMapColumns =
    "total_time_seconds,avg_cpu_usage,avg_cpu_mem_usage,total_cpu_energy_usage_kwh,"
    "total_cpu_emissions_gms,avg_gpu_usage,avg_gpu_mem_usage,total_gpu_energy_usage_kwh,"
    "total_gpu_emissions_gms,total_io_write_stats,total_io_read_stats,total_ingress_stats,"
    "total_egress_stats";

/// "total_time_seconds=?,avg_cpu_usage=?,..."
std::string map_assignments() {
  std::string text;
  for (const std::string_view column : split(kMapColumns, ',')) {
    text += fmt::format("{}{}=?", text.empty() ? "" : ",", column);
  }
  return text;
}

std::string parameters(int count) {
  std::string text = "?";
  for (int i = 1; i < count; ++i) {
    text += ",?";
  }
  return text;
}

/// A stored map. One that something else damaged counts as empty and is replaced.
model::MetricMap stored_map(std::string_view text, std::string_view what) {
  auto map = parse_metric_map(text);
  if (map) {
    return std::move(*map);
  }
  log::warn("malformed map in the data base counts as empty",
            {{"row", printable(what)}, {"err", map.error().message}});
  return {};
}

/// JSON object text of a manager, or "{}" for anything else.
std::string object_text(std::string_view text, std::string_view what) {
  std::string out;
  if (!append_json_object(out, text)) {
    if (!text.empty() && text != "null") {
      log::warn("malformed object of a unit is left out", {{"unit", printable(what)}});
    }
    return "{}";
  }
  return out;
}

model::MetricMap finite_map(const model::MetricMap& map) {
  return add_maps({}, map);
}

}  // namespace

struct SqliteWriter::Statements {
  Statement watermark, set_watermark;
  Statement find_unit, insert_unit, update_unit, delete_unit;
  Statement find_usage, insert_usage, update_usage;
  Statement find_day, insert_day, update_day;
  Statement upsert_user, user_names, delete_user;
  Statement upsert_project, project_names, delete_project;
};

/// One row of usage or daily_usage while a window is added to it.
struct SqliteWriter::UsageRow {
  std::int64_t id = 0;  ///< 0: not stored yet
  std::string resource_manager, groupname;
  std::int64_t num_units = 0;
  std::int64_t num_updates = 0;
  model::MetricMap times;
  Maps maps;
  std::array<bool, model::kMetricCount> has_map{};
  bool fresh = true;  ///< nothing was added to it ever: the first maps are taken as they are
};

struct SqliteWriter::StoredUnit {
  std::int64_t id = 0;  ///< 0: there is none
  bool pending = false;
  std::int64_t ended_at_ts = 0;
  std::int64_t num_updates = 0;
  std::string name, project, groupname, username, created_at, allocation;
  std::int64_t created_at_ts = 0;
  model::MetricMap times;
  Maps maps;
  std::array<bool, model::kMetricCount> has_map{};
  std::int64_t stale_pending_id = 0;  ///< of a pending row beside the started one
};

/// What a unit adds to the usage of its user and project.
struct SqliteWriter::UnitEffect {
  bool counts = false;  ///< false: nothing new about the unit
  bool is_new = false;
  std::string username, project;  ///< as stored
  model::MetricMap times;
};

struct SqliteWriter::Batch {
  const model::Cluster* cluster = nullptr;
  model::Window window;
  std::string updated;  ///< LOCAL end of the window
  std::string day;      ///< marker of the window's day
  std::int64_t day_ms = 0;
};

SqliteWriter::SqliteWriter(Connection connection,
                           const TimeZone& zone,
                           const Clock& clock,
                           std::atomic<std::uint64_t>& generation)
    : connection_(std::move(connection)),
      zone_(zone),
      clock_(&clock),
      generation_(&generation),
      statements_(std::make_unique<Statements>()) {}

SqliteWriter::~SqliteWriter() = default;

Result<std::unique_ptr<SqliteWriter>> SqliteWriter::create(Connection connection,
                                                           const TimeZone& zone,
                                                           const Clock& clock,
                                                           std::atomic<std::uint64_t>& generation) {
  std::unique_ptr<SqliteWriter> writer(
      new SqliteWriter(std::move(connection), zone, clock, generation));
  Statements& s = *writer->statements_;
  const auto usage = [](std::string_view table, std::string_view day) {
    constexpr std::string_view kKey = "cluster_id=? AND username=? AND project=?";
    struct Sql {
      std::string find, insert, update;
    };
    return Sql{
        fmt::format("SELECT id,num_units,num_updates,{} FROM {} WHERE {}{}", kMapColumns, table,
                    kKey, day),
        fmt::format("INSERT INTO {} (cluster_id,username,project,resource_manager,groupname,"
                    "num_units,num_updates,last_updated_at,last_updated_at_ts,{}) VALUES ({})",
                    table, kMapColumns, parameters(22)),
        fmt::format("UPDATE {} SET num_units=?,num_updates=?,last_updated_at=?,"
                    "last_updated_at_ts=?,{} WHERE id=?",
                    table, map_assignments())};
  };
  const auto total = usage("usage", "");
  const auto daily = usage("daily_usage", " AND last_updated_at=?");
  const auto people = [](std::string_view table, std::string_view list) {
    return fmt::format(
        "INSERT INTO {0} (cluster_id,name,uid,resource_manager,{1},tags,last_updated_at)"
        " VALUES (?,?,?,?,?,?,?) ON CONFLICT (cluster_id,name) DO UPDATE SET uid=excluded.uid,"
        "resource_manager=excluded.resource_manager,{1}=excluded.{1},tags=excluded.tags,"
        "last_updated_at=excluded.last_updated_at",
        table, list);
  };
  const std::array<std::pair<Statement*, std::string>, 18> all{{
      {&s.watermark, "SELECT window_end_ms FROM ceems_watermarks WHERE cluster_id=?"},
      {&s.set_watermark,
       "INSERT INTO ceems_watermarks VALUES (?,?)"
       " ON CONFLICT (cluster_id) DO UPDATE SET window_end_ms=excluded.window_end_ms"},
      {&s.find_unit,
       fmt::format("SELECT id,started_at,started_at_ts,ended_at_ts,num_updates,name,project,"
                   "groupname,username,created_at,created_at_ts,allocation,{} FROM units"
                   " WHERE cluster_id=? AND uuid=?",
                   kMapColumns)},
      {&s.insert_unit,
       fmt::format("INSERT INTO units (cluster_id,uuid,resource_manager,name,project,groupname,"
                   "username,created_at,created_at_ts,started_at,started_at_ts,ended_at,"
                   "ended_at_ts,elapsed,state,allocation,tags,ignore,num_updates,last_updated_at,"
                   "last_updated_at_ts,{}) VALUES ({})",
                   kMapColumns, parameters(34))},
      {&s.update_unit,
       fmt::format("UPDATE units SET name=?,project=?,groupname=?,username=?,created_at=?,"
                   "created_at_ts=?,started_at=?,started_at_ts=?,ended_at=?,ended_at_ts=?,"
                   "elapsed=?,state=?,allocation=?,tags=?,ignore=?,num_updates=?,"
                   "last_updated_at=?,last_updated_at_ts=?,{} WHERE id=?",
                   map_assignments())},
      {&s.delete_unit, "DELETE FROM units WHERE id=?"},
      {&s.find_usage, total.find},
      {&s.insert_usage, total.insert},
      {&s.update_usage, total.update},
      {&s.find_day, daily.find},
      {&s.insert_day, daily.insert},
      {&s.update_day, daily.update},
      {&s.upsert_user, people("users", "projects")},
      {&s.user_names, "SELECT name FROM users WHERE cluster_id=?"},
      {&s.delete_user, "DELETE FROM users WHERE cluster_id=? AND name=?"},
      {&s.upsert_project, people("projects", "users")},
      {&s.project_names, "SELECT name FROM projects WHERE cluster_id=?"},
      {&s.delete_project, "DELETE FROM projects WHERE cluster_id=? AND name=?"},
  }};
  for (const auto& [statement, sql] : all) {
    auto prepared = writer->connection_.prepare(sql);
    if (!prepared) {
      return fail(std::move(prepared).error());
    }
    *statement = std::move(*prepared);
  }
  return writer;
}

Result<> SqliteWriter::begin() {
  roll_back();  // whatever an earlier failure left open
  return connection_.execute("BEGIN IMMEDIATE");
}

Result<> SqliteWriter::commit() {
  auto done = connection_.execute("COMMIT");
  if (done) {
    generation_->fetch_add(1);
  }
  return done;
}

void SqliteWriter::roll_back() {
  if (!connection_.autocommit()) {
    if (auto done = connection_.execute("ROLLBACK"); !done) {
      log::error("rolling back", {{"err", done.error().message}});
    }
  }
}

Result<std::optional<std::int64_t>> SqliteWriter::watermark(std::string_view cluster_id) {
  Statement& statement = statements_->watermark;
  statement.reset();
  statement.bind(1, cluster_id);
  const auto row = statement.step();
  if (!row) {
    statement.reset();
    return fail(row.error());
  }
  std::optional<std::int64_t> result;
  if (*row) {
    result = statement.integer(0);
  }
  statement.reset();
  return result;
}

Result<WriteReport> SqliteWriter::write(const ClusterUpdate& update) {
  WriteReport report;
  auto done = begin();
  if (done) {
    done = write_in_transaction(update, report);
  }
  if (done) {
    done = commit();
  }
  if (!done) {
    roll_back();
    return fail(std::move(done).error().with_context(
        fmt::format("writing the update of cluster {}", update.cluster.id)));
  }
  return report;
}

Result<> SqliteWriter::write_in_transaction(const ClusterUpdate& update, WriteReport& report) {
  const auto [start_ms, end_ms] = update.window;
  if (end_ms <= start_ms) {
    return fail(ErrorCode::kInvalidArgument, "window ends at {} before its start {}", end_ms,
                start_ms);
  }
  const auto last = watermark(update.cluster.id);
  if (!last) {
    return fail(last.error());
  }
  if (*last && **last != start_ms) {
    return fail(ErrorCode::kInvalidArgument, "window starts at {} but the last one ended at {}",
                start_ms, **last);
  }
  // The window's last moment belongs to it, so one that ends at midnight belongs to the day before.
  const Batch batch{.cluster = &update.cluster,
                    .window = update.window,
                    .updated = zone_.local(end_ms),
                    .day = zone_.day(end_ms - 1),
                    .day_ms = zone_.day_start(end_ms - 1)};
  UsageRows usage;
  UsageRows days;
  for (const model::Unit& unit : update.units) {
    if (unit.uuid.empty() ||
        (purged_before_ms_ && unit.ended_at_ts > 0 && unit.ended_at_ts < *purged_before_ms_)) {
      continue;
    }
    if (auto done = connection_.execute("SAVEPOINT unit"); !done) {
      return done;
    }
    auto effect = write_unit(batch, unit);
    if (!effect) {
      const bool skip = row_error(connection_.handle());
      if (auto done = connection_.execute("ROLLBACK TO unit; RELEASE unit"); !done) {
        return done;
      }
      if (!skip) {
        return fail(std::move(effect).error());
      }
      ++report.skipped;
      log::error("unit skipped", {{"cluster_id", update.cluster.id},
                                  {"uuid", printable(unit.uuid)},
                                  {"err", effect.error().message}});
      continue;
    }
    if (auto done = connection_.execute("RELEASE unit"); !done) {
      return done;
    }
    ++report.written;
    if (!effect->counts) {
      continue;
    }
    for (const bool daily : {false, true}) {
      if (auto done = add_usage(batch, unit, *effect, daily, daily ? days : usage); !done) {
        return done;
      }
    }
  }
  if (auto done = flush_usage(batch, false, usage); !done) {
    return done;
  }
  if (auto done = flush_usage(batch, true, days); !done) {
    return done;
  }
  if (update.users && !update.users->empty()) {
    if (auto done = write_users(batch, *update.users); !done) {
      return done;
    }
  }
  if (update.projects && !update.projects->empty()) {
    if (auto done = write_projects(batch, *update.projects); !done) {
      return done;
    }
  }
  Statement& statement = statements_->set_watermark;
  statement.bind(1, update.cluster.id);
  statement.bind(2, end_ms);
  return statement.run();
}

Result<SqliteWriter::StoredUnit> SqliteWriter::find_unit(const Batch& batch,
                                                         const model::Unit& unit) {
  constexpr int kFirstMap = 12;
  StoredUnit found;
  Statement& row = statements_->find_unit;
  row.reset();
  row.bind(1, batch.cluster->id);
  row.bind(2, unit.uuid);
  while (true) {
    const auto more = row.step();
    if (!more) {
      row.reset();
      return fail(more.error());
    }
    if (!*more) {
      break;
    }
    const std::int64_t started_at_ts = row.integer(2);
    const bool pending = started_at_ts <= 0;
    const bool same = pending ? unit.started_at_ts <= 0 && row.text(1) == unit.started_at
                              : started_at_ts == unit.started_at_ts;
    if (pending && !same && unit.started_at_ts > 0 && found.id != 0 && !found.pending) {
      found.stale_pending_id = row.integer(0);
      continue;
    }
    if (!same && (!pending || unit.started_at_ts <= 0 || found.id != 0)) {
      continue;
    }
    const std::int64_t stale = found.id != 0 && found.pending ? found.id : found.stale_pending_id;
    found = StoredUnit();
    found.stale_pending_id = stale;
    found.id = row.integer(0);
    found.pending = pending;
    found.ended_at_ts = row.integer(3);
    found.num_updates = row.integer(4);
    found.name = row.text(5);
    found.project = row.text(6);
    found.groupname = row.text(7);
    found.username = row.text(8);
    found.created_at = row.text(9);
    found.created_at_ts = row.integer(10);
    found.allocation = row.text(11);
    found.times = stored_map(row.text(kFirstMap), unit.uuid);
    for (std::size_t m = 0; m < model::kMetricCount; ++m) {
      const std::string_view text = row.text(kFirstMap + 1 + static_cast<int>(m));
      found.has_map[m] = text != "null";
      found.maps[m] = stored_map(text, unit.uuid);
    }
  }
  row.reset();
  return found;
}

Result<SqliteWriter::UnitEffect> SqliteWriter::write_unit(const Batch& batch,
                                                          const model::Unit& unit) {
  const auto found = find_unit(batch, unit);
  if (!found) {
    return fail(found.error());
  }
  const StoredUnit& old = *found;
  const bool known = old.id != 0;
  UnitEffect effect;
  effect.is_new = !known;
  effect.username = known && !old.username.empty() ? old.username : unit.username;
  effect.project = known && !old.project.empty() ? old.project : unit.project;
  if (old.stale_pending_id != 0) {
    statements_->delete_unit.bind(1, old.stale_pending_id);
    if (auto done = statements_->delete_unit.run(); !done) {
      return fail(std::move(done).error());
    }
  }
  if (known && old.ended_at_ts > 0 && old.ended_at_ts == unit.ended_at_ts) {
    return effect;  // reported again: all of it is counted already
  }
  effect.counts = true;
  effect.times = finite_map(unit.total_time_seconds);
  if (known && unit.ended_at_ts > 0 && unit.ended_at_ts <= batch.window.start_ms) {
    // Managers deliver the whole time of a unit that ended before the window, for its first
    // sighting. Of a known unit a part is counted already.
    for (auto& [name, value] : effect.times) {
      value = std::max(0.0, value - value_or_zero(old.times, name));
    }
  }

  std::string allocation = object_text(unit.allocation, unit.uuid);
  if (allocation == "{}" && known && !old.allocation.empty()) {
    allocation = object_text(old.allocation, unit.uuid);
  }
  const std::string tags = object_text(unit.tags, unit.uuid);
  std::array<std::string, model::kMetricCount + 1> maps;
  maps[0] = metric_map_text(known ? add_maps(old.times, effect.times) : effect.times);
  for (std::size_t m = 0; m < model::kMetricCount; ++m) {
    const auto metric = static_cast<model::Metric>(m);
    const model::MetricMap window = finite_map(unit.metrics[m]);
    if (known) {
      maps[m + 1] = metric_map_text(merge_metric(metric, old.maps[m],
                                                 unit.has_metric[m] ? window : model::MetricMap(),
                                                 old.times, effect.times));
    } else {
      maps[m + 1] = unit.has_metric[m] ? metric_map_text(window) : "null";
    }
  }

  Statement& s = known ? statements_->update_unit : statements_->insert_unit;
  int i = 0;
  const auto text = [&s, &i](std::string_view value) { s.bind(++i, value); };
  const auto number = [&s, &i](std::int64_t value) { s.bind(++i, value); };
  const auto kept = [known](const std::string& before, const std::string& now) -> std::string_view {
    return known && !before.empty() ? before : now;
  };
  if (!known) {
    text(batch.cluster->id);
    text(unit.uuid);
    text(unit.resource_manager);
  }
  text(kept(old.name, unit.name));
  text(effect.project);
  text(kept(old.groupname, unit.groupname));
  text(effect.username);
  const bool created = known && old.created_at_ts > 0;
  text(created ? old.created_at : unit.created_at);
  number(created ? old.created_at_ts : unit.created_at_ts);
  text(unit.started_at);
  number(unit.started_at_ts);
  text(unit.ended_at);
  number(unit.ended_at_ts);
  text(unit.elapsed);
  text(unit.state);
  text(allocation);
  text(tags);
  number(unit.ignore ? 1 : 0);
  number(old.num_updates + 1);
  text(batch.updated);
  number(batch.window.end_ms);
  for (const std::string& map : maps) {
    text(map);
  }
  if (known) {
    number(old.id);
  }
  if (auto done = s.run(); !done) {
    return fail(std::move(done).error());
  }
  return effect;
}

Result<> SqliteWriter::add_usage(const Batch& batch,
                                 const model::Unit& unit,
                                 const UnitEffect& effect,
                                 bool daily,
                                 UsageRows& rows) {
  auto [found, fresh] = rows.try_emplace({effect.username, effect.project});
  UsageRow& row = found->second;
  if (fresh) {
    constexpr int kFirstMap = 3;
    Statement& s = daily ? statements_->find_day : statements_->find_usage;
    s.bind(1, batch.cluster->id);
    s.bind(2, effect.username);
    s.bind(3, effect.project);
    if (daily) {
      s.bind(4, batch.day);
    }
    const auto stored = s.step();
    if (!stored) {
      s.reset();
      return fail(stored.error());
    }
    if (*stored) {
      row.fresh = false;
      row.id = s.integer(0);
      row.num_units = s.integer(1);
      row.num_updates = s.integer(2);
      row.times = stored_map(s.text(kFirstMap), effect.username);
      for (std::size_t m = 0; m < model::kMetricCount; ++m) {
        row.maps[m] = stored_map(s.text(kFirstMap + 1 + static_cast<int>(m)), effect.username);
        row.has_map[m] = true;
      }
    } else {
      row.resource_manager = unit.resource_manager;
      row.groupname = unit.groupname;
    }
    s.reset();
  }
  for (std::size_t m = 0; m < model::kMetricCount; ++m) {
    const model::MetricMap window =
        unit.has_metric[m] ? finite_map(unit.metrics[m]) : model::MetricMap();
    if (row.fresh) {
      row.maps[m] = window;
      row.has_map[m] = unit.has_metric[m];
    } else {
      row.maps[m] =
          merge_metric(static_cast<model::Metric>(m), row.maps[m], window, row.times, effect.times);
      row.has_map[m] = true;
    }
  }
  row.times = add_maps(row.times, effect.times);
  row.num_units += effect.is_new ? 1 : 0;
  row.num_updates += 1;
  row.fresh = false;
  return {};
}

Result<> SqliteWriter::flush_usage(const Batch& batch, bool daily, const UsageRows& rows) {
  for (const auto& [key, row] : rows) {
    const bool known = row.id != 0;
    Statement& s = daily ? (known ? statements_->update_day : statements_->insert_day)
                         : (known ? statements_->update_usage : statements_->insert_usage);
    int i = 0;
    if (!known) {
      s.bind(++i, batch.cluster->id);
      s.bind(++i, key.first);
      s.bind(++i, key.second);
      s.bind(++i, row.resource_manager);
      s.bind(++i, row.groupname);
    }
    s.bind(++i, row.num_units);
    s.bind(++i, row.num_updates);
    s.bind(++i, daily ? batch.day : batch.updated);
    s.bind(++i, daily ? batch.day_ms : batch.window.end_ms);
    s.bind(++i, metric_map_text(row.times));
    for (std::size_t m = 0; m < model::kMetricCount; ++m) {
      s.bind(++i, row.has_map[m] ? metric_map_text(row.maps[m]) : "null");
    }
    if (known) {
      s.bind(++i, row.id);
    }
    if (auto done = s.run(); !done) {
      return done;
    }
  }
  return {};
}

Result<> SqliteWriter::remove_others(const Batch& batch,
                                     Statement& names,
                                     Statement& remove,
                                     const std::vector<std::string>& keep) {
  const std::set<std::string_view> kept(keep.begin(), keep.end());
  std::vector<std::string> gone;
  names.bind(1, batch.cluster->id);
  while (true) {
    const auto row = names.step();
    if (!row) {
      names.reset();
      return fail(row.error());
    }
    if (!*row) {
      break;
    }
    if (!kept.contains(names.text(0))) {
      gone.emplace_back(names.text(0));
    }
  }
  names.reset();
  for (const std::string& name : gone) {
    remove.bind(1, batch.cluster->id);
    remove.bind(2, name);
    if (auto done = remove.run(); !done) {
      return done;
    }
  }
  return {};
}

namespace {

/// The reference writes null for tags that nobody set.
std::string tags_text(const std::vector<std::string>& tags) {
  return tags.empty() ? "null" : string_list_text(tags);
}

}  // namespace

Result<> SqliteWriter::write_users(const Batch& batch, const std::vector<model::User>& users) {
  std::vector<std::string> names;
  Statement& s = statements_->upsert_user;
  for (const model::User& user : users) {
    names.push_back(user.name);
    s.bind(1, batch.cluster->id);
    s.bind(2, user.name);
    s.bind(3, user.uid);
    s.bind(4, batch.cluster->manager);
    s.bind(5, string_list_text(user.projects));
    s.bind(6, tags_text(user.tags));
    s.bind(7, batch.updated);
    if (auto done = s.run(); !done) {
      return done;
    }
  }
  return remove_others(batch, statements_->user_names, statements_->delete_user, names);
}

Result<> SqliteWriter::write_projects(const Batch& batch,
                                      const std::vector<model::Project>& projects) {
  std::vector<std::string> names;
  Statement& s = statements_->upsert_project;
  for (const model::Project& project : projects) {
    names.push_back(project.name);
    s.bind(1, batch.cluster->id);
    s.bind(2, project.name);
    s.bind(3, project.uid);
    s.bind(4, batch.cluster->manager);
    s.bind(5, string_list_text(project.users));
    s.bind(6, tags_text(project.tags));
    s.bind(7, batch.updated);
    if (auto done = s.run(); !done) {
      return done;
    }
  }
  return remove_others(batch, statements_->project_names, statements_->delete_project, names);
}

}  // namespace ceems::store::sqlite
