#include "store/facts/fill.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/log.h"
#include "base/strings.h"
#include "model/unit.h"
#include "store/facts/rows.h"

namespace ceems::store {
namespace {

struct Todo {
  std::int64_t first = 0, last = 0;  ///< ids of units
};

Result<std::optional<Todo>> next_todo(Session& session) {
  std::optional<Todo> todo;
  CEEMS_TRY(session.run(Sql(session.dialect(),
                            "SELECT first_id, last_id FROM ceems_facts_todo"
                            " ORDER BY last_id DESC LIMIT 1"),
                        [&todo](std::size_t, const AnswerRow& row) {
                          todo = Todo{.first = row.integer(0), .last = row.integer(1)};
                        }));
  return todo;
}

}  // namespace

Result<std::int64_t> units_without_facts(Session& session) {
  std::int64_t units = 0;
  auto done = session.run(Sql(session.dialect(), "SELECT first_id, last_id FROM ceems_facts_todo"),
                          [&units](std::size_t, const AnswerRow& row) {
                            units += row.integer(1) - row.integer(0) + 1;
                          });
  return done ? Result<std::int64_t>(units) : fail(std::move(done).error());
}

Result<std::int64_t> fill_some_facts(Session& session, std::int64_t units) {
  CEEMS_TRY(todo, next_todo(session));
  if (!todo) {
    return 0;
  }
  const auto [first, last] = *todo;
  std::vector<std::vector<WriterCall>> groups;
  std::vector<std::string> ids;
  std::int64_t least = last + 1;
  std::int64_t seen = 0;
  const std::string columns = fact_source_columns();
  const auto id_column = static_cast<std::size_t>(std::ranges::count(columns, ',')) + 1;
  Sql select(session.dialect(), fmt::format("SELECT {},id FROM units WHERE id BETWEEN ", columns));
  select.value(first).add(" AND ").value(last).add(" ORDER BY id DESC LIMIT ").value(units);
  auto done = session.run(select, [&](std::size_t, const AnswerRow& row) {
    model::Unit unit;
    std::array<std::string, model::kMetricCount + 1> maps;
    const FactSource source = make_source(row, unit, maps);
    groups.push_back({put_facts(source)});
    ids.push_back(unit.uuid);
    least = row.integer(id_column);
    ++seen;
  });
  if (!done) {
    return fail(std::move(done).error());
  }
  CEEMS_TRY(refused, session.run_groups(groups));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (const auto& error = refused[i]; error) {
      log::error("the database refused the facts of a unit",
                 {{"uuid", printable(ids[i])}, {"err", error->message}});
    }
  }
  const std::int64_t left = seen < units ? first - 1 : least - 1;
  Sql next(session.dialect(), "");
  if (left < first) {
    next.add("DELETE FROM ceems_facts_todo WHERE first_id = ").value(first);
  } else {
    next.add("UPDATE ceems_facts_todo SET last_id = ").value(left);
    next.add(" WHERE first_id = ").value(first);
  }
  done = session.run(next, {});
  if (!done) {
    return fail(std::move(done).error());
  }
  return std::max<std::int64_t>(last - left, 1);
}

}  // namespace ceems::store
