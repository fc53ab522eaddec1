#include "store/units/stored_units.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "store/schema/tables.h"

namespace ceems::store {
namespace {

using Rows = std::vector<std::vector<StoredUnit>>;

const StoredColumns& stored_columns() {
  static const StoredColumns columns(kUnits);
  return columns;
}

Sql select_units(const Session& session,
                 std::string_view cluster_id,
                 const std::vector<std::string>& uuids) {
  const Dialect dialect = session.dialect();
  Sql sql(dialect, fmt::format("SELECT {} FROM ", stored_columns().names(session.reference())));
  if (dialect == Dialect::kSqlite) {
    return sql.add("units WHERE cluster_id = ").value(cluster_id).add(" AND uuid IN ").list(uuids);
  }
  // With IN, PostgreSQL reads all units of the cluster as long as the table has no statistics.
  // OFFSET keeps it from reordering this join, which looks up each uuid in the index.
  sql.add("(VALUES ");
  for (std::size_t i = 0; i < uuids.size(); ++i) {
    sql.add(i == 0 ? "(" : ",(").value(uuids[i]).add(")");
  }
  sql.add(") AS wanted(one) CROSS JOIN LATERAL (SELECT * FROM units WHERE cluster_id = ");
  return sql.value(cluster_id).add(" AND uuid = wanted.one OFFSET 0) AS found");
}

/// Whether every database stores the uuid unchanged, so that its row can be found.
bool plain(std::string_view uuid) {
  return std::ranges::all_of(uuid, [](char c) { return c >= ' ' && c <= '~'; });
}

}  // namespace

Result<Rows> find_units(Session& session,
                        std::string_view cluster_id,
                        std::span<const std::string_view> uuids) {
  Rows rows(uuids.size());
  std::map<std::string_view, std::vector<std::size_t>> places;
  std::vector<std::string> together;
  for (std::size_t i = 0; i < uuids.size(); ++i) {
    if (!plain(uuids[i])) {
      CEEMS_TRY(session.run(select_units(session, cluster_id, {std::string(uuids[i])}),
                            [&rows, i](std::size_t, const AnswerRow& row) {
                              rows[i].push_back(stored_columns().read(row));
                            }));
      continue;
    }
    const auto [found, fresh] = places.try_emplace(uuids[i]);
    found->second.push_back(i);
    if (fresh) {
      together.emplace_back(uuids[i]);
    }
  }
  if (together.empty()) {
    return rows;
  }
  CEEMS_TRY(session.run(select_units(session, cluster_id, together),
                        [&](std::size_t, const AnswerRow& row) {
                          const auto found = places.find(stored_columns().uuid(row));
                          if (found == places.end()) {
                            return;
                          }
                          for (const std::size_t place : found->second) {
                            rows[place].push_back(stored_columns().read(row));
                          }
                        }));
  return rows;
}

}  // namespace ceems::store
