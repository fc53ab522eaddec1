#include "store/sqlite/schema.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/fd.h"
#include "store/database.h"
#include "store/factory/open_database.h"
#include "testing/fake_clock.h"
#include "testing/temp_dir.h"

namespace ceems::store {
namespace {

using sqlite::Connection;
using sqlite::OpenMode;

class SchemaTest : public ::testing::Test {
 protected:
  [[nodiscard]] std::string file() const { return (dir_.path() / "ceems.db").string(); }
  [[nodiscard]] Connection raw() const {
    auto connection = Connection::open(file(), OpenMode::kReadWrite);
    EXPECT_TRUE(connection);
    return std::move(*connection);
  }
  void run(const std::string& sql) const {
    const auto done = raw().execute(sql);
    ASSERT_TRUE(done) << done.error().message;
  }
  [[nodiscard]] std::string text(std::string_view sql) const {
    auto connection = raw();
    const auto result = connection.query_text(sql);
    return result ? *result : result.error().message;
  }
  [[nodiscard]] Result<std::unique_ptr<Database>> open(const std::string& zone = "UTC") const {
    return open_database({.directory = dir_.path().string(), .time_zone = zone}, clock_);
  }
  [[nodiscard]] std::vector<std::string> backups() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(dir_.path())) {
      if (entry.path().extension() == ".bak") {
        names.push_back(entry.path().filename().string());
      }
    }
    return names;
  }

  testing::TempDir dir_;
  testing::FakeClock clock_;
};

std::string columns(Connection& connection, const std::string& table) {
  return connection
      .query_text("SELECT group_concat(name, ' ') FROM pragma_table_info('" + table +
                  "') WHERE name NOT LIKE 'total_%' AND name NOT LIKE 'avg_%'")
      .value();
}

