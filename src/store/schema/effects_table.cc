#include "store/schema/effects_table.h"

#include <fmt/format.h>

namespace ceems::store {

std::string create_effects_table(Dialect dialect) {
  const bool sqlite = dialect == Dialect::kSqlite;
  // The end comes first in the key: rows are read from a time on, and purged up to one.
  return fmt::format(
      "CREATE TABLE ceems_node_effects (ended_at_ts {1}, cluster_id {0}, node {0}, uuid {0},"
      " started_at_ts {1}, username {0}, family {0}, effect {1}, outcome {1},"
      "PRIMARY KEY (ended_at_ts, cluster_id, node, uuid, started_at_ts){2}",
      sqlite ? "text not null default ''" : "text COLLATE \"C\" NOT NULL DEFAULT ''",
      sqlite ? "integer not null default 0" : "bigint NOT NULL DEFAULT 0",
      sqlite ? ") WITHOUT ROWID;" : ");");
}

}  // namespace ceems::store
