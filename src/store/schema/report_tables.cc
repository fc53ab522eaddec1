#include "store/schema/report_tables.h"

#include <string_view>

#include <fmt/format.h>

namespace ceems::store {

std::string create_reports(Dialect dialect) {
  const bool sqlite = dialect == Dialect::kSqlite;
  const std::string_view text = sqlite ? "text not null" : "text COLLATE \"C\" NOT NULL";
  const std::string_view number = sqlite ? "integer not null" : "bigint NOT NULL";
  // Numbers that are not known are -1. The body comes last: reading the others skips it.
  std::string sql = fmt::format(
      "CREATE TABLE ceems_unit_reports (cluster_id {0},uuid {0},started_at_ts {1},ended_at_ts {1},"
      "state {1} default 0,due_ms {1} default 0,made_ms {1} default 0,version {1} default 0,"
      "coverage {1} default -1,memory_peak {1} default -1,cpus_used {1} default -1,"
      "gpu_seconds {1} default -1,gpus {1} default 0,gpus_unused {1} default 0,"
      "body {0} default '',PRIMARY KEY (cluster_id, uuid, started_at_ts));"
      "CREATE INDEX ceems_unit_reports_ended ON ceems_unit_reports (ended_at_ts);"
      "CREATE INDEX ceems_unit_reports_open ON ceems_unit_reports (ended_at_ts) WHERE state < 2;"
      "CREATE TABLE ceems_findings (cluster_id {0},uuid {0},started_at_ts {1},rule {0},"
      "ended_at_ts {1},severity {1},confidence {1},runs {1},saves {1},numbers {0},"
      "PRIMARY KEY (cluster_id, uuid, started_at_ts, rule));"
      "CREATE INDEX ceems_findings_ended ON ceems_findings (ended_at_ts);",
      text, number);
  sql +=
      "DROP INDEX ceems_unit_facts_family;"
      "CREATE INDEX ceems_unit_facts_family ON ceems_unit_facts"
      " (cluster_id, username, name_norm, nodes, cpus, gpus, ended_at_ts);";
  // The TSDB still has what these used. Reports of older units are made on request.
  sql +=
      "INSERT INTO ceems_unit_reports (cluster_id, uuid, started_at_ts, ended_at_ts)"
      " SELECT cluster_id, uuid, started_at_ts, max(ended_at_ts) FROM units"
      " WHERE ended_at_ts > (SELECT max(ended_at_ts) - 604800000 FROM units)"
      " AND started_at_ts > 0 AND ignore = 0 GROUP BY cluster_id, uuid, started_at_ts;";
  return sql;
}

std::string queue_report_text() {
  return "INSERT INTO ceems_unit_reports (cluster_id,uuid,started_at_ts,ended_at_ts)"
         " VALUES (?,?,?,?) ON CONFLICT (cluster_id,uuid,started_at_ts) DO UPDATE SET"
         " state=0,due_ms=0,ended_at_ts=excluded.ended_at_ts"
         " WHERE ceems_unit_reports.ended_at_ts <> excluded.ended_at_ts";
}

}  // namespace ceems::store