TEST_F(SchemaTest, AFreshDataBaseHasTheSchemaOfTheReference) {
  ASSERT_TRUE(open());
  EXPECT_EQ(text("SELECT version || ' ' || dirty FROM schema_migrations"), "9 0");
  EXPECT_EQ(text("PRAGMA journal_mode"), "wal");
  EXPECT_EQ(text("PRAGMA auto_vacuum"), "2");
  struct stat info{};
  ASSERT_EQ(::stat(file().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0640U);
  auto db = raw();
  EXPECT_EQ(columns(db, "units"),
            "id resource_manager cluster_id uuid name project groupname username created_at "
            "started_at ended_at created_at_ts started_at_ts ended_at_ts elapsed state allocation "
            "tags ignore num_updates last_updated_at last_updated_at_ts ceems_weights");
  EXPECT_EQ(columns(db, "users"),
            "id uid cluster_id resource_manager name projects tags last_updated_at");
  EXPECT_EQ(columns(db, "projects"),
            "id uid cluster_id resource_manager name users tags last_updated_at");
  EXPECT_EQ(columns(db, "admin_users"),
            "id uid cluster_id resource_manager name projects tags last_updated_at");
  EXPECT_EQ(
      db.query_text("SELECT group_concat(name, ' ') FROM (SELECT name FROM sqlite_master WHERE"
                    " type='index' AND name NOT LIKE 'ceems%' AND name NOT LIKE 'sqlite%'"
                    " ORDER BY name)")
          .value(),
      "idx_cluster_id_project_user_ended idx_cluster_id_usr_uuid uq_cluster_id_admin_user "
      "uq_cluster_id_project uq_cluster_id_project_usr uq_cluster_id_project_usr_lastupdated "
      "uq_cluster_id_user uq_cluster_id_uuid_start version_unique");
  EXPECT_TRUE(backups().empty());
}

/// Returns the SQL texts that the file stores for its tables, indexes and triggers, except those
/// already in `known`.
std::string new_objects(Connection& connection, std::map<std::string, std::string>& known) {
  std::string texts;
  auto statement =
      connection.prepare("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid")
          .value();
  while (statement.step().value()) {
    std::string& text = known[std::string(statement.text(0))];
    if (text != statement.text(1)) {
      text = statement.text(1);
      texts += text + ";\n";
    }
  }
  return texts;
}

/// Existing files of all versions were created with these texts. If CEEMS_UPDATE_GOLDEN is set in
/// the environment, the golden file is rewritten.
TEST_F(SchemaTest, EveryVersionHasTheTextsOfTheGoldenFile) {
  std::map<std::string, std::string> known;
  std::string texts;
  for (int version = 1; version <= sqlite::kCustomStatsVersion; ++version) {
    std::filesystem::remove(file());
    auto db = raw();
    ASSERT_TRUE(sqlite::create_reference_schema(db, version));
    texts += fmt::format("-- version {} of the reference\n", version) + new_objects(db, known);
  }
  std::filesystem::remove(file());
  ASSERT_TRUE(open());
  auto db = raw();
  texts += "-- with our additions\n" + new_objects(db, known);
  const auto golden = std::filesystem::path(CEEMS_TEST_ROOT) / "golden/store/sqlite_schema.sql";
  if (std::getenv("CEEMS_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(golden) << texts;
  }
  std::ostringstream wanted;
  wanted << std::ifstream(golden).rdbuf();
  EXPECT_EQ(texts, wanted.str());
}

TEST_F(SchemaTest, OpeningAgainChangesNothing) {
  ASSERT_TRUE(open());
  const std::string before = text("SELECT group_concat(sql) FROM sqlite_master");
  ASSERT_TRUE(open());
  EXPECT_EQ(text("SELECT group_concat(sql) FROM sqlite_master"), before);
  EXPECT_TRUE(backups().empty());
}

TEST_F(SchemaTest, EveryOlderVersionIsUpgradedAfterABackup) {
  for (int version = 1; version <= 9; ++version) {
    SCOPED_TRACE(version);
    std::filesystem::remove(file());
    std::filesystem::remove(file() + "-wal");
    for (const std::string& name : backups()) {
      std::filesystem::remove(dir_.path() / name);
    }
    {
      auto db = raw();
      ASSERT_TRUE(sqlite::create_reference_schema(db, version));
    }
    const std::string egress = version < 9 ? "total_outgress_stats" : "total_egress_stats";
    run("INSERT INTO units (cluster_id,uuid,started_at,last_updated_at," + egress +
        ") VALUES ('c','7','x','2025-12-31T23:00:00','{\"bytes\":5}')");
    const auto opened = open();
    ASSERT_TRUE(opened) << opened.error().message;
    EXPECT_EQ(text("SELECT version || ' ' || dirty FROM schema_migrations"), "9 0");
    EXPECT_EQ(text("SELECT total_egress_stats FROM units WHERE uuid='7'"), "{\"bytes\":5}");
    EXPECT_EQ(text("SELECT last_updated_at_ts FROM units"), "1767222000000");
    EXPECT_EQ(text("SELECT count(*) FROM ceems_project_leads"), "0");
    ASSERT_EQ(backups().size(), 1U);
    EXPECT_EQ(backups()[0], fmt::format("ceems.db.v{}-20260101T000000.bak", version));
    auto backup = Connection::open((dir_.path() / backups()[0]).string(), OpenMode::kReadOnly);
    ASSERT_TRUE(backup);
    EXPECT_EQ(backup->query_text("SELECT " + egress + " FROM units").value(), "{\"bytes\":5}");
  }
}

TEST_F(SchemaTest, AdminsBySourceBecomeRows) {
  {
    auto db = raw();
    ASSERT_TRUE(sqlite::create_reference_schema(db, 5));
  }
  run("INSERT INTO admin_users (source, users, last_updated_at) VALUES"
      " ('ceems','[\"root\",\"\",\"eve\"]','t'), ('grafana','[\"gina\"]','t'), ('bad','{',  't')");
  ASSERT_TRUE(open());
  EXPECT_EQ(text("SELECT group_concat(cluster_id||':'||name||tags,' ') FROM"
                 " (SELECT * FROM admin_users ORDER BY name)"),
            R"(all:eve["ceems"] all:gina["grafana"] all:root["ceems"])");
}

TEST_F(SchemaTest, ADevelopmentVersionWithLaterColumnsIsUpgraded) {
  // The file claims version 5, although admins are rows and the egress column already has its new
  // name.
  {
    auto db = raw();
    ASSERT_TRUE(sqlite::create_reference_schema(db, 9));
  }
  run("DROP INDEX idx_cluster_id_project_user_ended; DROP TABLE daily_usage;"
      "UPDATE schema_migrations SET version = 5;"
      "INSERT INTO admin_users (name, tags) VALUES ('root','[\"ceems\"]')");
  const auto opened = open();
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_TRUE((*opened)->reader().is_admin("root").value());
  EXPECT_EQ(text("SELECT count(total_egress_stats) FROM daily_usage"), "0");
}

TEST_F(SchemaTest, DirtyNewerAndForeignDataBasesAreRefusedUntouched) {
  {
    auto db = raw();
    ASSERT_TRUE(sqlite::create_reference_schema(db, 3));
  }
  run("UPDATE schema_migrations SET dirty = 1");
  EXPECT_EQ(
      open().error().message,
      "database " + file() +
          ": schema version 3 is marked dirty: an upgrade was interrupted; restore a backup or "
          "repair it by hand");
  run("UPDATE schema_migrations SET dirty = 0, version = 11");
  EXPECT_EQ(
      open().error().message,
      "database " + file() + ": schema version 11 is newer than 10, the newest this program knows");
  EXPECT_EQ(text("SELECT count(*) FROM sqlite_master WHERE name LIKE 'ceems%'"), "0");
  run("DROP TABLE schema_migrations");
  EXPECT_EQ(
      open().error().message,
      "database " + file() + ": holds tables but no schema_migrations: not a database of CEEMS");
  EXPECT_TRUE(backups().empty());
}

std::string custom_columns(Connection& connection) {
  std::string counts;
  for (const char* table : {"units", "usage", "daily_usage"}) {
    counts += connection
                  .query_text(fmt::format("SELECT count(*) FROM pragma_table_info('{}') WHERE name"
                                          " LIKE '%_custom_stats'",
                                          table))
                  .value();
  }
  return counts;
}

TEST_F(SchemaTest, AKilledCopyLeavesNothingThatLooksLikeABackup) {
  {
    auto db = raw();
    ASSERT_TRUE(sqlite::create_reference_schema(db, 9));
  }
  // What programs that were killed left, one of them of a version without ".part".
  for (const char* left : {".v9-20251231T000000.bak.part", ".v9-20251231T000000.bak.part-journal",
                           ".v8-20250101T000000.bak.part", ".v9-20260101T000000.bak"}) {
    dir_.write("ceems.db" + std::string(left), "half of a copy");
  }
  ASSERT_TRUE(open());
  auto names = backups();
  std::ranges::sort(names);
  EXPECT_EQ(names, (std::vector<std::string>{"ceems.db.v9-20260101T000000-2.bak",
                                             "ceems.db.v9-20260101T000000.bak"}));
  for (const auto& entry : std::filesystem::directory_iterator(dir_.path())) {
    EXPECT_FALSE(entry.path().string().contains(".part")) << entry.path();
  }
  auto copy = Connection::open((dir_.path() / names[0]).string(), OpenMode::kReadOnly);
  ASSERT_TRUE(copy);
  EXPECT_EQ(copy->query_text("SELECT version FROM schema_migrations").value(), "9");
}

TEST_F(SchemaTest, AnUpgradeThatWasInterruptedUsesTheCopyThatItMade) {
  {
    auto db = raw();
    ASSERT_TRUE(sqlite::create_reference_schema(db, 9));
    ASSERT_TRUE(db.execute("PRAGMA journal_mode = WAL"));
  }
  {
    auto db = raw();
    ASSERT_TRUE(db.copy_to(file() + ".v9-20251231T235959.bak", nullptr, nullptr));
  }
  ASSERT_TRUE(open());
  EXPECT_EQ(backups(), std::vector<std::string>{"ceems.db.v9-20251231T235959.bak"});
}

TEST_F(SchemaTest, AFileOfVersion10IsUsedAndNeverGoesBack) {
  {
    auto db = raw();
    ASSERT_TRUE(sqlite::create_reference_schema(db, 10));
  }
  run("INSERT INTO units (cluster_id,uuid,started_at,last_updated_at,min_custom_stats)"
      " VALUES ('c','7','x','2025-12-31T23:00:00','{\"t\":5}')");
  for (const bool custom_stats : {false, true}) {
    const auto opened = open_database(
        {.directory = dir_.path().string(), .time_zone = "UTC", .custom_stats = custom_stats},
        clock_);
    ASSERT_TRUE(opened) << opened.error().message;
    EXPECT_EQ(text("SELECT version || ' ' || dirty FROM schema_migrations"), "10 0");
    EXPECT_EQ(text("SELECT min_custom_stats FROM units"), "{\"t\":5}");
  }
  EXPECT_EQ(backups(), std::vector<std::string>{"ceems.db.v10-20260101T000000.bak"});
}

TEST_F(SchemaTest, AHalfUpgradeToVersion10IsCompletedOnlyOnRequest) {
  {
    auto db = raw();
    ASSERT_TRUE(sqlite::create_reference_schema(db, 9));
  }
  run("ALTER TABLE units ADD COLUMN total_custom_stats default '{}';"
      "ALTER TABLE units ADD COLUMN avg_custom_stats default '{}';"
      "INSERT INTO units (cluster_id,uuid,avg_custom_stats) VALUES ('c','7','{\"x\":1}');"
      "UPDATE schema_migrations SET version = 10, dirty = 1");
  EXPECT_EQ(open().error().message,
            "database " + file() +
                ": schema version 10 is marked dirty: an upgrade was interrupted; restore a backup,"
                " or complete the upgrade with --db.migrate");
  EXPECT_TRUE(backups().empty());
  const auto opened = open_database({.directory = dir_.path().string(),
                                     .time_zone = "UTC",
                                     .custom_stats = true,
                                     .finish_upgrade = true},
                                    clock_);
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ(text("SELECT version || ' ' || dirty FROM schema_migrations"), "10 0");
  EXPECT_EQ(text("SELECT avg_custom_stats || max_custom_stats FROM units"), "{\"x\":1}{}");
  auto db = raw();
  EXPECT_EQ(custom_columns(db), "444");
  EXPECT_EQ(backups().size(), 1U);
}

TEST_F(SchemaTest, MissingColumnsOfVersion10AreAdded) {
  {
    auto db = raw();
    ASSERT_TRUE(sqlite::create_reference_schema(db, 9));
  }
  run("ALTER TABLE usage ADD COLUMN max_custom_stats default '{}';"
      "UPDATE schema_migrations SET version = 10");
  const auto opened = open();
  ASSERT_TRUE(opened) << opened.error().message;
  auto db = raw();
  EXPECT_EQ(custom_columns(db), "444");
}

/// Columns that a development version left in a file of version 9 neither disturb it nor an
/// upgrade.
TEST_F(SchemaTest, EarlyColumnsStayUnused) {
  {
    auto db = raw();
    ASSERT_TRUE(sqlite::create_reference_schema(db, 9));
  }
  run("ALTER TABLE usage ADD COLUMN max_custom_stats default '{}'");
  ASSERT_TRUE(open());
  auto db = raw();
  EXPECT_EQ(custom_columns(db), "010");
  EXPECT_EQ(text("SELECT version FROM schema_migrations"), "9");
}

TEST_F(SchemaTest, AFileThatIsNoDataBaseIsRefused) {
  dir_.write("ceems.db", std::string(5000, 'x'));
  const auto opened = open();
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::kParse);
  EXPECT_EQ(opened.error().message, "database " + file() + ": file is not a database");
}

TEST_F(SchemaTest, ASecondWriterIsRefused) {
  const auto first = open();
  ASSERT_TRUE(first);
  const auto second = open();
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().message,
            fmt::format("database is in use: process {} holds {}.lock", ::getpid(), file()));
}

