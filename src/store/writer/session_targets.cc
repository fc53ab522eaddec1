#include "store/writer/session_targets.h"

#include <optional>

#include "base/utf8.h"
#include "store/schema/ended_tables.h"

namespace ceems::store {

Result<> SessionTargets::set(const std::vector<std::string>& names) {
  session_->set_leaves_usage(true);
  return in_transaction(*session_, [&]() -> Result<> {
    for (const std::string& name : names) {
      Sql add = sql("INSERT INTO ceems_export_targets (name, position) SELECT ");
      add.value(clean_text(name));
      add.add(", coalesce(" + last_place_text() +
              ", 0) WHERE NOT EXISTS (SELECT 1 FROM ceems_export_targets WHERE name = ");
      CEEMS_TRY(session_->run(add.value(clean_text(name)).add(")"), {}));
    }
    std::vector<std::string> kept;
    kept.reserve(names.size());
    for (const std::string& name : names) {
      kept.push_back(clean_text(name));
    }
    Sql others = sql("DELETE FROM ceems_export_targets");
    if (!kept.empty()) {
      others.add(" WHERE name NOT IN ").list(kept);
    }
    CEEMS_TRY(session_->run(others, {}));
    return session_->run(
        sql("DELETE FROM ceems_ended_units WHERE NOT EXISTS (SELECT 1 FROM ceems_export_targets"
            " WHERE position < seq)"),
        {});
  });
}

Result<std::int64_t> SessionTargets::position(const std::string& name) {
  std::optional<std::int64_t> place;
  CEEMS_TRY(session_->begin());  // fails where another program leads
  const auto done = session_->run(
      sql("SELECT position FROM ceems_export_targets WHERE name = ").value(clean_text(name)),
      [&place](std::size_t, const AnswerRow& row) { place = row.integer(0); });
  session_->roll_back();
  if (!done) {
    return fail(done.error());
  }
  return place ? Result<std::int64_t>(*place)
               : fail(ErrorCode::kNotFound, "unknown target {}", name);
}

Result<> SessionTargets::advance(const std::string& name, std::int64_t place) {
  session_->set_leaves_usage(true);
  return in_transaction(*session_, [&]() -> Result<> {
    Sql move = sql("UPDATE ceems_export_targets SET position = ");
    move.value(place).add(" WHERE name = ").value(clean_text(name)).add(" AND position < ");
    CEEMS_TRY(session_->run(move.value(place), {}));
    return session_->run(sql("DELETE FROM ceems_ended_units WHERE seq <= (SELECT min(position)"
                             " FROM ceems_export_targets)"),
                         {});
  });
}

}  // namespace ceems::store
