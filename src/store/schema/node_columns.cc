#include "store/schema/node_columns.h"

#include <initializer_list>
#include <string_view>

#include <fmt/format.h>

namespace ceems::store {
namespace {

std::string columns(std::initializer_list<std::string_view> names, std::string_view type) {
  std::string sql;
  for (const std::string_view name : names) {
    sql += fmt::format("{} {},", name, type);
  }
  return sql;
}

}  // namespace

std::string create_node_tables(Dialect dialect) {
  const bool sqlite = dialect == Dialect::kSqlite;
  const std::string_view text =
      sqlite ? "text not null default ''" : "text COLLATE \"C\" NOT NULL DEFAULT ''";
  const std::string_view number =
      sqlite ? "integer not null default 0" : "bigint NOT NULL DEFAULT 0";
  const std::string_view end = sqlite ? ") WITHOUT ROWID;" : ");";
  return "CREATE TABLE ceems_nodes (" + columns({"cluster_id", "node", "class", "source"}, text) +
         columns({"cpus", "memory", "gpus", "first_ms", "last_ms"}, number) +
         fmt::format("PRIMARY KEY (cluster_id, node){}", end) + "CREATE TABLE ceems_node_days (" +
         columns({"cluster_id"}, text) + columns({"day_ms"}, number) + columns({"node"}, text) +
         columns({"energy", "idle", "system", "unallocated", "modelled", "covered_ms"}, number) +
         fmt::format("PRIMARY KEY (cluster_id, day_ms, node){}", end) +
         "CREATE TABLE ceems_node_progress (" + columns({"cluster_id"}, text) +
         columns({"until_ms"}, number) + fmt::format("PRIMARY KEY (cluster_id){}", end) +
         "CREATE TABLE ceems_bills (" + columns({"cluster_id"}, text) +
         columns({"start_ms", "end_ms", "energy"}, number) +
         columns({"cost", "currency", "kgco2"}, text) +
         fmt::format("PRIMARY KEY (cluster_id, start_ms){}", end);
}

}  // namespace ceems::store