TEST_F(SchemaTest, ALockThatAKilledProcessLeftToItsChildIsWaitedFor) {
  const pid_t ended = ::fork();
  ASSERT_GE(ended, 0);
  if (ended == 0) {
    ::_exit(0);
  }
  ASSERT_EQ(::waitpid(ended, nullptr, 0), ended);
  dir_.write("ceems.db.lock", fmt::format("{}\n", ended));
  UniqueFd lock(::open((file() + ".lock").c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::flock(lock.get(), LOCK_EX | LOCK_NB), 0);
  const std::jthread child([&lock] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    lock = {};
  });
  const auto opened = open();
  EXPECT_TRUE(opened) << opened.error().message;
}

TEST_F(SchemaTest, AccountsOfOpenstackKeepTheNamesOfTheLists) {
  {
    auto db = raw();
    ASSERT_TRUE(sqlite::create_reference_schema(db, 9));
  }
  run("INSERT INTO users (cluster_id,resource_manager,uid,name,last_updated_at) VALUES"
      " ('os','openstack','u1','ann','2'), ('os','openstack','u1','anna','1'),"
      " ('os','openstack','u2','bob','1'), ('hpc','slurm','7','cat','1')");
  run("INSERT INTO projects (cluster_id,resource_manager,uid,name) VALUES"
      " ('os','openstack','p1','dev')");
  const auto opened = open();
  ASSERT_TRUE(opened) << opened.error().message;
  const auto names = (*opened)->writer().account_names("os");
  ASSERT_TRUE(names) << names.error().message;
  EXPECT_EQ(names->users.by_id, (std::map<std::string, std::string>{{"u1", "ann"}, {"u2", "bob"}}));
  EXPECT_EQ(names->projects.by_id, (std::map<std::string, std::string>{{"p1", "dev"}}));
  EXPECT_TRUE((*opened)->writer().account_names("hpc")->users.by_id.empty());
}

