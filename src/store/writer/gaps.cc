#include "store/writer/gaps.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/log.h"
#include "store/json.h"

namespace ceems::store {
namespace {

// Rows that are sent to the database at a time.
constexpr std::size_t kGapUnitsAtOnce = 256;

Gap gap_of(const AnswerRow& row) {
  Gap gap{.id = row.integer(0),
          .updater = std::string(row.text(1)),
          .parts = {},
          .window = {.start_ms = row.integer(3), .end_ms = row.integer(4)}};
  auto parts = parse_string_list(row.text(2));
  if (parts) {
    gap.parts = std::move(*parts);
  } else {
    log::warn("malformed list in the database, taken as empty", {{"table", "ceems_gaps"}});
  }
  return gap;
}

Sql find_gaps(const Session& session) {
  return {session.dialect(), "SELECT id,updater,parts,start_ms,end_ms FROM ceems_gaps WHERE "};
}

}  // namespace

Result<std::vector<Gap>> read_gaps(Session& session, std::string_view cluster_id) {
  std::vector<Gap> gaps;
  CEEMS_TRY(
      session.run(find_gaps(session).add("cluster_id = ").value(cluster_id).add(" ORDER BY id"),
                  [&gaps](std::size_t, const AnswerRow& row) { gaps.push_back(gap_of(row)); }));
  return gaps;
}

Result<std::optional<Gap>> read_gap(Session& session, std::int64_t gap_id) {
  std::optional<Gap> gap;
  CEEMS_TRY(session.run(find_gaps(session).add("id = ").value(gap_id),
                        [&gap](std::size_t, const AnswerRow& row) { gap = gap_of(row); }));
  return gap;
}

Result<std::vector<model::Unit>> read_gap_units(Session& session, std::int64_t gap_id) {
  std::vector<model::Unit> units;
  CEEMS_TRY(session.run(
      Sql(session.dialect(),
          "SELECT uuid,started_at,started_at_ts,ended_at_ts,times FROM ceems_gap_units"
          " WHERE gap_id = ")
          .value(gap_id),
      [&units](std::size_t, const AnswerRow& row) {
        model::Unit& unit = units.emplace_back();
        unit.uuid = row.text(0);
        unit.started_at = row.text(1);
        unit.started_at_ts = row.integer(2);
        unit.ended_at_ts = row.integer(3);
        unit.total_time_seconds = parse_metric_map(row.text(4)).value_or(model::MetricMap{});
      }));
  return units;
}

Result<> insert_gaps(Session& session,
                     const ClusterUpdate& update,
                     std::span<const model::Unit> counted) {
  for (const Gap& gap : update.gaps) {
    std::int64_t gap_id = 0;
    auto done =
        session.run(Sql(session.dialect(), "SELECT coalesce(max(id), 0) + 1 FROM ceems_gaps"),
                    [&gap_id](std::size_t, const AnswerRow& row) { gap_id = row.integer(0); });
    if (done) {
      Sql sql(session.dialect(),
              "INSERT INTO ceems_gaps (id,cluster_id,updater,parts,start_ms,end_ms) VALUES (");
      sql.value(gap_id).add(",").value(update.cluster.id).add(",").value(gap.updater).add(",");
      sql.value(string_list_text(gap.parts)).add(",").value(update.window.start_ms).add(",");
      done = session.run(sql.value(update.window.end_ms).add(")"), {});
    }
    for (std::size_t begin = 0; done && begin < counted.size(); begin += kGapUnitsAtOnce) {
      std::vector<WriterCall> rows;
      for (const model::Unit& unit :
           counted.subspan(begin, std::min(kGapUnitsAtOnce, counted.size() - begin))) {
        rows.push_back({WriterStatement::kInsertGapUnit,
                        {gap_id, unit.uuid, unit.started_at, unit.started_at_ts, unit.ended_at_ts,
                         metric_map_text(unit.total_time_seconds)}});
      }
      done = session.run(rows, {});
    }
    if (!done) {
      return done;
    }
  }
  return {};
}

Result<> set_gap_parts(Session& session,
                       std::int64_t gap_id,
                       const std::vector<std::string>& parts) {
  if (!parts.empty()) {
    return session.run(Sql(session.dialect(), "UPDATE ceems_gaps SET parts = ")
                           .value(string_list_text(parts))
                           .add(" WHERE id = ")
                           .value(gap_id),
                       {});
  }
  const WriterCall queue{.statement = WriterStatement::kQueueFilled, .values = {gap_id}};
  auto done = session.run(std::span(&queue, 1), {});
  if (done) {
    done = session.run(
        Sql(session.dialect(), "DELETE FROM ceems_gap_units WHERE gap_id = ").value(gap_id), {});
  }
  if (done) {
    done =
        session.run(Sql(session.dialect(), "DELETE FROM ceems_gaps WHERE id = ").value(gap_id), {});
  }
  return done;
}

Result<> purge_gaps(Session& session, std::int64_t cutoff_ms) {
  std::vector<std::int64_t> ids;
  CEEMS_TRY(session.run(
      Sql(session.dialect(), "SELECT id FROM ceems_gaps WHERE end_ms < ").value(cutoff_ms),
      [&ids](std::size_t, const AnswerRow& row) { ids.push_back(row.integer(0)); }));
  for (const std::int64_t id : ids) {
    CEEMS_TRY(set_gap_parts(session, id, {}));  // units that ended later wait for it
  }
  return {};
}

}  // namespace ceems::store
