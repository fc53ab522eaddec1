#include "store/queries/units_query.h"

#include <sqlite3.h>

#include <algorithm>
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

/// The same units with other owners: projects p0 to p19 take turns, and in each, four users.
model::Unit shared(model::Unit unit, int number) {
  unit.project = "p" + std::to_string(number % 20);
  unit.username = "u" + std::to_string(number / 20 % 4);
  return unit;
}

/// How many rows PostgreSQL reads from tables and indexes for the query.
std::int64_t rows_read(const std::string& url, const UnitQuery& query) {
  auto connection = postgres::Connector::create(url, "").value()->connect().value();
  EXPECT_TRUE(connection.execute("ANALYZE units"));
  const Sql sql = units_statement(Dialect::kPostgres, query, kFields);
  const auto plan =
      connection.query("EXPLAIN (ANALYZE, TIMING OFF, COSTS OFF) " + sql.text(), sql.values());
  EXPECT_TRUE(plan) << plan.error().message;
  std::int64_t rows = 0;
  for (int line = 0; line < plan->rows(); ++line) {
    const std::string_view text = plan->text(line, 0);
    const auto actual = text.find("(actual rows=");
    if (text.find("Scan") != std::string_view::npos && actual != std::string_view::npos) {
      rows +=
          std::stoll(std::string(text.substr(actual + std::string_view("(actual rows=").size())));
    }
  }
  return rows;
}

TEST_P(UnitsQuery, NewestFirstOfALeadReadsNoMoreThanThePage) {
  std::vector<model::Unit> units;
  for (int i = 0; i < 4 * kUnits; ++i) {
    units.push_back(shared(job(std::to_string(i), kNow - kHour, kNow + i * 10), i));
  }
  for (int i = 0; i < 40; ++i) {
    units.push_back(shared(job("r" + std::to_string(i), kNow), i));
  }
  write(update(kNow, kNow + kHour, std::move(units)));
  query_.ended = TimeRange{kNow, kNow + kHour};
  query_.running = true;
  query_.order = UnitOrder::kByEnd;
  query_.descending = true;
  query_.limit = 20;
  query_.owners.names = {"u1"};
  query_.owners.service_projects = {"p1"};
  for (int i = 0; i < 10; ++i) {
    query_.owners.led_projects.push_back({"hpc", "p" + std::to_string(i)});
  }
  for (const bool next_page : {false, true}) {
    if (next_page) {
      query_.after = UnitKey{"hpc", "1", std::to_string(kNow - kHour)};
      query_.after_ended_ms = kNow + kUnits * 10;
    }
    if (backend_ == Backend::kSqlite) {
      EXPECT_LT(work_of(file(), query_).steps, 10'000) << next_page;
    } else {
      EXPECT_LT(rows_read(url_, query_), 1000) << next_page;
    }
    const Texts page = column(db_->reader().units(query_, kFields), 1);
    ASSERT_EQ(page.size(), 20U);
    if (!next_page) {
      EXPECT_EQ(page.front(), "r9");  // the keys of those that run, from the last
    } else {
      // From p10 to p19, only units of u1.
      EXPECT_EQ(page.front(), std::to_string(kUnits - 11));
    }
  }
}

/// Every unit that a scope may see is there once, even if others may list it, too.
TEST_P(UnitsQuery, OwnersThatOverlapGiveEachUnitOnce) {
  std::vector<model::Unit> units;
  for (int i = 0; i < 160; ++i) {
    units.push_back(
        shared(job(std::to_string(i), kNow - kHour, i % 5 == 0 ? 0 : kNow + i * 10), i));
    if (i % 3 == 0) {
      units.back().username = "p1:svc";
    }
  }
  for (const std::string cluster : {"hpc", "cloud"}) {
    auto first = update(kNow, kNow + kHour, units, cluster);
    first.projects = std::vector<model::Project>{
        {.name = "p1", .users = {cluster == "hpc" ? "u1" : "u2"}}, {.name = "p2", .users = {}}};
    write(first);
  }
  query_.owners.names = {"u1", "u1"};
  query_.owners.service_projects = {"p1", "p2", "p1"};
  query_.owners.led_projects = {{"hpc", "p3"}, {"cloud", "p1"}, {"hpc", "p3"}, {"hpc", "p4"}};
  const std::vector<std::size_t> cluster_and_id{0, 2};
  const auto listed = [&] {
    std::vector<std::pair<std::string, std::string>> rows;
    auto cursor = db_->reader().units(query_, cluster_and_id).value();
    while (cursor->next().value()) {
      rows.emplace_back(cursor->text(0), cursor->text(1));
    }
    std::ranges::sort(rows);
    return rows;
  };
  for (const Texts& projects : std::vector<Texts>{{}, {"p1"}, {"p3", "p1"}, {"no"}}) {
    for (const Texts& clusters : std::vector<Texts>{{}, {"hpc"}, {"hpc", "cloud"}}) {
      query_.projects = projects;
      query_.clusters = clusters;
      std::vector<std::pair<std::string, std::string>> wanted;
      for (const std::string cluster : {"cloud", "hpc"}) {
        for (const model::Unit& unit : units) {
          const bool own = unit.username == "u1";
          const bool service = unit.username == "p1:svc" && cluster == "hpc";
          const bool led = cluster == "hpc" ? unit.project == "p3" || unit.project == "p4"
                                            : unit.project == "p1";
          const auto in = [](const Texts& list, const std::string& text) {
            return list.empty() || std::ranges::find(list, text) != list.end();
          };
          if ((own || service || led) && in(projects, unit.project) && in(clusters, cluster)) {
            wanted.emplace_back(cluster, unit.uuid);
          }
        }
      }
      std::ranges::sort(wanted);
      for (const UnitOrder order : {UnitOrder::kById, UnitOrder::kByEnd}) {
        query_.order = order;
        EXPECT_EQ(listed(), wanted) << projects.size() << clusters.size();
      }
    }
  }
  EXPECT_EQ(listed().size(), 0U);  // of a project without members
  query_.projects = {};
  EXPECT_GT(listed().size(), 50U);
}

TEST_P(UnitsQuery, ALeadOfVeryManyProjectsIsAnswered) {
  write(update(kNow, kNow + kHour,
               {shared(job("1", kNow, kNow + 1), 1), shared(job("2", kNow, kNow + 2), 2),
                shared(job("3", kNow), 19)}));
  query_.order = UnitOrder::kByEnd;
  query_.descending = true;
  for (const int projects : {15, 199, 200, 1000}) {
    query_.owners.led_projects.clear();
    for (int i = 0; i < projects; ++i) {
      query_.owners.led_projects.push_back({"hpc", "p" + std::to_string(i)});
    }
    EXPECT_EQ(column(db_->reader().units(query_, kFields), 1),
              projects < 20 ? (Texts{"2", "1"}) : (Texts{"3", "2", "1"}))
        << projects;
  }
}

/// SQLite takes a cluster or project for as selective as a user unless it is kept from it.
TEST_P(UnitsQuery, FiltersOfAdminsDoNotMakeAPageReadMore) {
  if (backend_ != Backend::kSqlite) {
    GTEST_SKIP() << "the work of SQLite is counted";
  }
  fill();
  query_.limit = 100;
  query_.owners = {.everybody = true};
  query_.clusters = {"hpc"};
  EXPECT_LT(work_of(file(), query_).steps, 10'000);
  query_.projects = {"fluids", "optics"};
  EXPECT_LT(work_of(file(), query_).steps, 10'000);
  query_.owners = {.names = {"ada", "bob"}};
  EXPECT_LT(work_of(file(), query_).steps, 10'000);
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
