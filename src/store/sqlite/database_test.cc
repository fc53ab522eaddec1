#include "store/sqlite/database.h"

#include <signal.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <stop_token>
#include <thread>
#include <vector>

#include "store/test_database.h"

namespace ceems::store::sqlite {
namespace {

class SqliteDatabaseTest : public AnyDatabase {
 protected:
  SqliteDatabaseTest() : AnyDatabase(Backend::kSqlite) {}
};

TEST_F(SqliteDatabaseTest, AFullDiskIsOneLineAndWorthAnotherTry) {
  write(kNow, kNow + kMinute, {});
  // A limit on the number of pages has the same result as a full disk: SQLITE_FULL.
  const std::string pages = text("PRAGMA page_count");
  db_.reset();
  {
    auto connection = Connection::open(file(), OpenMode::kReadWrite).value();
    ASSERT_TRUE(connection.execute("PRAGMA max_page_count = " + pages));
    const auto done = connection.execute("CREATE TABLE big AS SELECT randomblob(1000000) AS x");
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, ErrorCode::kUnavailable);
    EXPECT_EQ(done.error().message, "database " + file() + ": database or disk is full");
  }
}

TEST_F(SqliteDatabaseTest, ListingsLeaveConnectionsToShortQuestions) {
  write(kNow, kNow + kMinute, {job("1", kNow)});
  db_.reset();
  const auto narrow = store::open_database({.directory = dir_.path().string(),
                                            .time_zone = "UTC",
                                            .max_connections = 2,
                                            .max_listings = 1,
                                            .connection_wait = std::chrono::milliseconds(20)},
                                           clock_);
  ASSERT_TRUE(narrow);
  Reader& reader = (*narrow)->reader();
  {
    const auto held = reader.clusters();
    ASSERT_TRUE(held);
    EXPECT_EQ(reader.clusters().error().code, ErrorCode::kUnavailable);
    EXPECT_TRUE(reader.ping());
    EXPECT_EQ(reader.is_admin("root"), false);
  }
  EXPECT_EQ(column(reader.clusters(), 0), Texts{"hpc"});
}

TEST_F(SqliteDatabaseTest, ALockedFileIsReportedAndTheWriterGoesOnLater) {
  auto other = Connection::open(file(), OpenMode::kReadWrite).value();
  ASSERT_TRUE(other.execute("BEGIN IMMEDIATE"));
  std::jthread release([&other] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    static_cast<void>(other.execute("ROLLBACK"));
  });
  write(kNow, kNow + kMinute, {job("1", kNow)});  // waits for the lock
  EXPECT_EQ(text("SELECT count(*) FROM units"), "1");
}

