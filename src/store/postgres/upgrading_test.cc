#include "store/factory/open_database.h"
#include "store/postgres/connection.h"
#include "store/schema/tables.h"
#include "store/test_database.h"

namespace ceems::store::postgres {
namespace {

/// A database of version 3 with one unit of ada, whose project has ada and bob. Another program
/// writes to the table of units, so that the upgrade, which makes an index, cannot end before
/// release().
class PgUpgradingTest : public AnyDatabase {
 protected:
  PgUpgradingTest() : AnyDatabase(Backend::kPostgres) {}

  void SetUp() override {
    AnyDatabase::SetUp();
    if (IsSkipped()) {
      return;
    }
    auto first = update(kNow, kNow + kMinute, {job("7", kNow)});
    first.projects = std::vector<model::Project>{{.name = "fluids", .users = {"ada", "bob"}}};
    write(first);
    ASSERT_TRUE(db_->writer().write_admins("ceems", {"root"}));
    db_.reset();
    std::string sql =
        "DROP TABLE ceems_project_leads; DROP TABLE ceems_names; DROP INDEX ceems_units_counts;"
        "DROP TABLE ceems_unit_facts; DROP TABLE ceems_facts_todo;"
        "DROP TABLE ceems_unit_reports; DROP TABLE ceems_findings;"
        "DROP TABLE ceems_outbox; DROP TABLE ceems_contacts;"
        "DROP TABLE ceems_nodes; DROP TABLE ceems_node_days; DROP TABLE ceems_node_progress;"
        "DROP TABLE ceems_bills; DROP TABLE ceems_flavors; DROP TABLE ceems_members; DROP TABLE "
        "ceems_tokens; DROP TABLE ceems_feedback; DROP TABLE ceems_node_effects;"
        "DROP TABLE ceems_ended_units; DROP TABLE ceems_export_targets;"
        "ALTER TABLE ceems_unit_sums DROP weight_avg_custom_stats;"
        "UPDATE schema_migrations SET version = 9; UPDATE ceems_schema SET version = 3;";
    for (const char* table : {"units", "usage", "daily_usage", "ceems_unit_sums"}) {
      for (const char* kind : {"total", "avg", "min", "max"}) {
        sql += fmt::format("ALTER TABLE {} DROP {}_custom_stats;", table, kind);
      }
    }
    execute(sql);
    holder_.emplace(Connector::create(url_, "").value()->connect().value());
    ASSERT_TRUE(holder_->execute("BEGIN; LOCK TABLE units IN ROW EXCLUSIVE MODE"));
  }
  void release() { ASSERT_TRUE(holder_->execute("ROLLBACK")); }
  Result<std::unique_ptr<Database>> open_in_use(std::int64_t above = 0) {
    return store::open_database(
        {.time_zone = "UTC",
         .url = url_,
         .upgrade_in_use_above = above,
         .on_upgrade_failed = [this](const Error& error) { failure_ = error; }},
        clock_);
  }
  [[nodiscard]] std::string version() const { return text("SELECT version FROM ceems_schema"); }
  [[nodiscard]] std::string waiting() const {
    return text(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        " AND wait_event_type = 'Lock'");
  }
  void wait_for(const std::string& sessions) const {
    ASSERT_TRUE(testing::eventually([&] { return waiting() == sessions; })) << waiting();
  }

