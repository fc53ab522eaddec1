#include "store/queries/counted_units.h"

#include <sqlite3.h>

#include "store/queries/usage_query.h"
#include "store/test_database.h"

namespace ceems::store {
namespace {

constexpr int kCountedUnits = 4000;
constexpr int kProjects = 200;

/// A database with many units of one project, and many projects with members.
class CountedUnits : public AnyDatabase {
 protected:
  void SetUp() override {
    AnyDatabase::SetUp();
    std::vector<model::Unit> units;
    for (int i = 0; i < kCountedUnits; ++i) {
      units.push_back(job(std::to_string(i), kNow - kHour, kNow + i * 100));
    }
    units.push_back(job("r", kNow));
    auto first = update(kNow, kNow + kHour, std::move(units));
    first.projects.emplace();
    for (int i = 0; i < kProjects; ++i) {
      first.projects->push_back(
          {.name = i == 0 ? "fluids" : "p" + std::to_string(i), .users = {"ada", "bob", "cat"}});
    }
    write(first);
  }

  /// The instructions of SQLite's virtual machine that a statement takes.
  [[nodiscard]] int steps(const Sql& sql) const {
    auto connection = sqlite::Connection::open(file(), sqlite::OpenMode::kReadOnly).value();
    auto statement = connection.prepare(sql.text()).value();
    statement.bind_all(sql.values());
    while (statement.step().value()) {
    }
    return sqlite3_stmt_status(sqlite3_next_stmt(connection.handle(), nullptr),
                               SQLITE_STMTSTATUS_VM_STEP, 0);
  }
  [[nodiscard]] std::string plan(const Sql& sql) const {
    auto connection = sqlite::Connection::open(file(), sqlite::OpenMode::kReadOnly).value();
    auto statement = connection.prepare("EXPLAIN QUERY PLAN " + sql.text()).value();
    statement.bind_all(sql.values());
    std::string text;
    while (statement.step().value()) {
      text += std::string(statement.text(3)) + "\n";
    }
    return text;
  }
};

TEST_F(CountedUnits, VerifyingThreeIdsReadsNeitherOtherUnitsNorOtherProjects) {
  const Scope ada{.names = {"ada"}};
  const Sql sql = count_members_of(Dialect::kSqlite, ada, {"hpc"}, {"1", "2", "3"}, true);
  EXPECT_LT(steps(sql), 400) << plan(sql);
  EXPECT_EQ(*db_->reader().count_member_units(ada, {"hpc"}, {"1", "2", "3", "no"}), 3U);
  EXPECT_EQ(*db_->reader().count_member_units({.names = {"eve"}}, {"hpc"}, {"1"}), 0U);
}

TEST_F(CountedUnits, AllAreCountedInOneIndex) {
  for (const std::optional<TimeRange> range :
       {std::optional<TimeRange>(), std::optional(TimeRange{kNow, kNow + kHour})}) {
    const Sql sql = count_all_units(Dialect::kSqlite, {}, range);
    EXPECT_EQ(plan(sql), "SCAN units USING COVERING INDEX ceems_units_counts\n");
    EXPECT_LT(steps(sql), 40 * kCountedUnits);
  }
}

TEST_F(CountedUnits, AShortRangeReadsOnlyItsUnits) {
  const TimeRange range{kNow, kNow + 50 * 100};
  EXPECT_LT(steps(estimate_units(Dialect::kSqlite, range)), 1000);
  const Sql sql = count_few_units(Dialect::kSqlite, {}, range);
  EXPECT_LT(steps(sql), 4000) << plan(sql);
}

TEST_F(CountedUnits, UsageOfAClusterReadsOnlyWhatWasUpdatedInTheRange) {
  write(update(kNow + kHour, kNow + 2 * kHour, {job("r", kNow), job("s", kNow)}));
  CurrentUsageQuery query;
  query.updated = {kNow + kHour + 1, kNow + 2 * kHour};
  query.rows.members.everybody = true;
  for (const bool filtered : {false, true}) {
    if (filtered) {
      query.rows.clusters = {"hpc"};
      query.rows.projects = {"fluids"};
    }
    const Sql sql = usage_statement(Dialect::kSqlite, query, {.runs = {}, .rest = {query.updated}});
    EXPECT_LT(steps(sql), 400) << plan(sql);
    const auto usage = db_->reader().current_usage(query);
    ASSERT_TRUE(usage);
    ASSERT_EQ(usage->size(), 1U);
    EXPECT_EQ(usage->front().num_units, 2);
  }
  query.rows.projects = {"optics"};
  EXPECT_TRUE(db_->reader().current_usage(query)->empty());
}

TEST_F(CountedUnits, BothWaysGiveTheSameCounts) {
  for (const TimeRange range :
       {TimeRange{kNow, kNow + 50 * 100}, TimeRange{kNow, kNow + 3000 * 100}}) {
    const std::int64_t ended = (range.to_ms - range.from_ms) / 100 + 1;
    EXPECT_EQ(column(db_->reader().stats({}, range), 1), Texts{"slurm"});
    EXPECT_EQ(column(db_->reader().stats({}, range), 2), Texts{std::to_string(ended + 1)});
    EXPECT_EQ(column(db_->reader().stats({"hpc"}, range), 3), Texts{std::to_string(ended)});
    EXPECT_EQ(column(db_->reader().stats({"hpc"}, range), 4), Texts{"1"});
    EXPECT_EQ(column(db_->reader().stats({"hpc"}, range), 6), Texts{"1"});
    EXPECT_EQ(column(db_->reader().stats({"no"}, range), 6), Texts{});
  }
}

}  // namespace
}  // namespace ceems::store