TEST_F(SqliteDatabaseTest, MemoryOfCachesIsGivenBack) {
  constexpr std::int64_t kMegabyte = 1'000'000;
  const auto units = [](int window, int count) {
    std::vector<model::Unit> all;
    for (int i = 0; i < count; ++i) {
      all.push_back(job(std::to_string(window * 100'000 + i), kNow, kNow + window * kHour + 1));
    }
    return all;
  };
  const std::int64_t before = sqlite3_memory_used();
  write(kNow, kNow + kHour, units(0, 20'000));          // a back-fill: may keep its pages
  write(kNow + kHour, kNow + 2 * kHour, units(1, 10));  // a usual window
  EXPECT_LT(sqlite3_memory_used() - before, 3 * kMegabyte);
  // Four readers at a time, each of which reads everything.
  std::vector<std::jthread> threads;
  for (int reader = 0; reader < 4; ++reader) {
    threads.emplace_back([this] {
      for (int i = 0; i < 2; ++i) {
        UnitQuery all;
        all.owners.everybody = true;
        EXPECT_EQ(column(db_->reader().units(all, std::vector<std::size_t>{2, 15}), 0).size(),
                  20'010U);
      }
    });
  }
  threads.clear();
  EXPECT_LT(sqlite3_memory_used() - before, 6 * kMegabyte);
}

/// Limits the size of this process's files while it exists: writing fails as on a full disk.
class FullDisk {
 public:
  explicit FullDisk(std::uintmax_t bytes) {
    previous_ = ::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;
  ~FullDisk() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, previous_);
  }

 private:
  rlimit before_{};
  void (*previous_)(int) = nullptr;
};

TEST_F(SqliteDatabaseTest, AWindowThatADiskHasNoRoomForIsWrittenLater) {
  write(kNow, kNow + kMinute, {job("first", kNow)});
  std::vector<model::Unit> units;
  for (int i = 0; i < 3000; ++i) {
    units.push_back(job(std::to_string(i), kNow));
  }
  {
    const FullDisk full(std::filesystem::file_size(file() + "-wal") + 100'000);
    const auto report = db_->writer().write(update(kNow + kMinute, kNow + 2 * kMinute, units));
    ASSERT_FALSE(report);
    EXPECT_EQ(report.error().code, ErrorCode::kUnavailable) << report.error().message;
    EXPECT_TRUE(db_->reader().ping());
    EXPECT_EQ(db_->writer().watermark("hpc").value(), kNow + kMinute);
  }
  EXPECT_EQ(text("SELECT count(*) FROM units"), "1");
  write(kNow + kMinute, kNow + 2 * kMinute, units);
  EXPECT_EQ(text("SELECT count(*) FROM units"), "3001");
  EXPECT_EQ(text("SELECT num_units FROM usage"), "3001");
  EXPECT_EQ(text("PRAGMA integrity_check"), "ok");
}

TEST_F(SqliteDatabaseTest, PurgeAndVacuumGoOnBesideReaders) {
  std::vector<model::Unit> units;
  for (int i = 0; i < 3000; ++i) {
    units.push_back(job(std::to_string(i), kNow - kHour, kNow - kMinute));
  }
  write(kNow - kHour, kNow, units);
  const std::vector<std::size_t> fields{2};
  UnitQuery query;
  query.owners.everybody = true;
  auto before = db_->reader().units(query, fields).value();
  ASSERT_TRUE(before->next().value());
  const int pages = std::stoi(text("PRAGMA page_count"));
  ASSERT_TRUE(db_->writer().purge(kNow + kDay));
  EXPECT_LT(std::stoi(text("PRAGMA page_count")), pages);
  EXPECT_EQ(column(db_->reader().units(query, fields), 0), Texts{});
  std::size_t rest = 0;
  while (before->next().value()) {
    ++rest;
  }
  EXPECT_EQ(rest, 2999U);  // the reader's snapshot is complete
  write(kNow, kNow + kMinute, {job("next", kNow)});
}

TEST_F(SqliteDatabaseTest, APurgeLeavesTheConnectionToReportsThatAreStored) {
  constexpr int kRounds = 6;
  std::jthread reports([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      const auto done = db_->writer().purge_reports(kNow);
      ASSERT_TRUE(done) << done.error().message;
    }
  });
  for (int round = 0; round < kRounds; ++round) {
    const std::int64_t now = kNow + round * kHour;
    std::vector<model::Unit> units;
    for (int i = 0; i < 1000; ++i) {  // whose pages are given back
      units.push_back(job(std::to_string(i), now - kHour, now - kMinute));
    }
    write(now - kHour, now, units);
    const auto done = db_->writer().purge(now);
    ASSERT_TRUE(done) << done.error().message;
  }
  reports = {};
  EXPECT_EQ(text("PRAGMA integrity_check"), "ok");
}

TEST_F(SqliteDatabaseTest, ASecondProgramIsRefused) {
  const auto second = another();
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kUnavailable);
  EXPECT_NE(second.error().message.find(std::to_string(::getpid())), std::string::npos);
  EXPECT_EQ(db_->writer().lead().value(), true);
}

TEST_F(SqliteDatabaseTest, ColumnsThatAreNullAreEmptyNotThoseOfTheRowBefore) {
  write(kNow, kNow + kMinute, {job("1", kNow), job("2", kNow), job("3", kNow)});
  execute("UPDATE units SET name=NULL, created_at_ts=NULL WHERE uuid='2'");
  const std::vector<std::size_t> fields{3, 10};
  UnitQuery query;
  query.owners.everybody = true;
  EXPECT_EQ(column(db_->reader().units(query, fields), 0), (Texts{"job-1", "", "job-3"}));
  EXPECT_EQ(column(db_->reader().units(query, fields), 1)[1], "");
}

TEST_F(SqliteDatabaseTest, BackupIsCompleteAndPrivate) {
  write(kNow, kNow + kMinute, {job("1", kNow)});
  const std::string directory = (dir_.path() / "backup").string();
  std::filesystem::create_directory(directory);
  const auto name = db_->backup(directory, {});
  ASSERT_TRUE(name) << name.error().message;
  EXPECT_EQ(*name, directory + "/ceems-202601010000.db");
  EXPECT_EQ(std::filesystem::status(*name).permissions(), std::filesystem::perms(0640));
  EXPECT_EQ(
      Connection::open(*name, OpenMode::kReadOnly)->query_text("SELECT uuid FROM units").value(),
      "1");
  std::stop_source stop;
  stop.request_stop();
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    std::filesystem::remove(entry);  // the read-only look above leaves files of the WAL
  }
  EXPECT_FALSE(db_->backup(directory, stop.get_token()));
  EXPECT_TRUE(std::filesystem::is_empty(directory));
  EXPECT_FALSE(db_->backup(directory + "/none", {}));
}

TEST_F(SqliteDatabaseTest, AfterCloseTheMainFileHoldsEverything) {
  write(kNow, kNow + kMinute, {job("1", kNow)});
  ASSERT_TRUE(db_->close());
  EXPECT_FALSE(db_->reader().ping());
  std::filesystem::copy_file(file(), dir_.path() / "copy.db");
  EXPECT_EQ(Connection::open((dir_.path() / "copy.db").string(), OpenMode::kReadOnly)
                ->query_text("SELECT uuid FROM units")
                .value(),
            "1");
}

}  // namespace
}  // namespace ceems::store::sqlite
