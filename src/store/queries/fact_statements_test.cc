#include "store/queries/fact_statements.h"

#include <sqlite3.h>

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "store/test_database.h"

namespace ceems::store {
namespace {

constexpr int kManyUnits = 4000;

class FactsByIds : public AnyDatabase {
 protected:
  /// Many units of ada, all tasks of one array; the first ones are the oldest.
  void SetUp() override {
    AnyDatabase::SetUp();
    std::vector<model::Unit> units;
    for (int i = 0; i < kManyUnits; ++i) {
      model::Unit unit = job(std::to_string(100'000 + i), kNow - kHour, kNow - kHour + 1 + i);
      unit.allocation = fmt::format(R"({{"array_job":7100,"array_task":{}}})", i);
      units.push_back(std::move(unit));
    }
    write(update(kNow - kHour, kNow, std::move(units)));
  }

  /// The ids that a statement finds; the instructions of SQLite's virtual machine that it takes.
  static std::pair<Texts, int> found(const std::string& file, const FactListQuery& query) {
    auto connection = sqlite::Connection::open(file, sqlite::OpenMode::kReadOnly).value();
    const Sql sql = facts_statement(Dialect::kSqlite, query);
    auto statement = connection.prepare(sql.text()).value();
    statement.bind_all(sql.values());
    Texts ids;
    while (statement.step().value()) {
      ids.emplace_back(statement.text(0));
    }
    return {ids, sqlite3_stmt_status(sqlite3_next_stmt(connection.handle(), nullptr),
                                     SQLITE_STMTSTATUS_VM_STEP, 0)};
  }
};

TEST_F(FactsByIds, AreReadByTheirIndexHoweverManyAnOwnerHas) {
  for (const Scope& owners :
       {Scope{.everybody = true}, Scope{.names = {"ada"}},
        Scope{.names = {"ada"}, .led_projects = {{.cluster_id = "hpc", .project = "fluids"}}},
        Scope{.names = {"ada"}, .service_projects = {"fluids"}}}) {
    FactListQuery query{.filter = {.owners = owners}, .columns = {Fact::kUuid}, .limit = 64};
    query.filter.uuids = {"100000", "7"};
    auto [ids, steps] = found(file(), query);
    EXPECT_EQ(ids, Texts{"100000"});
    EXPECT_LT(steps, 1000);
    query.filter.ended = TimeRange{kNow - kHour, kNow};
    query.filter.running = true;
    std::tie(ids, steps) = found(file(), query);
    EXPECT_EQ(ids, Texts{"100000"});
    EXPECT_LT(steps, 1000);
    query.filter.ended.reset();
    query.filter.uuids.clear();
    query.filter.array_prefix = "7100_3999";
    std::tie(ids, steps) = found(file(), query);
    EXPECT_EQ(ids, Texts{"103999"});
    EXPECT_LT(steps, 1000);
    // 111 tasks begin with 12; the one with this id comes first, although it is the oldest.
    query.filter.array_prefix = "7100_12";
    query.sort = Fact::kArray;
    query.descending = false;
    query.limit = 3;
    std::tie(ids, steps) = found(file(), query);
    EXPECT_EQ(ids, (Texts{"100012", "100120", "101200"}));
    EXPECT_LT(steps, 20'000);
  }
  FactListQuery query{.filter = {.owners = {.names = {"eve"}}}, .columns = {Fact::kUuid}};
  query.filter.uuids = {"100000"};
  EXPECT_EQ(found(file(), query).first, Texts{});
  query.filter.uuids.clear();
  query.filter.array_prefix = "7100_";
  EXPECT_EQ(found(file(), query).first, Texts{});
}

/// Many units of ada and, of the same project, a few older ones of bob.
class FactsOfUsers : public FactsByIds {
 protected:
  void SetUp() override {
    FactsByIds::SetUp();
    std::vector<model::Unit> units;
    for (int i = 0; i < 3; ++i) {
      model::Unit unit = job(fmt::format("{}", 7 + i), kNow - 2 * kHour, kNow - 2 * kHour + 1 + i);
      unit.username = "bob";
      units.push_back(std::move(unit));
    }
    write(update(kNow, kNow + kHour, std::move(units)));
  }
};

TEST_F(FactsOfUsers, AreReadByTheirIndexForAllWhoMaySeeThem) {
  const Scope lead{.names = {"ada"}, .led_projects = {{.cluster_id = "hpc", .project = "fluids"}}};
  for (const Scope& owners : {Scope{.everybody = true}, Scope{.names = {"bob"}}, lead}) {
    FactListQuery query{.filter = {.owners = owners}, .columns = {Fact::kUuid}, .limit = 2};
    query.filter.users = {"bob"};
    query.filter.words = {"flu"};
    const auto [ids, steps] = found(file(), query);
    EXPECT_EQ(ids, (Texts{"9", "8"}));
    EXPECT_LT(steps, 1000);
  }
  for (const Scope& owners :
       {Scope{.names = {"ada"}}, Scope{.names = {"eve"}},
        Scope{.names = {"ada"}, .led_projects = {{.cluster_id = "hpc", .project = "waves"}}}}) {
    FactListQuery query{.filter = {.owners = owners}, .columns = {Fact::kUuid}};
    query.filter.users = {"bob"};
    EXPECT_EQ(found(file(), query).first, Texts{});
  }
}

}  // namespace
}  // namespace ceems::store
