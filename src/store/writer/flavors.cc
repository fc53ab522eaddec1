#include "store/writer/flavors.h"

#include <map>
#include <utility>

#include "store/schema/flavor_table.h"

namespace ceems::store {
namespace {

using Key = std::pair<std::string, std::string>;  // region, id

/// Whether every database can store the text. PostgreSQL refuses NULs, and long texts in an index,
/// and a refused flavor would fail the window.
bool is_storable(const std::string& text, std::size_t limit) {
  return text.size() <= limit && text.find('\0') == std::string::npos;
}

bool is_storable(const model::Flavor& flavor) {
  constexpr std::size_t kMaxName = 512;
  constexpr std::size_t kMaxSpecs = std::size_t{512} << 10U;
  return !flavor.id.empty() && is_storable(flavor.id, kMaxName) &&
         is_storable(flavor.region, kMaxName) && is_storable(flavor.name, kMaxName) &&
         is_storable(flavor.extra_specs, kMaxSpecs);
}

Result<std::map<Key, model::Flavor>> read_stored(Session& session, const std::string& cluster_id) {
  std::map<Key, model::Flavor> stored;
  Sql select(session.dialect(), "SELECT ");
  select.add(kFlavorColumns).add(" FROM ceems_flavors WHERE cluster_id = ");
  auto done = session.run(select.value(cluster_id), [&stored](std::size_t, const AnswerRow& row) {
    model::Flavor flavor = flavor_of(row);
    Key key(flavor.region, flavor.id);
    stored.emplace(std::move(key), std::move(flavor));
  });
  return done ? Result<std::map<Key, model::Flavor>>(std::move(stored))
              : fail(std::move(done).error());
}

Sql remove(Session& session, const std::string& cluster_id, const Key& key) {
  Sql sql(session.dialect(), "DELETE FROM ceems_flavors WHERE cluster_id = ");
  sql.value(cluster_id).add(" AND region = ").value(key.first).add(" AND id = ").value(key.second);
  return sql;
}

Sql add(Session& session, const std::string& cluster_id, const model::Flavor& flavor) {
  Sql sql(session.dialect(), "INSERT INTO ceems_flavors (cluster_id,");
  sql.add(kFlavorColumns).add(") VALUES (");
  sql.value(cluster_id).add(",").value(flavor.region).add(",").value(flavor.id).add(",");
  sql.value(flavor.name).add(",").value(flavor.vcpus).add(",").value(flavor.ram_mib).add(",");
  sql.value(flavor.disk_gb).add(",").value(flavor.ephemeral_gb).add(",").value(flavor.swap_mb);
  sql.add(",").value(flavor.extra_specs).add(",").value(std::int64_t{flavor.offered ? 1 : 0});
  sql.add(")");
  return sql;
}

}  // namespace

Result<> write_flavors(Session& session,
                       const std::string& cluster_id,
                       const std::vector<model::Flavor>& flavors) {
  std::map<Key, const model::Flavor*> wanted;
  for (const model::Flavor& flavor : flavors) {
    if (is_storable(flavor)) {
      wanted.emplace(Key(flavor.region, flavor.id), &flavor);
    }
  }
  CEEMS_TRY(stored, read_stored(session, cluster_id));
  std::vector<Sql> changes;
  for (const auto& [key, flavor] : stored) {
    const auto found = wanted.find(key);
    if (found == wanted.end() || *found->second != flavor) {
      changes.push_back(remove(session, cluster_id, key));
    }
  }
  for (const auto& [key, flavor] : wanted) {
    const auto found = stored.find(key);
    if (found == stored.end() || found->second != *flavor) {
      changes.push_back(add(session, cluster_id, *flavor));
    }
  }
  for (const Sql& change : changes) {
    CEEMS_TRY(session.run(change, {}));
  }
  return {};
}

}  // namespace ceems::store
