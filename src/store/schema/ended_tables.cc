#include "store/schema/ended_tables.h"

#include <fmt/format.h>

namespace ceems::store {
std::string create_ended_tables(Dialect dialect) {
  const bool sqlite = dialect == Dialect::kSqlite;
  const char* const text = sqlite ? "text not null" : "text COLLATE \"C\" NOT NULL";
  const char* const number = sqlite ? "integer not null" : "bigint NOT NULL";
  return fmt::format(
      "CREATE TABLE ceems_ended_units (seq {1}, cluster {0}, unit {0}, started_ms {1}, ended_ms "
      "{1},PRIMARY KEY (seq){2}"
      "CREATE TABLE ceems_export_targets (name {0}, position {1}, PRIMARY KEY (name){2}",
      text, number, sqlite ? ") WITHOUT ROWID;" : ");");
}

std::string last_place_text() {
  return "(SELECT max(place) FROM (SELECT max(seq) AS place FROM ceems_ended_units"
         " UNION ALL SELECT max(position) FROM ceems_export_targets) AS places)";
}

std::string queue_ended_text() {
  return fmt::format(
      "INSERT INTO ceems_ended_units (seq,cluster,unit,started_ms,ended_ms) SELECT {}+1,?,?,?,?"
      " WHERE NOT EXISTS (SELECT 1 FROM ceems_unit_reports WHERE cluster_id=? AND uuid=?"
      " AND started_at_ts=? AND ended_at_ts=?)",
      last_place_text());
}

std::string queue_filled_text() {
  return fmt::format(
      "INSERT INTO ceems_ended_units (seq,cluster,unit,started_ms,ended_ms)"
      " SELECT {}+row_number() OVER (ORDER BY uuid,started_at_ts),cluster_id,uuid,started_at_ts,"
      "ended_at_ts FROM (SELECT DISTINCT r.cluster_id,r.uuid,r.started_at_ts,r.ended_at_ts"
      " FROM ceems_gap_units u JOIN ceems_gaps g ON g.id=u.gap_id JOIN units r"
      " ON r.cluster_id=g.cluster_id AND r.uuid=u.uuid AND r.started_at_ts=u.started_at_ts"
      " WHERE u.gap_id=? AND r.started_at_ts>0 AND r.ended_at_ts>0 AND r.ignore=0) AS ended WHERE "
      "EXISTS (SELECT 1 FROM ceems_export_targets)",
      last_place_text());
}

}  // namespace ceems::store
