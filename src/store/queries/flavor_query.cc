// The flavors of a cluster.
#include <utility>

#include "store/queries/read_all.h"
#include "store/queries/sql_reader.h"

namespace ceems::store {

Result<std::vector<model::Flavor>> SqlReader::flavors(const std::string& cluster_id) {
  Sql sql = query_of(
      "SELECT region,id,name,vcpus,ram_mib,disk_gb,ephemeral_gb,swap_mb,extra_specs,offered"
      " FROM ceems_flavors WHERE cluster_id = ");
  sql.value(cluster_id).add(" ORDER BY region, id");
  std::vector<model::Flavor> all;
  auto done = read_all(open(sql, kShortLimit), [&all](const Cursor& cursor) {
    all.push_back({.region = std::string(cursor.text(0)),
                   .id = std::string(cursor.text(1)),
                   .name = std::string(cursor.text(2)),
                   .vcpus = cursor.integer(3),
                   .ram_mib = cursor.integer(4),
                   .disk_gb = cursor.integer(5),
                   .ephemeral_gb = cursor.integer(6),
                   .swap_mb = cursor.integer(7),
                   .extra_specs = std::string(cursor.text(8)),
                   .offered = cursor.integer(9) != 0});
  });
  return done ? Result<std::vector<model::Flavor>>(std::move(all)) : fail(std::move(done).error());
}

}  // namespace ceems::store
