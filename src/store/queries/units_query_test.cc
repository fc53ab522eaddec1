#include "store/queries/units_query.h"

#include <sqlite3.h>

#include <utility>

#include "store/test_database.h"

namespace ceems::store {
namespace {

constexpr int kUnits = 4000;
const std::vector<std::size_t> kFields{0, 2, 8};  // the key

/// A database with many units of ada that ended one after the other, two at a time, and three that
/// run.
class UnitsQuery : public EveryDatabase {
 protected:
  void fill() {
    std::vector<model::Unit> units;
    for (int i = 0; i < kUnits; ++i) {
      units.push_back(job(std::to_string((i * 7919) % kUnits), kNow - kHour, kNow + i / 2 * 10));
    }
    for (const std::string uuid : {"r1", "r3", "r2"}) {
      units.push_back(job(uuid, kNow));
    }
    write(update(kNow, kNow + kHour, std::move(units)));
    query_.owners.names = {"ada"};
    query_.ended = TimeRange{kNow, kNow + kHour};
    query_.running = true;
    query_.order = UnitOrder::kByEnd;
    query_.descending = true;
  }

  UnitQuery query_;
};

/// What SQLite does for a query: the instructions of its virtual machine, and the rows it sorts.
struct Work {
  int steps = 0;
  int sorts = 0;
};
Work work_of(const std::string& file, const UnitQuery& query) {
  auto connection = sqlite::Connection::open(file, sqlite::OpenMode::kReadOnly).value();
  const Sql sql = units_statement(Dialect::kSqlite, query, kFields);
  auto statement = connection.prepare(sql.text()).value();
  statement.bind_all(sql.values());
  while (statement.step().value()) {
  }
  sqlite3_stmt* raw = sqlite3_next_stmt(connection.handle(), nullptr);
  return {.steps = sqlite3_stmt_status(raw, SQLITE_STMTSTATUS_VM_STEP, 0),
          .sorts = sqlite3_stmt_status(raw, SQLITE_STMTSTATUS_SORT, 0)};
}

TEST_P(UnitsQuery, NewestFirstReadsNoMoreThanThePage) {
  if (backend_ != Backend::kSqlite) {
    GTEST_SKIP() << "the work of SQLite is counted";
  }
  fill();
  query_.limit = 100;
  UnitQuery by_id = query_;
  by_id.order = UnitOrder::kById;
  by_id.descending = false;
  EXPECT_GT(work_of(file(), by_id).steps, 10 * kUnits);
  for (const bool everybody : {false, true}) {
    query_.owners = everybody ? Scope{.everybody = true} : Scope{.names = {"ada"}};
    query_.after.reset();
    EXPECT_LT(work_of(file(), query_).steps, 10'000) << everybody;
    // A page in the middle costs no more.
    query_.after = UnitKey{"hpc", "1", std::to_string(kNow - kHour)};
    query_.after_ended_ms = kNow + kUnits / 4 * 10;
    EXPECT_LT(work_of(file(), query_).steps, 10'000) << everybody;
  }
}

TEST_P(UnitsQuery, PagesByEndFollowOneAnotherBothWays) {
  fill();
  for (const bool descending : {true, false}) {
    query_.descending = descending;
    query_.limit = 0;
    query_.after.reset();
    const Texts whole = column(db_->reader().units(query_, kFields), 1);
    ASSERT_EQ(whole.size(), kUnits + 3U);
    EXPECT_EQ(descending ? Texts(whole.begin(), whole.begin() + 3)
                         : Texts(whole.rbegin(), whole.rbegin() + 3),
              (Texts{"r3", "r2", "r1"}));
    query_.limit = 1001;
    Texts paged;
    while (paged.size() < whole.size()) {
      auto cursor = db_->reader().units(query_, std::vector<std::size_t>{0, 2, 8, 12}).value();
      const std::size_t before = paged.size();
      while (cursor->next().value()) {
        paged.emplace_back(cursor->text(1));
        query_.after = UnitKey{std::string(cursor->text(0)), std::string(cursor->text(1)),
                               std::string(cursor->text(2))};
        query_.after_ended_ms = cursor->integer(3);
      }
      ASSERT_GT(paged.size(), before);
    }
    EXPECT_EQ(paged, whole) << descending;
  }
}

TEST_P(UnitsQuery, UnitsByIdAreReversedByDescending) {
  write(update(kNow, kNow + kHour, {job("a", kNow), job("b", kNow), job("c", kNow)}));
  query_.owners.everybody = true;
  query_.descending = true;
  EXPECT_EQ(column(db_->reader().units(query_, kFields), 1), (Texts{"c", "b", "a"}));
  query_.after = UnitKey{"hpc", "b", std::to_string(kNow)};
  EXPECT_EQ(column(db_->reader().units(query_, kFields), 1), (Texts{"a"}));
}

INSTANTIATE_TEST_SUITE_P(,
                         UnitsQuery,
                         ::testing::Values(Backend::kSqlite, Backend::kPostgres),
                         backend_name);

}  // namespace
}  // namespace ceems::store
