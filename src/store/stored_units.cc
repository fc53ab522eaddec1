#include "store/stored_units.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

namespace ceems::store {
namespace {

using Rows = std::vector<std::vector<StoredUnit>>;

constexpr std::size_t kFirstMap = 13;

Sql select_units(Dialect dialect,
                 std::string_view cluster_id,
                 const std::vector<std::string>& uuids) {
  Sql sql(dialect, fmt::format("SELECT id,started_at,started_at_ts,ended_at_ts,num_updates,name,"
                               "project,groupname,username,created_at,created_at_ts,allocation,"
                               "last_updated_at_ts,{},{},uuid FROM ",
                               kMapNames, kWeightsColumn));
  if (dialect == Dialect::kSqlite) {
    return sql.add("units WHERE cluster_id = ").value(cluster_id).add(" AND uuid IN ").list(uuids);
  }
  // With IN, PostgreSQL reads all units of the cluster while the table has no statistics. OFFSET
  // keeps it from making another join of this one, where each id is looked up in the index.
  sql.add("(VALUES ");
  for (std::size_t i = 0; i < uuids.size(); ++i) {
    sql.add(i == 0 ? "(" : ",(").value(uuids[i]).add(")");
  }
  sql.add(") AS wanted(one) CROSS JOIN LATERAL (SELECT * FROM units WHERE cluster_id = ");
  return sql.value(cluster_id).add(" AND uuid = wanted.one OFFSET 0) AS found");
}

StoredUnit stored_unit(const AnswerRow& row) {
  StoredUnit unit;
  unit.id = row.integer(0);
  unit.started_at = row.text(1);
  unit.started_at_ts = row.integer(2);
  unit.ended_at_ts = row.integer(3);
  unit.num_updates = row.integer(4);
  unit.name = row.text(5);
  unit.project = row.text(6);
  unit.groupname = row.text(7);
  unit.username = row.text(8);
  unit.created_at = row.text(9);
  unit.created_at_ts = row.integer(10);
  unit.allocation = row.text(11);
  unit.last_updated_at_ts = row.integer(12);
  for (std::size_t m = 0; m < unit.maps.size(); ++m) {
    unit.maps[m] = row.text(kFirstMap + m);
  }
  return unit;
}

/// Is it stored as it is by every data base? Then its row can be told by it.
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
      auto done = session.run(
          select_units(session.dialect(), cluster_id, {std::string(uuids[i])}),
          [&rows, i](std::size_t, const AnswerRow& row) { rows[i].push_back(stored_unit(row)); });
      if (!done) {
        return fail(std::move(done).error());
      }
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
  auto done = session.run(select_units(session.dialect(), cluster_id, together),
                          [&](std::size_t, const AnswerRow& row) {
                            const auto found = places.find(row.text(kFirstMap + MapTexts().size()));
                            if (found == places.end()) {
                              return;
                            }
                            for (const std::size_t place : found->second) {
                              rows[place].push_back(stored_unit(row));
                            }
                          });
  if (!done) {
    return fail(std::move(done).error());
  }
  return rows;
}

}  // namespace ceems::store
