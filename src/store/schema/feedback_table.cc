#include "store/schema/feedback_table.h"

#include <fmt/format.h>

namespace ceems::store {

std::string create_feedback_table(Dialect dialect) {
  const bool sqlite = dialect == Dialect::kSqlite;
  return fmt::format(
      "CREATE TABLE ceems_feedback (cluster_id {0}, uuid {0}, started_at_ts {1}, rule {0},"
      " username {0}, answer {0}, answered_ms {1},"
      "PRIMARY KEY (cluster_id, uuid, started_at_ts, rule, username){2}",
      sqlite ? "text not null default ''" : "text COLLATE \"C\" NOT NULL DEFAULT ''",
      sqlite ? "integer not null default 0" : "bigint NOT NULL DEFAULT 0",
      sqlite ? ") WITHOUT ROWID;" : ");");
}

}  // namespace ceems::store
