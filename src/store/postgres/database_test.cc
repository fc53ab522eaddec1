#include "store/postgres/database.h"

#include <thread>

#include "store/factory/open_database.h"
#include "store/schema/tables.h"
#include "store/test_database.h"

namespace ceems::store::postgres {
namespace {

class PgDatabaseTest : public AnyDatabase {
 protected:
  PgDatabaseTest() : AnyDatabase(Backend::kPostgres) {}

  /// Ends the sessions of other programs that hold the advisory lock, or all.
  void terminate(std::string_view which = "true") const {
    const std::string ended =
        text(fmt::format("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE"
                         " application_name = 'ceems_api_server' AND datname = current_database()"
                         " AND pid <> pg_backend_pid() AND {}",
                         which));
    EXPECT_EQ(ended.find("ERROR"), std::string::npos);
  }
  void terminate_leader() const {
    terminate("pid IN (SELECT pid FROM pg_locks WHERE locktype = 'advisory')");
  }
};

TEST_F(PgDatabaseTest, TablesHaveTheColumnsOfTheReference) {
  const auto columns = [this](std::string_view table) {
    return text(
        fmt::format("SELECT column_name FROM information_schema.columns WHERE table_name ="
                    " '{}' AND column_name NOT LIKE 'total_%' AND column_name NOT LIKE"
                    " 'avg_%' AND column_name NOT LIKE 'last_%' ORDER BY 1",
                    table));
  };
  EXPECT_EQ(columns("units"),
            "allocation ceems_weights cluster_id created_at created_at_ts elapsed ended_at "
            "ended_at_ts groupname "
            "id ignore max_custom_stats min_custom_stats name num_updates project resource_manager "
            "started_at started_at_ts state "
            "tags username uuid");
  EXPECT_EQ(columns("usage"),
            "ceems_weights cluster_id groupname id max_custom_stats min_custom_stats num_units "
            "num_updates project resource_manager username");
  EXPECT_EQ(columns("daily_usage"), columns("usage"));
  EXPECT_EQ(columns("users"), "cluster_id id name projects resource_manager tags uid");
  EXPECT_EQ(columns("projects"), "cluster_id id name resource_manager tags uid users");
  EXPECT_EQ(columns("admin_users"), columns("users"));
  EXPECT_EQ(text("SELECT version||' '||dirty FROM schema_migrations"), "10 false");
  EXPECT_EQ(text("SELECT version FROM ceems_schema"), std::to_string(kOwnVersion));
}

TEST_F(PgDatabaseTest, ProgramsThatStartTogetherMakeTheTablesOnce) {
  execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public");
  db_.reset();
  {
    std::vector<std::jthread> programs;
    for (int i = 0; i < 4; ++i) {
      programs.emplace_back([this] {
        const auto opened = another();
        EXPECT_TRUE(opened) << opened.error().message;
      });
    }
  }
  EXPECT_EQ(text("SELECT count(*) FROM ceems_schema"), "1");
  EXPECT_EQ(text("SELECT count(*) FROM ceems_leader"), "1");
}

TEST_F(PgDatabaseTest, DataBasesOfOthersAndOfNewerVersionsAreRefused) {
  db_.reset();
  execute("UPDATE ceems_schema SET version = 99");
  auto opened = another();
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(opened.error().message.find("newer version"), std::string::npos);
  execute("DROP TABLE ceems_schema");
  opened = another();
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().message.find("not a database of this program"), std::string::npos);
}

TEST_F(PgDatabaseTest, OneOfSeveralProgramsLeadsAndAnotherTakesOver) {
  auto other = another().value();
  EXPECT_EQ(db_->writer().lead().value(), true);
  EXPECT_EQ(other->writer().lead().value(), false);
  write(kNow, kNow + kMinute, {job("1", kNow)});
  // A program that does not lead cannot write.
  const auto refused = other->writer().write(update(kNow + kMinute, kNow + 2 * kMinute, {}));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUnavailable);
  EXPECT_FALSE(other->writer().purge(kNow));
  EXPECT_FALSE(other->writer().write_admins("ceems", {"root"}));
  // The leader shuts down.
  db_.reset();
  EXPECT_TRUE(testing::eventually([&] { return other->writer().lead().value_or(false); }));
  EXPECT_EQ(other->writer().watermark("hpc").value(), kNow + kMinute);
  EXPECT_TRUE(other->writer().write(update(kNow + kMinute, kNow + 2 * kMinute, {})));
}

TEST_F(PgDatabaseTest, ALeaderThatLostItsLockCannotWriteAfterAnotherHasIt) {
  auto other = another().value();
  ASSERT_TRUE(db_->writer().lead().value());
  write(kNow, kNow + kMinute, {job("1", kNow)});
  terminate_leader();
  // The other one asks first. The former leader must not write, whether it has noticed or not.
  ASSERT_TRUE(testing::eventually([&] {
    terminate_leader();
    return other->writer().lead().value_or(false);
  }));
  const auto refused = db_->writer().write(update(kNow + kMinute, kNow + 2 * kMinute, {}));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(db_->writer().lead().value(), false);
  EXPECT_TRUE(other->writer().write(update(kNow + kMinute, kNow + 2 * kMinute, {job("2", kNow)})));
  EXPECT_EQ(text("SELECT num_units FROM usage"), "2");
}

