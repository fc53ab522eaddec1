// Nodes, their days and bills.
#include <utility>

#include "store/nodes.h"
#include "store/queries/read_all.h"
#include "store/queries/sql_reader.h"

namespace ceems::store {

Result<std::vector<NodeDay>> SqlReader::node_days(const std::vector<std::string>& clusters,
                                                  const TimeRange& days) {
  Sql sql = query_of(
      "SELECT days.cluster_id, coalesce(known.class, '') AS node_class, day_ms, count(*),"
      " CAST(sum(energy) AS bigint), CAST(sum(idle) AS bigint), CAST(sum(system) AS bigint),"
      " CAST(sum(unallocated) AS bigint), CAST(sum(modelled) AS bigint),"
      " CAST(sum(covered_ms) AS bigint)"
      " FROM ceems_node_days AS days LEFT JOIN ceems_nodes AS known"
      " ON known.cluster_id = days.cluster_id AND known.node = days.node WHERE day_ms BETWEEN ");
  sql.value(days.from_ms).add(" AND ").value(days.to_ms).and_in("days.cluster_id", clusters);
  sql.add(
      " GROUP BY days.cluster_id, node_class, day_ms ORDER BY day_ms, days.cluster_id,"
      " node_class");
  std::vector<NodeDay> all;
  auto done = read_all(open(sql, kShortLimit), [&all](const Cursor& cursor) {
    all.push_back({.cluster_id = std::string(cursor.text(0)),
                   .node_class = std::string(cursor.text(1)),
                   .day_ms = cursor.integer(2),
                   .nodes = cursor.integer(3),
                   .sum = {.energy = cursor.integer(4),
                           .idle = cursor.integer(5),
                           .system = cursor.integer(6),
                           .unallocated = cursor.integer(7),
                           .modelled = cursor.integer(8),
                           .covered_ms = cursor.integer(9)}});
  });
  return done ? Result<std::vector<NodeDay>>(std::move(all)) : fail(std::move(done).error());
}

Result<std::vector<KnownNode>> SqlReader::known_nodes(const std::vector<std::string>& clusters) {
  Sql sql = query_of(
      "SELECT cluster_id,node,class,source,cpus,memory,gpus,first_ms,last_ms FROM ceems_nodes"
      " WHERE 1=1");
  sql.and_in("cluster_id", clusters).add(" ORDER BY cluster_id, node");
  std::vector<KnownNode> all;
  auto done = read_all(open(sql, kShortLimit), [&all](const Cursor& cursor) {
    all.push_back({.cluster_id = std::string(cursor.text(0)),
                   .facts = {.node = std::string(cursor.text(1)),
                             .node_class = std::string(cursor.text(2)),
                             .source = std::string(cursor.text(3)),
                             .cpus = cursor.integer(4),
                             .memory = cursor.integer(5),
                             .gpus = cursor.integer(6)},
                   .first_ms = cursor.integer(7),
                   .last_ms = cursor.integer(8)});
  });
  return done ? Result<std::vector<KnownNode>>(std::move(all)) : fail(std::move(done).error());
}

Result<std::vector<Bill>> SqlReader::bills(const TimeRange& period) {
  Sql sql = query_of(
      "SELECT cluster_id,start_ms,end_ms,energy,cost,currency,kgco2 FROM ceems_bills"
      " WHERE start_ms < ");
  sql.value(period.to_ms).add(" AND end_ms > ").value(period.from_ms);
  sql.add(" ORDER BY cluster_id, start_ms");
  std::vector<Bill> all;
  auto done = read_all(open(sql, kShortLimit), [&all](const Cursor& cursor) {
    all.push_back({.cluster_id = std::string(cursor.text(0)),
                   .start_ms = cursor.integer(1),
                   .end_ms = cursor.integer(2),
                   .energy = cursor.integer(3),
                   .cost = std::string(cursor.text(4)),
                   .currency = std::string(cursor.text(5)),
                   .kgco2 = std::string(cursor.text(6))});
  });
  return done ? Result<std::vector<Bill>>(std::move(all)) : fail(std::move(done).error());
}

}  // namespace ceems::store