  std::optional<Connection> holder_;
  std::optional<Error> failure_;
  const std::vector<std::size_t> uuid_{2};
};

TEST_F(PgUpgradingTest, WhoMaySeeWhatIsAnsweredMeanwhileAndTheRestLater) {
  auto database = open_in_use();
  ASSERT_TRUE(database) << database.error().message;
  wait_for("1");
  EXPECT_EQ(version(), "5");
  Reader& reader = (*database)->reader();
  Writer& writer = (*database)->writer();
  EXPECT_TRUE(reader.ping());
  EXPECT_TRUE(*reader.is_admin("root"));
  EXPECT_EQ(*reader.count_member_units({.names = {"bob"}}, {"hpc"}, {"7"}), 1U);
  EXPECT_EQ(*reader.count_member_units({.names = {"eve"}}, {"hpc"}, {"7"}), 0U);
  EXPECT_TRUE(reader.unit_lives({.names = {"bob"}}, "hpc", {"7"})->at(0).in_scope);
  EXPECT_EQ(column(reader.projects({.members = {.names = {"bob"}}}), 3), Texts{"fluids"});
  UnitQuery mine;
  mine.owners.names = {"ada"};
  for (const Error& error :
       {reader.units(mine, uuid_).error(), reader.stats({}, std::nullopt).error(),
        reader.usage({}, uuid_).error(), reader.current_usage({}).error(), writer.lead().error(),
        writer.write(update(kNow + kMinute, kNow + kHour, {})).error()}) {
    EXPECT_EQ(error.code, ErrorCode::kUnavailable);
    EXPECT_EQ(error.message, "the database is being upgraded");
  }
  release();
  EXPECT_TRUE((*database)->wait_until_ready({}));
  EXPECT_FALSE(failure_);
  EXPECT_EQ(version(), std::to_string(kOwnVersion));
  EXPECT_EQ(text("SELECT count(*) FROM pg_indexes WHERE indexname = 'ceems_units_counts'"), "1");
  EXPECT_EQ(text("SELECT version FROM schema_migrations"), "10");
  EXPECT_EQ(text("SELECT min_custom_stats FROM units"), "{}");
  EXPECT_EQ(column(reader.units(mine, uuid_), 0), Texts{"7"});
  EXPECT_EQ(column(reader.stats({}, std::nullopt), 2), Texts{"1"});
  EXPECT_TRUE(*writer.lead());
  EXPECT_TRUE(writer.write(update(kNow + kMinute, kNow + kHour, {})));
}

TEST_F(PgUpgradingTest, AFailureIsReportedAndLeavesTheOldTablesInUse) {
  release();
  execute("UPDATE ceems_schema SET version = 2");  // what version 3 adds is in the way
  auto database = open_in_use();
  ASSERT_TRUE(database);
  EXPECT_FALSE((*database)->wait_until_ready({}));
  EXPECT_EQ(version(), "2");
  EXPECT_TRUE(*(*database)->reader().is_admin("root"));
  // Version 4 has the table of leads.
  const auto led = (*database)->reader().led_projects("ada");
  ASSERT_TRUE(led) << led.error().message;
  EXPECT_TRUE(led->empty());
  ASSERT_TRUE(failure_);
  EXPECT_NE(failure_->message.find("upgrading to schema version 3"), std::string::npos)
      << failure_->message;
}

TEST_F(PgUpgradingTest, SeveralProgramsUpgradeOnceAndAllGoOn) {
  auto one = open_in_use();
  ASSERT_TRUE(one);
  wait_for("1");
  auto other = open_in_use();
  ASSERT_TRUE(other);
  wait_for("2");
  EXPECT_TRUE(*(*other)->reader().is_admin("root"));
  release();
  EXPECT_TRUE((*one)->wait_until_ready({}));
  EXPECT_TRUE((*other)->wait_until_ready({}));
  EXPECT_FALSE(failure_);
  EXPECT_EQ(text("SELECT count(*) FROM ceems_schema"), "1");
}

TEST_F(PgUpgradingTest, AStopInterruptsItAndTheNextStartContinues) {
  {
    auto stopped = open_in_use();
    ASSERT_TRUE(stopped);
    wait_for("1");
    ASSERT_TRUE((*stopped)->close());
    auto destroyed = open_in_use();
    ASSERT_TRUE(destroyed);
    wait_for("1");
  }
  EXPECT_EQ(waiting(), "0");
  EXPECT_FALSE(failure_);
  EXPECT_EQ(version(), "5");  // what was finished stays
  release();
  auto database = open_in_use();
  ASSERT_TRUE(database);
  EXPECT_TRUE((*database)->wait_until_ready({}));
  EXPECT_EQ(version(), std::to_string(kOwnVersion));
}

TEST_F(PgUpgradingTest, ASmallDatabaseIsUpgradedBeforeItIsOpened) {
  release();
  const auto database = open_in_use(std::int64_t{1} << 30U);
  ASSERT_TRUE(database);
  EXPECT_EQ(version(), std::to_string(kOwnVersion));
  EXPECT_TRUE(*(*database)->writer().lead());
}

}  // namespace
}  // namespace ceems::store::postgres