TEST_F(PgDatabaseTest, CommitsOfOthersAreNoticed) {
  auto other = another().value();
  const std::uint64_t before = other->reader().generation();
  write(kNow, kNow + kMinute, {job("1", kNow)});
  EXPECT_TRUE(testing::eventually([&] { return other->reader().generation() > before; }));
}

TEST_F(PgDatabaseTest, AConnectionThatIsLostDuringAWriteLosesAndDoublesNothing) {
  std::int64_t start = kNow;
  int failures = 0;
  for (int round = 0; round < 12; ++round) {
    std::vector<model::Unit> units;
    for (int i = 0; i < 600; ++i) {
      auto unit = job(std::to_string(i), kNow);
      units.push_back(with_times(unit, 60, 60));
    }
    const auto window = update(start, start + kMinute, units);
    std::jthread killer([this, round] {
      std::this_thread::sleep_for(std::chrono::milliseconds(2 + 7 * round));
      terminate();
    });
    bool written = false;
    ASSERT_TRUE(testing::eventually([&] {
      const auto report = db_->writer().write(window);
      failures += report ? 0 : 1;
      // Only the watermark shows whether a failed commit took effect.
      const auto watermark = db_->writer().watermark("hpc");
      written = watermark && *watermark == start + kMinute;
      return written;
    }));
    start += kMinute;
  }
  EXPECT_GT(failures, 0);
  EXPECT_EQ(text("SELECT count(*) FROM units"), "600");
  EXPECT_EQ(text("SELECT DISTINCT total_time_seconds FROM units"),
            R"({"alloc_cputime":720,"walltime":720})");
  EXPECT_EQ(text("SELECT num_units||total_time_seconds FROM usage"),
            R"(600{"alloc_cputime":432000,"walltime":432000})");
  EXPECT_EQ(text("SELECT num_units||total_time_seconds FROM daily_usage"),
            R"(600{"alloc_cputime":432000,"walltime":432000})");
}

TEST_F(PgDatabaseTest, GoesOnAfterTheServerWasRestarted) {
  write(kNow, kNow + kMinute, {job("1", kNow)});
  EXPECT_TRUE(db_->reader().ping());
  for (const bool crash : {false, true}) {
    crash ? postgres_->crash() : postgres_->shut_down();
    EXPECT_FALSE(db_->reader().ping());
    const auto refused = db_->writer().write(update(kNow + kMinute, kNow + 2 * kMinute, {}));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kUnavailable);
    EXPECT_FALSE(db_->writer().lead());
    const auto restarted = postgres_->restart();
    ASSERT_TRUE(restarted) << restarted.error().message;
    EXPECT_TRUE(testing::eventually([this] { return db_->writer().lead().value_or(false); }));
    EXPECT_TRUE(testing::eventually([this] { return db_->reader().ping().has_value(); }));
  }
  EXPECT_EQ(db_->writer().watermark("hpc").value(), kNow + kMinute);
  write(kNow + kMinute, kNow + 2 * kMinute, {job("2", kNow)});
  EXPECT_EQ(text("SELECT num_units FROM usage"), "2");
}

TEST_F(PgDatabaseTest, ReadersSurviveTheLossOfAllTheirConnections) {
  write(kNow, kNow + kMinute, {job("1", kNow)});
  std::vector<Result<std::unique_ptr<Cursor>>> cursors;
  for (int i = 0; i < 4; ++i) {
    cursors.push_back(db_->reader().clusters());
    ASSERT_TRUE(cursors.back());
  }
  cursors.clear();
  terminate();
  EXPECT_EQ(column(db_->reader().clusters(), 0), Texts{"hpc"});
}

TEST_F(PgDatabaseTest, AReaderThatGoesAwayFreesItsConnection) {
  std::vector<model::Unit> units;
  for (int i = 0; i < 5000; ++i) {
    units.push_back(job(std::to_string(i), kNow));
  }
  write(kNow, kNow + kMinute, units);
  const std::vector<std::size_t> fields{2, 16};
  for (int i = 0; i < 20; ++i) {  // more than there are connections
    UnitQuery query;
    query.owners.everybody = true;
    auto cursor = db_->reader().units(query, fields);
    ASSERT_TRUE(cursor) << cursor.error().message;
    EXPECT_TRUE((*cursor)->next().value());
  }
  EXPECT_TRUE(testing::eventually([this] {
    return text(
               "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
               " AND state = 'active' AND pid <> pg_backend_pid()") == "0";
  }));
}

