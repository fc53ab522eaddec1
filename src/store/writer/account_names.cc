#include "store/writer/account_names.h"

#include <array>
#include <set>
#include <string_view>

namespace ceems::store {
namespace {

struct Kind {
  std::string_view name;    ///< in ceems_names
  std::string_view column;  ///< of usage
  model::NamesOfKind model::AccountNames::* names;
};
constexpr std::size_t kRowsAtOnce = 256;

constexpr std::array<Kind, 2> kKinds{{
    {.name = "user", .column = "username", .names = &model::AccountNames::users},
    {.name = "project", .column = "project", .names = &model::AccountNames::projects},
}};

/// Whether every database can store the text and look it up in an index.
bool is_storable(const std::string& text) {
  constexpr std::size_t kMaxBytes = 1024;
  return !text.empty() && text.size() <= kMaxBytes && text.find('\0') == std::string::npos;
}

Result<> read_kind(Session& session,
                   const std::string& cluster_id,
                   const Kind& kind,
                   model::NamesOfKind& names) {
  Sql given(session.dialect(), "SELECT id, name FROM ceems_names WHERE cluster_id = ");
  given.value(cluster_id).add(" AND kind = ").value(kind.name);
  CEEMS_TRY(session.run(given, [&names](std::size_t, const AnswerRow& row) {
    names.by_id.emplace(row.text(0), row.text(1));
  }));
  Sql used(session.dialect(), fmt::format("SELECT DISTINCT {0} FROM usage WHERE {0} <> ''"
                                          " AND {0} NOT IN (SELECT name FROM ceems_names WHERE"
                                          " cluster_id = ",
                                          kind.column));
  used.value(cluster_id).add(" AND kind = ").value(kind.name).add(") AND cluster_id = ");
  used.value(cluster_id);
  return session.run(
      used, [&names](std::size_t, const AnswerRow& row) { names.without_id.emplace(row.text(0)); });
}

/// Those that were updated in the last two days before the newest window.
Result<> read_units_without_owner(Session& session,
                                  const std::string& cluster_id,
                                  std::set<std::pair<std::string, std::int64_t>>& units) {
  constexpr std::string_view kWithin = "172800000";
  Sql sql(session.dialect(), "SELECT uuid, started_at_ts FROM units WHERE cluster_id = ");
  sql.value(cluster_id).add(" AND ended_at_ts > 0 AND last_updated_at_ts > (SELECT max(");
  sql.add("last_updated_at_ts) FROM units) - ").add(kWithin);
  sql.add(R"( AND allocation LIKE '%"stand_ins":[%"owner"]%' LIMIT 10000)");
  return session.run(sql, [&units](std::size_t, const AnswerRow& row) {
    units.emplace(row.text(0), row.integer(1));
  });
}

Result<> add_kind(Session& session,
                  const std::string& cluster_id,
                  const Kind& kind,
                  const model::NamesOfKind& names) {
  std::size_t refused = 0;
  auto next = names.by_id.begin();
  while (next != names.by_id.end()) {
    Sql insert(session.dialect(), "INSERT INTO ceems_names (cluster_id, kind, id, name) VALUES ");
    std::size_t rows = 0;
    for (; next != names.by_id.end() && rows < kRowsAtOnce; ++next) {
      if (is_storable(next->first) && is_storable(next->second)) {
        insert.add(rows++ == 0 ? "(" : ",(").value(cluster_id).add(",").value(kind.name);
        insert.add(",").value(next->first).add(",").value(next->second).add(")");
      }
    }
    if (rows == 0) {
      break;
    }
    refused += rows;
    CEEMS_TRY(session.run(insert.add(" ON CONFLICT DO NOTHING RETURNING 1"),
                          [&refused](std::size_t, const AnswerRow&) { --refused; }));
  }
  if (refused > 0) {
    return fail(ErrorCode::kUnavailable, "{} names of {}s have been given by another program",
                refused, kind.name);
  }
  return {};
}

}  // namespace

Result<model::AccountNames> read_account_names(Session& session, const std::string& cluster_id) {
  model::AccountNames names;
  for (const Kind& kind : kKinds) {
    CEEMS_TRY_IN("reading names of accounts",
                 read_kind(session, cluster_id, kind, names.*kind.names));
  }
  CEEMS_TRY_IN("reading units without owner",
               read_units_without_owner(session, cluster_id, names.without_owner));
  return names;
}

Result<> add_account_names(Session& session,
                           const std::string& cluster_id,
                           const model::AccountNames& names) {
  for (const Kind& kind : kKinds) {
    CEEMS_TRY(add_kind(session, cluster_id, kind, names.*kind.names));
  }
  return {};
}

}  // namespace ceems::store