TEST_F(SchemaTest, AMissingDirectoryIsNamed) {
  const auto opened =
      open_database({.directory = (dir_.path() / "none").string(), .time_zone = "UTC"}, clock_);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::kNotFound);
  EXPECT_NE(opened.error().message.find("none/ceems.db.lock: No such file"), std::string::npos)
      << opened.error().message;
}

TEST_F(SchemaTest, GoesOnWhereTheReferenceStopped) {
  {
    auto db = raw();
    ASSERT_TRUE(sqlite::create_reference_schema(db, 9));
  }
  run("INSERT INTO usage (cluster_id,username,project,last_updated_at) VALUES"
      " ('a','u','p','2026-01-01T10:00:00'),('a','v','p','2026-01-01T12:00:00'),"
      " ('b','u','p','nonsense')");
  {
    const auto opened = open("Europe/Paris");
    ASSERT_TRUE(opened);
    EXPECT_EQ((*opened)->writer().watermark("a").value(), 1'767'265'200'000);  // 11:00 UTC
    EXPECT_FALSE((*opened)->writer().watermark("b").value());
    EXPECT_FALSE((*opened)->writer().watermark("c").value());
  }
  // The reference runs again for a while, then our program replaces it again.
  run("UPDATE usage SET last_updated_at = '2026-01-01T13:00:00' WHERE username = 'v'");
  EXPECT_EQ(text("SELECT last_updated_at_ts IS NULL FROM usage WHERE username = 'v'"), "1");
  const auto again = open("Europe/Paris");
  ASSERT_TRUE(again);
  EXPECT_EQ((*again)->writer().watermark("a").value(), 1'767'268'800'000);
}

}  // namespace
}  // namespace ceems::store
