#include "store/writer/session_writer.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "base/log.h"
#include "base/strings.h"
#include "base/time/durations.h"
#include "store/facts/fill.h"
#include "store/json.h"
#include "store/reports/report_rows.h"
#include "store/sums/unit_sums.h"
#include "store/units/stored_units.h"
#include "store/writer/account_names.h"
#include "store/writer/flavors.h"
#include "store/writer/gaps.h"
#include "store/writer/leads.h"
#include "store/writer/members.h"
#include "store/writer/node_days.h"

namespace ceems::store {
namespace {

/// Tags that are not set are "null", as in the reference.
std::string tags_text(const std::vector<std::string>& tags) {
  return tags.empty() ? "null" : string_list_text(tags);
}

/// The list without names that PostgreSQL cannot store, which no resource manager has.
std::string names_text(std::vector<std::string> names) {
  std::erase_if(names, [](const std::string& name) { return name.find('\0') != name.npos; });
  return string_list_text(names);
}

}  // namespace

/// Users with their projects, or projects with their users.
struct SessionWriter::People {
  WriterStatement upsert{}, names{}, remove{};
  std::map<std::string, std::vector<SqlValue>> rows;  ///< by name
};

Result<bool> SessionWriter::lead() {
  CEEMS_TRY(session_->ready());
  return true;
}

Result<> SessionWriter::in_transaction(std::string_view doing,
                                       const std::function<Result<>()>& work,
                                       Changes changes) {
  CEEMS_TRY(session_->ready());
  const bool leaves_usage = changes == Changes::kNoUsage;
  session_->set_leaves_usage(leaves_usage);
  auto done = store::in_transaction(*session_, work);
  session_->set_leaves_usage(false);
  if (!done) {
    return doing.empty() ? done : fail(std::move(done).error().with_context(doing));
  }
  generations_->committed(leaves_usage);
  return {};
}

Result<std::optional<std::int64_t>> SessionWriter::watermark(std::string_view cluster_id) {
  const MutexLock lock(mutex_);
  return read_watermark(cluster_id);
}

Result<std::optional<std::int64_t>> SessionWriter::read_watermark(std::string_view cluster_id) {
  std::optional<std::int64_t> result;
  const WriterCall call{.statement = WriterStatement::kWatermark,
                        .values = {std::string(cluster_id)}};
  CEEMS_TRY(session_->run(std::span(&call, 1), [&result](std::size_t, const AnswerRow& row) {
    result = row.integer(0);
  }));
  return result;
}

Result<model::AccountNames> SessionWriter::account_names(const std::string& cluster_id) {
  const MutexLock lock(mutex_);
  return read_account_names(*session_, cluster_id);
}

Result<std::optional<std::int64_t>> SessionWriter::nodes_until(const std::string& cluster_id) {
  const MutexLock lock(mutex_);
  return read_nodes_until(*session_, cluster_id);
}

Result<> SessionWriter::write_nodes(const NodeUpdate& update) {
  const MutexLock lock(mutex_);
  return in_transaction("", [&] { return put_nodes(*session_, update); }, Changes::kNoUsage);
}

Result<bool> SessionWriter::fill_facts() {
  const MutexLock lock(mutex_);
  // Some tenths of a second, so that a window need not wait.
  constexpr std::int64_t kFilledAtOnce = 2000;
  constexpr auto kReportEvery = std::chrono::seconds(10);
  std::int64_t looked_at = 0;
  auto before = units_without_facts(*session_);
  std::int64_t left = before.value_or(0);
  if (left == 0) {
    return before ? Result<bool>(false) : fail(std::move(before).error());
  }
  CEEMS_TRY(in_transaction(
      "writing the facts of units",
      [&]() -> Result<> {
        auto some = fill_some_facts(*session_, kFilledAtOnce);
        looked_at = some.value_or(0);
        auto rest = some ? units_without_facts(*session_) : fail(some.error());
        left = rest.value_or(0);
        return rest ? Result<>() : fail(std::move(rest).error());
      },
      Changes::kNoUsage));
  const auto now = clock_->steady_now();
  if (looked_at > 0 && (left == 0 || now >= next_fill_report_)) {
    next_fill_report_ = now + kReportEvery;
    log::info("writing the facts of units that are in the database already", {{"left", left}});
  }
  return left > 0;
}

Result<WriteReport> SessionWriter::write(const ClusterUpdate& update) {
  const MutexLock lock(mutex_);
  WriteReport report;
  CEEMS_TRY(in_transaction(fmt::format("writing the update of cluster {}", update.cluster.id),
                           [&] { return write_window(update, report); }));
  // Sums make answers faster but do not change them, so a failure does not affect the window.
  static_cast<void>(sum_up(update.window.end_ms));
  return report;
}

Result<std::size_t> SessionWriter::fill_sums() {
  constexpr auto kReportEvery = std::chrono::seconds(10);
  constexpr std::size_t kFewSpans = 8;  // of the windows of a round: no backlog
  const MutexLock lock(mutex_);
  CEEMS_TRY(session_->ready());
  std::int64_t until_ms = 0;
  CEEMS_TRY(session_->run(
      Sql(session_->dialect(), "SELECT coalesce(max(window_end_ms), 0) FROM ceems_watermarks"),
      [&until_ms](std::size_t, const AnswerRow& row) { until_ms = row.integer(0); }));
  if (until_ms == 0) {
    return 0;
  }
  CEEMS_TRY(left, sum_up(until_ms));
  const auto now = clock_->steady_now();
  const bool begun = std::exchange(summing_, left > kFewSpans || (summing_ && left > 0));
  if ((begun || summing_) && (!summing_ || now >= next_sums_report_)) {
    next_sums_report_ = now + kReportEvery;
    log::info("summing up units and days that are in the database already", {{"left", left}});
  }
  return left;
}

Result<std::size_t> SessionWriter::sum_up(std::int64_t until_ms) {
  std::size_t left = 0;
  session_->set_leaves_usage(true);  // no answer changes
  const auto done = store::in_transaction(*session_, [&]() -> Result<> {
    // Later spans are still being written to.
    const auto rest = sum_spans(*session_, until_ms - kHourMs);
    left = rest.value_or(0);
    return rest ? Result<>() : fail(rest.error());
  });
  session_->set_leaves_usage(false);
  const std::string error = done ? "" : done.error().message;
  if (!done && error != sums_error_) {
    log::warn("cannot compute sums over time, so queries over long periods take longer",
              {{"err", error}});
  }
  sums_error_ = error;
  return done ? Result<std::size_t>(left) : fail(done.error());
}

Result<> SessionWriter::write_window(const ClusterUpdate& update, WriteReport& report) {
  const auto [start_ms, end_ms] = update.window;
  if (end_ms <= start_ms) {
    return fail(ErrorCode::kInvalidArgument, "window ends at {} before its start {}", end_ms,
                start_ms);
  }
  CEEMS_TRY(last, read_watermark(update.cluster.id));
  if (last && *last != start_ms) {
    return fail(ErrorCode::kInvalidArgument, "window starts at {} but the last one ended at {}",
                start_ms, *last);
  }
  // A window includes its end, so one that ends at midnight belongs to the day before.
  const Batch batch{.cluster = update.cluster,
                    .window = update.window,
                    .updated = zone_.local(end_ms),
                    .day = zone_.day(end_ms - 1),
                    .day_ms = zone_.day_start(end_ms - 1)};
  UsageRows usage;
  UsageRows days;
  std::set<std::int64_t> moments{end_ms};
  std::vector<model::Unit> counted;  // for gaps
  std::vector<const model::Unit*> chunk;
  std::set<std::string_view> ids;
  const auto flush = [&]() -> Result<> {
    auto done = write_units(batch, chunk, usage, days, moments,
                            update.gaps.empty() ? nullptr : &counted, report);
    chunk.clear();
    ids.clear();
    return done;
  };
  for (const model::Unit& unit : update.units) {
    if (unit.uuid.empty() ||
        (purged_before_ms_ && unit.ended_at_ts > 0 && unit.ended_at_ts < *purged_before_ms_)) {
      continue;
    }
    // If a uuid occurs twice, the first unit must be stored before the second one is looked up.
    if (chunk.size() == kUnitsAtOnce || ids.contains(unit.uuid)) {
      CEEMS_TRY(flush());
    }
    chunk.push_back(&unit);
    ids.insert(unit.uuid);
  }
  CEEMS_TRY(flush());
  CEEMS_TRY(forget_sums(batch, moments));
  if (!counted.empty()) {
    CEEMS_TRY(insert_gaps(*session_, update, counted));
  }
  std::vector<std::vector<WriterCall>> rows;
  for (const bool daily : {false, true}) {
    for (const auto& [key, row] : daily ? days : usage) {
      rows.push_back({row.call(batch, daily, key.first, key.second)});
    }
  }
  CEEMS_TRY(run_and_log(rows, "row of usage"));
  auto users = update.users;
  auto projects = update.projects;
  const bool merge = update.members_of_usage && users && projects;
  if (merge) {
    CEEMS_TRY(add_members_of_usage(*session_, update.cluster.id, *users, *projects));
  }
  if (users && (merge || !users->empty())) {
    People people{.upsert = WriterStatement::kUpsertUser,
                  .names = WriterStatement::kUserNames,
                  .remove = WriterStatement::kDeleteUser,
                  .rows = {}};
    for (const model::User& user : *users) {
      people.rows[user.name] = {batch.cluster.id,
                                user.name,
                                user.uid,
                                batch.cluster.manager,
                                names_text(user.projects),
                                tags_text(user.tags),
                                batch.updated};
    }
    CEEMS_TRY(write_people(batch, people));
  }
  if (projects && (merge || !projects->empty())) {
    CEEMS_TRY(note_members(*session_, update.cluster.id, update.window, *projects));
    People people{.upsert = WriterStatement::kUpsertProject,
                  .names = WriterStatement::kProjectNames,
                  .remove = WriterStatement::kDeleteProject,
                  .rows = {}};
    for (const model::Project& project : *projects) {
      people.rows[project.name] = {batch.cluster.id,
                                   project.name,
                                   project.uid,
                                   batch.cluster.manager,
                                   names_text(project.users),
                                   tags_text(project.tags),
                                   batch.updated};
    }
    CEEMS_TRY(write_people(batch, people));
  }
  if (update.leads) {
    CEEMS_TRY(write_leads(*session_, update.cluster.id, *update.leads));
  }
  if (update.flavors) {
    CEEMS_TRY(write_flavors(*session_, update.cluster.id, *update.flavors));
  }
  CEEMS_TRY(add_account_names(*session_, update.cluster.id, update.names));
  const WriterCall call{.statement = WriterStatement::kSetWatermark,
                        .values = {batch.cluster.id, end_ms}};
  return session_->run(std::span(&call, 1), {});
}

Result<> SessionWriter::write_units(const Batch& batch,
                                    std::span<const model::Unit* const> units,
                                    UsageRows& usage,
                                    UsageRows& days,
                                    std::set<std::int64_t>& moments,
                                    std::vector<model::Unit>* counted,
                                    WriteReport& report) {
  std::vector<std::string_view> ids;
  ids.reserve(units.size());
  for (const model::Unit* unit : units) {
    ids.push_back(unit->uuid);
  }
  CEEMS_TRY(stored, find_units(*session_, batch.cluster.id, ids));
  std::vector<UnitChange> changes;
  std::vector<std::vector<WriterCall>> groups;
  changes.reserve(units.size());
  groups.reserve(units.size());
  for (std::size_t i = 0; i < units.size(); ++i) {
    changes.push_back(change_of(batch, *units[i], stored[i]));
    groups.push_back(std::move(changes.back().calls));
  }
  CEEMS_TRY(refused, session_->run_groups(groups));
  bool targets = false;  // of units that have ended
  CEEMS_TRY(session_->run(Sql(session_->dialect(), "SELECT 1 FROM ceems_export_targets LIMIT 1"),
                          [&targets](std::size_t, const AnswerRow&) { targets = true; }));
  std::vector<std::vector<WriterCall>> facts;
  std::vector<std::vector<WriterCall>> ended;
  std::vector<UsageRows::iterator> unknown_usage;
  std::vector<UsageRows::iterator> unknown_days;
  std::vector<std::array<UsageRows::iterator, 2>> sums(units.size());  // where units are added
  for (std::size_t i = 0; i < units.size(); ++i) {
    if (const auto& error = refused[i]; error) {
      ++report.skipped;
      changes[i].counts = false;
      log::error("unit skipped", {{"cluster_id", batch.cluster.id},
                                  {"uuid", printable(units[i]->uuid)},
                                  {"err", error->message}});
      continue;
    }
    ++report.written;
    facts.push_back(std::move(changes[i].facts));
    moments.insert(changes[i].moved_from.begin(), changes[i].moved_from.end());
    if (!changes[i].counts) {
      continue;
    }
    if (units[i]->started_at_ts > 0 && units[i]->ended_at_ts > 0 && !units[i]->ignore) {
      const auto& [id, start, end] =
          std::tie(units[i]->uuid, units[i]->started_at_ts, units[i]->ended_at_ts);
      const std::string& cluster = batch.cluster.id;
      std::vector<WriterCall>& calls = ended.emplace_back();
      if (targets) {
        calls.push_back(
            {WriterStatement::kQueueEnded, {cluster, id, start, end, cluster, id, start, end}});
      }
      calls.push_back({WriterStatement::kQueueReport, {cluster, id, start, end}});
    }
    if (counted != nullptr) {
      model::Unit& unit = counted->emplace_back();
      unit.uuid = units[i]->uuid;
      unit.started_at = units[i]->started_at;
      unit.started_at_ts = units[i]->started_at_ts;
      unit.ended_at_ts = units[i]->ended_at_ts;
      unit.total_time_seconds = changes[i].times;
    }
    std::size_t place = 0;
    for (auto [rows, unknown] :
         {std::pair(&usage, &unknown_usage), std::pair(&days, &unknown_days)}) {
      const auto [row, fresh] = rows->try_emplace({changes[i].username, changes[i].project},
                                                  units[i]->resource_manager, units[i]->groupname);
      sums[i].at(place++) = row;
      if (fresh) {
        unknown->push_back(row);
      }
    }
  }
  CEEMS_TRY(run_and_log(facts, "facts of a unit"));
  CEEMS_TRY(run_and_log(ended, "report of a unit"));
  CEEMS_TRY(load_usage(batch, false, unknown_usage));
  CEEMS_TRY(load_usage(batch, true, unknown_days));
  for (std::size_t i = 0; i < units.size(); ++i) {
    if (changes[i].counts) {
      for (const auto& row : sums[i]) {
        row->second.add(*units[i], changes[i]);
      }
    }
  }
  return {};
}

/// `moments` are the last updates (epoch ms) of the units that the batch changes.
Result<> SessionWriter::forget_sums(const Batch& batch, const std::set<std::int64_t>& moments) {
  CEEMS_TRY(forget_spans(*session_, SumsOf::kUnitSums, moments));
  // The row of this day may have been written while another time zone was configured.
  return forget_spans(*session_, SumsOf::kDaySums,
                      {std::max<std::int64_t>(batch.day_ms - 2 * kDayMs, 0), batch.day_ms,
                       batch.day_ms + 2 * kDayMs});
}

Result<> SessionWriter::load_usage(const Batch& batch,
                                   bool daily,
                                   std::span<const UsageRows::iterator> rows) {
  std::vector<WriterCall> finds;
  finds.reserve(rows.size());
  for (const auto& row : rows) {
    WriterCall& find = finds.emplace_back();
    find.statement = daily ? WriterStatement::kFindDay : WriterStatement::kFindUsage;
    find.values = {batch.cluster.id, row->first.first, row->first.second};
    if (daily) {
      find.values.emplace_back(batch.day);
    }
  }
  return session_->run(finds, [&rows](std::size_t index, const AnswerRow& row) {
    rows[index]->second.load(row, rows[index]->first.first);
  });
}

/// A row that the database refuses must not block the window forever.
Result<> SessionWriter::run_and_log(std::span<const std::vector<WriterCall>> groups,
                                    std::string_view what) {
  CEEMS_TRY(refused, session_->run_groups(groups));
  for (const auto& error : refused) {
    if (error) {
      log::error("the database refused a row", {{"what", what}, {"err", error->message}});
    }
  }
  return {};
}

Result<> SessionWriter::write_people(const Batch& batch, const People& people) {
  std::vector<std::vector<WriterCall>> groups;
  const WriterCall names{.statement = people.names, .values = {batch.cluster.id}};
  CEEMS_TRY(session_->run(std::span(&names, 1), [&](std::size_t, const AnswerRow& row) {
    std::string name(row.text(0));
    if (!people.rows.contains(name)) {
      groups.push_back({{people.remove, {batch.cluster.id, std::move(name)}}});
    }
  }));
  for (const auto& [name, values] : people.rows) {
    groups.push_back({{people.upsert, values}});
  }
  return run_and_log(groups, "user or project");
}

Result<> SessionWriter::write_admins(std::string_view source,
                                     const std::vector<std::string>& names) {
  return change_admins(source, names, true);
}

Result<> SessionWriter::add_admins(std::string_view source, const std::vector<std::string>& names) {
  return change_admins(source, names, false);
}

Result<> SessionWriter::change_admins(std::string_view source,
                                      const std::vector<std::string>& names,
                                      bool replace) {
  const MutexLock lock(mutex_);
  return in_transaction("writing admins", [&] { return put_admins(source, names, replace); });
}

/// Writes the admins of one source into our own table, then updates the table of the reference:
/// names that are in no source any more are deleted, the others get the last source that named
/// them.
Result<> SessionWriter::put_admins(std::string_view source,
                                   const std::vector<std::string>& names,
                                   bool replace) {
  const auto now =
      std::chrono::duration_cast<std::chrono::milliseconds>(clock_->now().time_since_epoch());
  const auto sql = [this](std::string_view text) { return Sql(session_->dialect(), text); };
  std::vector<Sql> all;
  if (replace) {
    all.push_back(sql("DELETE FROM ceems_admin_sources WHERE source = ").value(source));
  }
  for (const std::string& name : names) {
    if (name.empty()) {
      continue;
    }
    all.push_back(sql("INSERT INTO ceems_admin_sources (source, name) VALUES (")
                      .value(source)
                      .add(",")
                      .value(name)
                      .add(") ON CONFLICT DO NOTHING"));
    all.push_back(sql("INSERT INTO admin_users (name, projects, tags, last_updated_at) VALUES (")
                      .value(name)
                      .add(",'[]',")
                      .value(string_list_text({std::string(source)}))
                      .add(",")
                      .value(zone_.local(now.count()))
                      .add(") ON CONFLICT (cluster_id, name) DO UPDATE SET tags = excluded.tags,"
                           " last_updated_at = excluded.last_updated_at"));
  }
  // The names of sources are ours and need no escapes in JSON.
  all.push_back(
      sql("DELETE FROM admin_users WHERE name NOT IN (SELECT name FROM ceems_admin_sources)"));
  all.push_back(
      sql("UPDATE admin_users SET tags = (SELECT '[\"' || max(source) || '\"]'"
          " FROM ceems_admin_sources s WHERE s.name = admin_users.name) WHERE NOT EXISTS"
          " (SELECT 1 FROM ceems_admin_sources s WHERE s.name = admin_users.name"
          " AND '[\"' || s.source || '\"]' = admin_users.tags)"));
  for (const Sql& one : all) {
    CEEMS_TRY(session_->run(one, {}));
  }
  return {};
}

Result<> SessionWriter::purge(std::int64_t cutoff_ms, const std::stop_token& stop) {
  const MutexLock lock(mutex_);
  purged_before_ms_ = cutoff_ms;
  const auto sql = [this](std::string_view text) { return Sql(session_->dialect(), text); };
  const std::vector<std::pair<SumsOf, Sql>> all{
      {SumsOf::kUnitSums, sql("ended_at_ts > 0 AND ended_at_ts < ").value(cutoff_ms)},
      // Units without an end that were not updated although their cluster was. Without the second
      // condition, running units would be purged after this program was stopped for a long time.
      {SumsOf::kUnitSums,
       sql("ended_at_ts <= 0 AND last_updated_at_ts < ")
           .value(cutoff_ms)
           .add(" AND last_updated_at_ts < (SELECT window_end_ms"
                " FROM ceems_watermarks w WHERE w.cluster_id = units.cluster_id) - ")
           .value(kDayMs)},
      // The row of a day holds what ended up to 24 h later.
      {SumsOf::kDaySums, sql("last_updated_at_ts < ").value(cutoff_ms - kDayMs)}};
  Result<bool> finished = true;
  for (const auto& [what, condition] : all) {
    if (finished && *finished) {
      finished = remove_all(what, condition, stop);
    }
  }
  Result<> done = finished ? Result<>() : fail(finished.error());
  if (finished && *finished) {
    done = in_transaction("", [&] { return remove_rest(cutoff_ms); });
  }
  if (done) {
    done = give_back_pages();
  }
  return done ? done : fail(std::move(done).error().with_context("purging"));
}

Result<bool> SessionWriter::remove_all(SumsOf what,
                                       const Sql& condition,
                                       const std::stop_token& stop) {
  const auto sql = [this](std::string_view text) { return Sql(session_->dialect(), text); };
  const std::string_view table = what == SumsOf::kUnitSums ? "units" : "daily_usage";
  // The order is that of an index, so that each chunk is found where the last one ended.
  Sql chunk = sql("SELECT id FROM ");
  chunk.add(table).add(" WHERE ").append(condition).add(" ORDER BY ");
  chunk.add(what == SumsOf::kUnitSums ? "ended_at_ts" : "last_updated_at_ts").add(", id LIMIT ");
  chunk.value(kPurgedAtOnce);
  Sql condition_of_chunk = sql("id IN (");
  condition_of_chunk.append(chunk).add(")");
  while (true) {
    std::int64_t rows = 0;
    auto done =
        session_->run(sql("SELECT count(*) FROM (").append(chunk).add(") AS chunk"),
                      [&rows](std::size_t, const AnswerRow& row) { rows = row.integer(0); });
    if (done && rows > 0) {
      done = in_transaction("", [&]() -> Result<> {
        auto forgotten = forget_spans_of(*session_, what, condition_of_chunk);
        if (forgotten && what == SumsOf::kUnitSums) {
          forgotten = session_->run(
              sql("DELETE FROM ceems_unit_facts WHERE (cluster_id, uuid, started_at_ts) IN"
                  " (SELECT cluster_id, uuid, started_at_ts FROM units WHERE ")
                  .append(condition_of_chunk)
                  .add(")"),
              {});
        }
        if (forgotten && what == SumsOf::kUnitSums) {
          forgotten = purge_reports_of(*session_, condition_of_chunk);
        }
        return forgotten
                   ? session_->run(
                         sql("DELETE FROM ").add(table).add(" WHERE ").append(condition_of_chunk),
                         {})
                   : forgotten;
      });
    }
    if (!done) {
      return fail(std::move(done).error());
    }
    if (rows < kPurgedAtOnce) {
      return true;
    }
    if (stop.stop_requested()) {
      return false;
    }
  }
}

/// Deletes the remaining windows and rows before the cutoff, which are few.
Result<> SessionWriter::remove_rest(std::int64_t cutoff_ms) {
  CEEMS_TRY(purge_gaps(*session_, cutoff_ms));
  CEEMS_TRY(purge_effects(*session_, cutoff_ms));
  const auto sql = [this](std::string_view text) { return Sql(session_->dialect(), text); };
  const std::vector<Sql> all{
      sql("DELETE FROM usage WHERE last_updated_at_ts < ").value(cutoff_ms),
      // Sums of spans that are no longer listed are of no use.
      sql("DELETE FROM ceems_unit_sums WHERE NOT EXISTS (SELECT 1 FROM ceems_unit_spans s"
          " WHERE s.level = ceems_unit_sums.level AND s.span = ceems_unit_sums.span)")};
  for (const Sql& one : all) {
    CEEMS_TRY(session_->run(one, {}));
  }
  return {};
}

}  // namespace ceems::store
