#include "store/schema/flavor_table.h"

#include <fmt/format.h>

namespace ceems::store {

std::string create_flavor_table(Dialect dialect) {
  const bool sqlite = dialect == Dialect::kSqlite;
  return fmt::format(
      "CREATE TABLE ceems_flavors (cluster_id {0}, region {0}, id {0}, name {0}, vcpus {1},"
      "ram_mib {1}, disk_gb {1}, ephemeral_gb {1}, swap_mb {1}, extra_specs {0}, offered {1},"
      "PRIMARY KEY (cluster_id, region, id){2}",
      sqlite ? "text not null default ''" : "text COLLATE \"C\" NOT NULL DEFAULT ''",
      sqlite ? "integer not null default 0" : "bigint NOT NULL DEFAULT 0",
      sqlite ? ") WITHOUT ROWID;" : ");");
}

}  // namespace ceems::store
