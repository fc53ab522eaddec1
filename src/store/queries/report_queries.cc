// Queries of reports, of findings, and of the families of runs.
#include <algorithm>
#include <utility>

#include "store/queries/fact_statements.h"
#include "store/queries/read_all.h"
#include "store/queries/sql_reader.h"
#include "store/reports.h"

namespace ceems::store {
namespace {

constexpr double kMilli = 1e-3;
constexpr double kHundredths = 1e-4;  // of a percent, as a share
constexpr double kMicroGrams = 1e-6;

/// Nothing for -1, which stands for unknown.
std::optional<double> number(const Cursor& row, std::size_t column, double scale) {
  const std::int64_t stored = row.integer(column);
  return stored < 0 ? std::nullopt : std::optional(static_cast<double>(stored) * scale);
}

std::size_t count(const Cursor& row, std::size_t column) {
  return static_cast<std::size_t>(std::max<std::int64_t>(row.integer(column), 0));
}

Sql& add_key(Sql& sql, const ReportKey& key) {
  sql.add(" WHERE cluster_id = ").value(key.cluster_id).add(" AND uuid = ").value(key.uuid);
  return sql.add(" AND started_at_ts = ").value(key.started_at_ts);
}

ReportKey key_of(const Cursor& row) {
  return {.cluster_id = std::string(row.text(0)),
          .uuid = std::string(row.text(1)),
          .started_at_ts = row.integer(2)};
}

FamilyRun family_run(const Cursor& row) {
  FamilyRun run{
      .key = key_of(row), .ended_at_ts = row.integer(3), .state = std::string(row.text(4))};
  run.cpus = number(row, 5, kMilli);
  run.memory = number(row, 6, 1);
  run.nodes = number(row, 7, 1);
  run.time_limit = number(row, 8, 1);
  run.req_cpus = number(row, 9, kMilli);
  run.cpu_use = number(row, 10, kHundredths);
  run.gpu_use = number(row, 11, kHundredths);
  run.kwh = number(row, 12, kEnergyUnitKwh);
  run.measured = row.integer(13) > static_cast<std::int64_t>(ReportState::kQueued);
  if (run.measured) {
    run.numbers = {.mem_peak = number(row, 14, 1),
                   .cpu_used_max = number(row, 15, kMilli),
                   .gpu_busy_seconds = number(row, 16, kMilli),
                   .gpus = count(row, 17),
                   .gpus_unused = count(row, 18)};
  }
  run.grams = number(row, 19, kMicroGrams);
  run.created_at_ts = row.integer(20);
  return run;
}

Sql family_statement(Dialect dialect, const FamilyQuery& query, const Family& family) {
  Sql sql(dialect,
          "SELECT f.cluster_id, f.uuid, f.started_at_ts, f.ended_at_ts, f.state, f.cpus, f.memory,"
          " f.nodes, f.time_limit, f.req_cpus, f.cpu_use, f.gpu_use, f.energy,"
          " coalesce(r.state, 0), r.memory_peak, r.cpus_used, r.gpu_seconds, r.gpus, r.gpus_unused,"
          " f.grams, f.created_at_ts FROM ceems_unit_facts f LEFT JOIN ceems_unit_reports r"
          " ON r.cluster_id = f.cluster_id AND r.uuid = f.uuid AND r.started_at_ts = "
          "f.started_at_ts WHERE f.cluster_id = ");
  sql.value(query.run.cluster_id).add(" AND f.username = ").value(family.user);
  sql.add(" AND f.name_norm = ").value(family.name).add(" AND f.nodes = ").value(family.nodes);
  sql.add(" AND f.cpus = ").value(family.cpus).add(" AND f.gpus = ").value(family.gpus);
  sql.add(" AND f.ended_at_ts BETWEEN ").value(std::max<std::int64_t>(query.ended.from_ms, 1));
  sql.add(" AND ").value(query.ended.to_ms);
  sql.and_filter_in("f.project", {family.project}).and_filter_in("f.queue", {family.queue});
  sql.add(
      " AND f.ignore = 0 AND f.started_at_ts > 0"
      " AND f.state IN ('COMPLETED', 'DONE', 'FINISHED', 'SUCCEEDED', 'OUT_OF_MEMORY')"
      " AND NOT (f.uuid = ");
  sql.value(query.run.uuid).add(" AND f.started_at_ts = ").value(query.run.started_at_ts);
  sql.add(") ORDER BY f.ended_at_ts DESC LIMIT ");
  return sql.value(static_cast<std::int64_t>(query.limit));
}

}  // namespace

Result<std::optional<StoredReport>> SqlReader::stored_report(const ReportKey& key) {
  Sql sql = query_of("SELECT state, made_ms, version, body FROM ceems_unit_reports");
  std::optional<StoredReport> report;
  auto done = read_all(
      open(add_key(sql, key).add(" AND state > 0"), kShortLimit), [&report](const Cursor& row) {
        report =
            StoredReport{.final = row.integer(0) == static_cast<std::int64_t>(ReportState::kFinal),
                         .made_ms = row.integer(1),
                         .version = static_cast<int>(row.integer(2)),
                         .body = std::string(row.text(3))};
      });
  return done ? Result<std::optional<StoredReport>>(std::move(report))
              : fail(std::move(done).error());
}

Result<std::vector<FamilyRun>> SqlReader::family_runs(const FamilyQuery& query) {
  Sql own = query_of(
      "SELECT username, project, name_norm, queue, nodes, cpus, gpus FROM ceems_unit_facts");
  std::optional<Family> family = query.family;
  std::vector<FamilyRun> runs;
  const auto read_own = [&family](const Cursor& row) {
    family = Family{.user = std::string(row.text(0)),
                    .project = std::string(row.text(1)),
                    .name = std::string(row.text(2)),
                    .queue = std::string(row.text(3)),
                    .nodes = row.integer(4),
                    .cpus = row.integer(5),
                    .gpus = row.integer(6)};
  };
  auto done = family ? Result<>() : read_all(open(add_key(own, query.run), kShortLimit), read_own);
  if (done && family) {
    done = read_all(open(family_statement(dialect_, query, *family), kShortLimit),
                    [&runs](const Cursor& row) { runs.push_back(family_run(row)); });
  }
  return done ? Result<std::vector<FamilyRun>>(std::move(runs)) : fail(std::move(done).error());
}

Result<std::vector<DueReport>> SqlReader::due_reports(std::int64_t now_ms,
                                                      std::int64_t ended_before_ms,
                                                      const std::vector<std::string>& without,
                                                      std::size_t limit) {
  Sql sql = query_of(
      "SELECT cluster_id, uuid, started_at_ts, ended_at_ts, state FROM ceems_unit_reports"
      " WHERE state < 2 AND ended_at_ts <= ");
  sql.value(ended_before_ms).add(" AND due_ms <= ").value(now_ms);
  if (!without.empty()) {
    sql.add(" AND cluster_id NOT IN ").list(without);
  }
  sql.add(" ORDER BY ended_at_ts DESC LIMIT ").value(static_cast<std::int64_t>(limit));
  std::vector<DueReport> due;
  auto done = read_all(open(sql, kShortLimit), [&due](const Cursor& row) {
    due.push_back({.key = key_of(row),
                   .ended_at_ts = row.integer(3),
                   .state = static_cast<ReportState>(row.integer(4))});
  });
  return done ? Result<std::vector<DueReport>>(std::move(due)) : fail(std::move(done).error());
}

Result<std::int64_t> SqlReader::open_reports() {
  std::int64_t count = 0;
  auto done = read_all(
      open(query_of("SELECT count(*) FROM ceems_unit_reports WHERE state < 2"), kShortLimit),
      [&count](const Cursor& row) { count = row.integer(0); });
  return done ? Result<std::int64_t>(count) : fail(std::move(done).error());
}

Result<std::vector<UnitFinding>> SqlReader::findings(const FindingQuery& query) {
  Sql columns(dialect_, "cluster_id, uuid, started_at_ts, ended_at_ts, ");
  append_fact(columns, Fact::kName, query.filter.names);
  columns.add(" AS name, username, project, array_id");
  Sql sql = query_of(
      "SELECT f.cluster_id, f.uuid, f.started_at_ts, f.ended_at_ts, f.name, f.username, f.project,"
      " n.rule, n.severity, n.confidence, n.runs, n.saves, n.numbers, f.array_id FROM (");
  sql.append(filtered_facts(dialect_, query.filter, columns));
  sql.add(
      ") AS f JOIN ceems_findings n ON n.cluster_id = f.cluster_id AND n.uuid = f.uuid"
      " AND n.started_at_ts = f.started_at_ts WHERE n.severity >= ");
  sql.value(std::int64_t{query.least_severity}).and_filter_in("n.rule", query.rules);
  sql.add(" ORDER BY f.ended_at_ts DESC, f.cluster_id, f.uuid, n.severity DESC, n.rule LIMIT ");
  sql.value(static_cast<std::int64_t>(query.limit));
  std::vector<UnitFinding> found;
  auto done = read_all(open(sql, kFactLimit), [&found](const Cursor& row) {
    UnitFinding& one = found.emplace_back();
    one.key = key_of(row);
    one.ended_at_ts = row.integer(3);
    one.name = row.text(4);
    one.user = row.text(5);
    one.project = row.text(6);
    one.finding = {.rule = std::string(row.text(7)),
                   .severity = static_cast<int>(row.integer(8)),
                   .confidence = static_cast<int>(row.integer(9)),
                   .runs = row.integer(10),
                   .saves_kwh = number(row, 11, kEnergyUnitKwh),
                   .numbers = std::string(row.text(12))};
    one.array = row.text(13);
  });
  return done ? Result<std::vector<UnitFinding>>(std::move(found)) : fail(std::move(done).error());
}

}  // namespace ceems::store
