// The flavors of a cluster.
#include <utility>

#include "store/queries/read_all.h"
#include "store/queries/sql_reader.h"
#include "store/schema/flavor_table.h"

namespace ceems::store {

Result<std::vector<model::Flavor>> SqlReader::flavors(const std::string& cluster_id) {
  Sql sql = query_of("SELECT ");
  sql.add(kFlavorColumns).add(" FROM ceems_flavors WHERE cluster_id = ");
  sql.value(cluster_id).add(" ORDER BY region, id");
  std::vector<model::Flavor> all;
  auto done = read_all(open(sql, kShortLimit),
                       [&all](const Cursor& cursor) { all.push_back(flavor_of(cursor)); });
  return done ? Result<std::vector<model::Flavor>>(std::move(all)) : fail(std::move(done).error());
}

}  // namespace ceems::store
