#include "store/sql/upgrading.h"

#include <filesystem>

#include "store/sqlite/schema.h"
#include "store/test_database.h"

namespace ceems::store::sqlite {
namespace {

constexpr std::int64_t kGigabyte = 1'000'000'000;

/// A database of the reference with one unit of ada, whose project has ada and bob. Another program
/// holds it, so that its upgrade cannot end before release().
class UpgradingTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto connection = Connection::open(file(), OpenMode::kReadWrite).value();
    ASSERT_TRUE(create_reference_schema(connection, 9));
    ASSERT_TRUE(connection.execute(
        "PRAGMA journal_mode = WAL;"
        "INSERT INTO units (cluster_id,uuid,project,username,started_at,created_at_ts,"
        "started_at_ts,ended_at_ts,ignore,last_updated_at)"
        " VALUES ('hpc','7','fluids','ada','x',1,2,0,0,'2025-12-31T23:00:00');"
        "INSERT INTO projects (cluster_id,name,users) VALUES ('hpc','fluids','[\"ada\",\"bob\"]');"
        "INSERT INTO admin_users (name,tags) VALUES ('root','[\"ceems\"]')"));
    holder_ = std::make_unique<Connection>(std::move(connection));
    ASSERT_TRUE(holder_->execute("BEGIN IMMEDIATE"));
  }
  void release() {
    ASSERT_TRUE(holder_->execute("ROLLBACK"));
    holder_.reset();
  }
  [[nodiscard]] std::string file() const { return (dir_.path() / "ceems.db").string(); }
  Result<std::unique_ptr<Database>> open() {
    return store::open_database(
        {.directory = dir_.path().string(),
         .time_zone = "UTC",
         .upgrade_in_use_above = 0,
         .on_upgrade_failed = [this](const Error& error) { failure_ = error; }},
        clock_);
  }

  testing::TempDir dir_;
  testing::FakeClock clock_;
  std::unique_ptr<Connection> holder_;
  std::optional<Error> failure_;
};

TEST_F(UpgradingTest, WhoMaySeeWhatIsAnsweredMeanwhileAndTheRestLater) {
  auto database = open();
  ASSERT_TRUE(database) << database.error().message;
  Reader& reader = (*database)->reader();
  Writer& writer = (*database)->writer();
  EXPECT_TRUE(reader.ping());
  EXPECT_TRUE(*reader.is_admin("root"));
  EXPECT_TRUE(reader.led_projects("ada")->empty());
  EXPECT_EQ(*reader.count_member_units({.names = {"bob"}}, {"hpc"}, {"7"}), 1U);
  EXPECT_EQ(*reader.count_member_units({.names = {"eve"}}, {"hpc"}, {"7"}), 0U);
  EXPECT_TRUE(reader.unit_lives({.names = {"bob"}}, "hpc", {"7"})->at(0).in_scope);
  EXPECT_EQ(column(reader.clusters(), 0), Texts{"hpc"});
  UnitQuery mine;
  mine.owners.names = {"ada"};
  const std::vector<std::size_t> uuid{2};
  for (const Error& error :
       {reader.units(mine, uuid).error(), reader.stats({}, std::nullopt).error(),
        reader.usage({}, uuid).error(), reader.current_usage({}).error(),
        reader.flavors("hpc").error(), writer.lead().error(), writer.watermark("hpc").error(),
        writer.write(update(kNow, kNow + 1, {})).error()}) {
    EXPECT_EQ(error.code, ErrorCode::kUnavailable);
    EXPECT_EQ(error.message, "the database is being upgraded");
  }
  const std::uint64_t generation = reader.generation();
  release();
  EXPECT_TRUE((*database)->wait_until_ready({}));
  EXPECT_FALSE(failure_);
  EXPECT_EQ(column(reader.units(mine, uuid), 0), Texts{"7"});
  EXPECT_EQ(column(reader.stats({}, std::nullopt), 2), Texts{"1"});
  EXPECT_GT(reader.generation(), generation) << "answers that were cached are old";
  EXPECT_TRUE(*writer.lead());
  auto first = update(kNow, kNow + 1, {});
  first.flavors = std::vector<model::Flavor>{{.id = "small"}};
  EXPECT_TRUE(writer.write(first));
  EXPECT_EQ(reader.flavors("hpc")->size(), 1U);
}

TEST_F(UpgradingTest, AFailureIsReportedAndTheFileStaysAsItWas) {
  // In the way of the copy, and not empty.
  std::filesystem::create_directories(file() + ".v9-20260101T000000.bak.part/x");
  auto database = open();
  ASSERT_TRUE(database);
  EXPECT_FALSE((*database)->wait_until_ready({}));
  release();
  ASSERT_TRUE((*database)->close());
  ASSERT_TRUE(failure_);
  EXPECT_NE(failure_->message.find("backup before the upgrade"), std::string::npos);
  auto connection = Connection::open(file(), OpenMode::kReadOnly).value();
  EXPECT_EQ(*connection.query_text("SELECT count(*) FROM sqlite_schema WHERE name LIKE 'ceems%'"),
            "0");
}

TEST(UpgradeSpace, IsCheckedBefore) {
  EXPECT_TRUE(check_space("/data/ceems.db", 3 * kGigabyte, 3 * kGigabyte));
  const auto done = check_space("/data/ceems.db", 3 * kGigabyte, 2 * kGigabyte);
  ASSERT_FALSE(done);
  EXPECT_EQ(
      done.error().message,
      "database /data/ceems.db: an upgrade needs 3000 MB of free space in this directory, for "
      "a copy, the log and indexes; 2000 MB are free");
}

}  // namespace
}  // namespace ceems::store::sqlite