TEST_F(PgDatabaseTest, AQuestionOfWhichOneRowIsReadKeepsItsConnection) {
  write(kNow, kNow + kMinute, {job("1", kNow), job("2", kNow)});
  const auto connections = [this] {
    return text(
        "SELECT string_agg(pid::text, ' ' ORDER BY pid) FROM pg_stat_activity WHERE datname ="
        " current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'");
  };
  const auto read_one = [this] {
    UnitQuery query;
    query.owners.everybody = true;
    auto cursor = db_->reader().units(query, std::vector<std::size_t>{2});
    ASSERT_TRUE(cursor) << cursor.error().message;
    EXPECT_TRUE((*cursor)->next().value());
  };
  const std::string without = connections();
  read_one();
  const std::string before = connections();
  EXPECT_NE(before, without);
  for (int i = 0; i < 5; ++i) {
    read_one();
  }
  EXPECT_EQ(connections(), before);
}

TEST_F(PgDatabaseTest, AllConnectionsBusyIsAnErrorNotAWait) {
  auto narrow = store::open_database({.time_zone = "UTC",
                                      .max_connections = 1,
                                      .connection_wait = std::chrono::milliseconds(50),
                                      .url = url_},
                                     clock_);
  ASSERT_TRUE(narrow);
  const auto held = (*narrow)->reader().clusters();
  ASSERT_TRUE(held);
  const auto refused = (*narrow)->reader().ping();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUnavailable);
}

TEST_F(PgDatabaseTest, ARowThatTheServerRefusesIsSkippedAlone) {
  auto good = job("good", kNow);
  auto bad = job("bad", kNow);
  // This text does not compress and is longer than an index entry may be.
  std::uint32_t state = 1;
  for (int i = 0; i < 20000; ++i) {
    state = state * 1664525U + 1013904223U;
    bad.username += static_cast<char>('a' + (state >> 24U) % 26);
  }
  auto last = job("last", kNow);
  auto first = update(kNow, kNow + kMinute, {good, bad, last});
  first.users = std::vector<model::User>{{.name = "ada", .projects = {"fluids"}},
                                         {.name = bad.username, .projects = {}}};
  const auto report = db_->writer().write(first);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->written, 2U);
  EXPECT_EQ(report->skipped, 1U);
  EXPECT_EQ(text("SELECT uuid FROM units ORDER BY 1"), "good last");
  EXPECT_EQ(text("SELECT num_units FROM usage"), "2");
  EXPECT_EQ(text("SELECT name FROM users"), "ada");
  EXPECT_EQ(db_->writer().watermark("hpc").value(), kNow + kMinute);
}

TEST_F(PgDatabaseTest, UnitsOfAnEmptyTableAreFoundByTheirIndex) {
  // The plan is kept for the whole first window. With another index it would read all units for
  // each unit.
  const std::string plan =
      text("EXPLAIN SELECT id, name FROM units WHERE cluster_id = 'hpc' AND uuid = '1'");
  EXPECT_NE(plan.find("uq_cluster_id_uuid_start"), std::string::npos) << plan;
}

TEST_F(PgDatabaseTest, MessagesNameTheServerButNoPassword) {
  for (const std::string url : {
           "postgresql://ceems:secret@localhost:1/none?connect_timeout=1",
           "postgresql://ceems:se/cret@localhost/none",
           "postgresql://ceems:sec@ret@localhost/none",
           "postgresql://ceems:secret@localhost/none?port=x&secret",
           "host=localhost password=secret",
           "mysql://ceems:secret@localhost/none",
       }) {
    const auto opened = store::open_database({.time_zone = "UTC", .url = url}, clock_);
    ASSERT_FALSE(opened) << url;
    for (const std::string part : {"secret", "cret", "sec"}) {
      EXPECT_EQ(opened.error().message.find(part), std::string::npos) << opened.error().message;
    }
  }
  const auto refused = store::open_database(
      {.time_zone = "UTC", .url = "postgresql://ceems@127.0.0.1:1/none"}, clock_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUnavailable);
  EXPECT_TRUE(refused.error().message.starts_with("database postgresql://127.0.0.1:1/none: "));
}

TEST_F(PgDatabaseTest, ThePasswordComesFromAFile) {
  const std::string missing = (dir_.path() / "none").string();
  const auto opened =
      store::open_database({.time_zone = "UTC", .url = url_, .password_file = missing}, clock_);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().message,
            "password of the database: open " + missing + ": No such file or directory");
  dir_.write("password", "secret\n");
  EXPECT_TRUE(store::open_database(
      {.time_zone = "UTC", .url = url_, .password_file = (dir_.path() / "password").string()},
      clock_));
}

TEST_F(PgDatabaseTest, BackupsAreLeftToPgDump) {
  const auto name = db_->backup(dir_.path().string(), {});
  ASSERT_FALSE(name);
  EXPECT_EQ(name.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(name.error().message.find("pg_dump"), std::string::npos);
}

}  // namespace
}  // namespace ceems::store::postgres
