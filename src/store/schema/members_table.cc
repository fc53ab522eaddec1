#include "store/schema/members_table.h"

#include <fmt/format.h>

namespace ceems::store {

std::string create_members_table(Dialect dialect) {
  const bool sqlite = dialect == Dialect::kSqlite;
  return fmt::format(
      "CREATE TABLE ceems_members (name {0}, cluster_id {0}, project {0}, since_ms {1}, left_ms "
      "{1},"
      "PRIMARY KEY (name, cluster_id, project){2}",
      sqlite ? "text not null default ''" : "text COLLATE \"C\" NOT NULL DEFAULT ''",
      sqlite ? "integer not null default 0" : "bigint NOT NULL DEFAULT 0",
      sqlite ? ") WITHOUT ROWID;" : ");");
}

}  // namespace ceems::store
