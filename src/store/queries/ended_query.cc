// The units that have ended, in the order in which that became known (store/ended_units.h).
#include <string>

#include "store/fields.h"
#include "store/queries/sql_reader.h"

namespace ceems::store {

Result<std::unique_ptr<Cursor>> SqlReader::ended_units(std::int64_t after,
                                                       std::size_t limit,
                                                       FieldList fields) {
  std::string columns;
  for (const std::size_t field : fields) {
    columns += selected(unit_fields()[field], reference());
    columns += ',';
  }
  // A place whose end is no longer that of the unit has been followed by another one.
  Sql sql = query_of("SELECT ");
  sql.add(columns).add(
      "seq FROM ceems_ended_units JOIN units ON cluster_id = cluster AND uuid = unit"
      " AND started_at_ts = started_ms AND ended_at_ts = ended_ms WHERE ignore = 0 AND seq > ");
  sql.value(after).add(
      " AND (cluster, unit, started_ms) NOT IN (SELECT g.cluster_id, u.uuid,"
      " coalesce(u.started_at_ts, 0) FROM ceems_gap_units u JOIN ceems_gaps g ON g.id = u.gap_id)"
      " ORDER BY seq LIMIT ");
  return open(sql.value(static_cast<std::int64_t>(limit)), kShortLimit);
}

Result<EndedBacklog> SqlReader::ended_backlog(std::int64_t after) {
  EndedBacklog backlog;
  CEEMS_TRY(rows, open(query_of("SELECT count(*), coalesce(min(ended_ms), 0) FROM "
                                "ceems_ended_units WHERE seq > ")
                           .value(after),
                       kShortLimit));
  CEEMS_TRY(more, rows->next());
  if (more) {
    backlog = {.units = rows->integer(0), .oldest_ms = rows->integer(1)};
  }
  return backlog;
}

}  // namespace ceems::store
