#include "store/database.h"

#include <atomic>
#include <filesystem>
#include <limits>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include "store/sqlite/connection.h"
#include "testing/fake_clock.h"
#include "testing/temp_dir.h"

namespace ceems::store {
namespace {

using model::Metric;
using sqlite::Connection;
using sqlite::OpenMode;

constexpr std::int64_t kNow = 1'767'225'600'000;  // 2026-01-01T00:00:00Z
constexpr std::int64_t kMinute = 60'000;
constexpr std::int64_t kHour = 60 * kMinute;
constexpr std::int64_t kDay = 24 * kHour;
const std::vector<std::size_t> kAllUsage{0, 2, 3, 5, 6, 7, 9};

model::Unit job(const std::string& uuid, std::int64_t start_ms, std::int64_t end_ms = 0) {
  model::Unit unit;
  unit.resource_manager = "slurm";
  unit.uuid = uuid;
  unit.name = "job-" + uuid;
  unit.project = "fluids";
  unit.groupname = "phys";
  unit.username = "ada";
  unit.created_at = "c";
  unit.created_at_ts = start_ms;
  unit.started_at = start_ms > 0 ? std::to_string(start_ms) : "Unknown";
  unit.started_at_ts = start_ms;
  unit.ended_at = end_ms > 0 ? std::to_string(end_ms) : "Unknown";
  unit.ended_at_ts = end_ms;
  unit.state = end_ms > 0 ? "COMPLETED" : "RUNNING";
  unit.allocation = R"({"cpus":2})";
  return unit;
}

model::Unit& with_times(model::Unit& unit, double walltime, double cputime) {
  unit.total_time_seconds = {{"walltime", walltime}, {"alloc_cputime", cputime}};
  return unit;
}

model::Unit& with(model::Unit& unit, Metric metric, model::MetricMap map) {
  unit.metric(metric) = std::move(map);
  unit.has_metric[static_cast<std::size_t>(metric)] = true;
  return unit;
}

class DatabaseTest : public ::testing::Test {
 protected:
  void SetUp() override { open(); }

  void open(const std::string& zone = "UTC") {
    db_.reset();
    auto opened = Database::open({.directory = dir_.path().string(), .time_zone = zone}, clock_);
    ASSERT_TRUE(opened) << opened.error().message;
    db_ = std::move(*opened);
  }
  [[nodiscard]] std::string file() const { return (dir_.path() / "ceems.db").string(); }

  static ClusterUpdate update(std::int64_t start,
                              std::int64_t end,
                              std::vector<model::Unit> units,
                              const std::string& cluster = "hpc") {
    ClusterUpdate result;
    result.cluster = {.id = cluster, .manager = "slurm", .updaters = {}};
    result.window = {start, end};
    result.units = std::move(units);
    return result;
  }
  void write(const ClusterUpdate& update) {
    const auto report = db_->writer().write(update);
    ASSERT_TRUE(report) << report.error().message;
  }
  void write(std::int64_t start, std::int64_t end, std::vector<model::Unit> units) {
    write(update(start, end, std::move(units)));
  }
  std::string text(std::string_view sql) const {
    auto connection = Connection::open(file(), OpenMode::kReadOnly);
    const auto result = connection->query_text(sql);
    return result ? *result : result.error().message;
  }

  testing::TempDir dir_;
  testing::FakeClock clock_;
  std::unique_ptr<Database> db_;
};

std::vector<std::string> column(Result<std::unique_ptr<Cursor>> cursor, std::size_t index) {
  std::vector<std::string> values;
  if (!cursor) {
    return {cursor.error().message};
  }
  while (true) {
    const auto row = (*cursor)->next();
    if (!row) {
      return {row.error().message};
    }
    if (!*row) {
      return values;
    }
    values.emplace_back((*cursor)->text(index));
  }
}

using Texts = std::vector<std::string>;

TEST_F(DatabaseTest, AUnitAccumulatesOverWindows) {
  auto first = job("7", kNow + kMinute);
  with_times(first, 840, 1000);
  with(first, Metric::kAvgCpuUsage, {{"global", 10}});
  with(first, Metric::kTotalCpuEnergyUsageKwh, {{"total", 0.5}});
  write(kNow, kNow + 15 * kMinute, {first});
  auto second = job("7", kNow + kMinute, kNow + 20 * kMinute);
  with_times(second, 300, 500);
  with(second, Metric::kAvgCpuUsage, {{"global", 25}});
  with(second, Metric::kTotalCpuEnergyUsageKwh, {{"total", 0.25}});
  second.tags = R"({"qos":"high","a":[1.50]})";
  write(kNow + 15 * kMinute, kNow + 30 * kMinute, {second});
  EXPECT_EQ(text("SELECT count(*) FROM units"), "1");
  EXPECT_EQ(text("SELECT total_time_seconds FROM units"),
            R"({"alloc_cputime":1500,"walltime":1140})");
  EXPECT_EQ(text("SELECT avg_cpu_usage FROM units"), R"({"global":15})");
  EXPECT_EQ(text("SELECT total_cpu_energy_usage_kwh FROM units"), R"({"total":0.75})");
  EXPECT_EQ(
      text("SELECT state||' '||num_updates||' '||last_updated_at||' '||last_updated_at_ts||' '||"
           "ended_at_ts||tags||allocation FROM units"),
      R"(COMPLETED 2 2026-01-01T00:30:00 1767227400000 1767226800000{"a":[1.50],"qos":"high"}{"cpus":2})");
  // What nobody delivered is null at first and an empty map after a merge.
  EXPECT_EQ(text("SELECT avg_gpu_usage FROM units"), "{}");
  EXPECT_EQ(text("SELECT num_units||' '||num_updates||' "
                 "'||groupname||total_time_seconds||avg_cpu_usage FROM usage"),
            R"(1 2 phys{"alloc_cputime":1500,"walltime":1140}{"global":15})");
  EXPECT_EQ(
      text("SELECT num_units||' '||last_updated_at||total_cpu_energy_usage_kwh FROM daily_usage"),
      R"(1 2026-01-01T00:00:00{"total":0.75})");
}

TEST_F(DatabaseTest, NeverSetMapsAreNullInAFirstRow) {
  write(kNow, kNow + kMinute, {job("7", kNow)});
  EXPECT_EQ(text("SELECT avg_cpu_usage FROM units"), "null");
  EXPECT_EQ(text("SELECT avg_cpu_usage FROM usage"), "null");
  EXPECT_EQ(text("SELECT total_time_seconds FROM units"), "{}");
}

TEST_F(DatabaseTest, UsageIsTheWeightedMeanOfUnits) {
  auto a = job("1", kNow, kNow + kMinute);
  auto b = job("2", kNow, kNow + kMinute);
  with(with_times(a, 60, 1800), Metric::kAvgCpuUsage, {{"global", 10}});
  with(with_times(b, 60, 900), Metric::kAvgCpuUsage, {{"global", 25}});
  write(kNow, kNow + kMinute, {a, b});
  EXPECT_EQ(text("SELECT num_units||avg_cpu_usage FROM usage"), R"(2{"global":15})");
  EXPECT_EQ(text("SELECT num_units||avg_cpu_usage FROM daily_usage"), R"(2{"global":15})");
}

TEST_F(DatabaseTest, AWindowMustStartAtTheWatermark) {
  EXPECT_FALSE(db_->writer().watermark("hpc").value());
  write(kNow, kNow + kMinute, {});
  EXPECT_EQ(db_->writer().watermark("hpc").value(), kNow + kMinute);
  EXPECT_FALSE(db_->writer().watermark("other").value());
  for (const std::int64_t start : {kNow, kNow + 2 * kMinute}) {
    auto unit = job("1", kNow);
    const auto report = db_->writer().write(update(start, kNow + kHour, {unit}));
    ASSERT_FALSE(report);
    EXPECT_EQ(report.error().code, ErrorCode::kInvalidArgument);
  }
  EXPECT_FALSE(db_->writer().write(update(kNow + kMinute, kNow + kMinute, {})));
  EXPECT_EQ(text("SELECT count(*) FROM units"), "0");
  open();
  EXPECT_EQ(db_->writer().watermark("hpc").value(), kNow + kMinute);
}

TEST_F(DatabaseTest, AUnitReportedAgainAfterItsEndAddsNothing) {
  auto unit = job("1", kNow - kHour, kNow - kMinute);
  with_times(unit, 3540, 7080);
  write(kNow, kNow + kMinute, {unit});  // first sighting: counts in full
  EXPECT_EQ(text("SELECT total_time_seconds FROM units"),
            R"({"alloc_cputime":7080,"walltime":3540})");
  write(kNow + kMinute, kNow + 2 * kMinute, {unit});
  EXPECT_EQ(text("SELECT total_time_seconds FROM units"),
            R"({"alloc_cputime":7080,"walltime":3540})");
  EXPECT_EQ(text("SELECT total_time_seconds FROM usage"),
            R"({"alloc_cputime":7080,"walltime":3540})");
  EXPECT_EQ(text("SELECT num_units||' '||num_updates FROM usage"), "1 1");
}

TEST_F(DatabaseTest, ALateEndAddsOnlyWhatWasNotCounted) {
  auto running = job("1", kNow);
  write(kNow, kNow + kHour, {with_times(running, 3600, 3600)});
  // The end lies in the first window, but is reported in the second, with the whole time.
  auto ended = job("1", kNow, kNow + kHour / 2);
  write(kNow + kHour, kNow + 2 * kHour, {with_times(ended, 1800, 1800)});
  EXPECT_EQ(text("SELECT total_time_seconds FROM units"),
            R"({"alloc_cputime":3600,"walltime":3600})");
  auto other = job("2", kNow);
  write(kNow + 2 * kHour, kNow + 3 * kHour, {with_times(other, 3600, 3600)});
  auto other_ended = job("2", kNow, kNow + 3 * kHour);
  write(kNow + 3 * kHour, kNow + 4 * kHour, {with_times(other_ended, 10800, 10800)});
  EXPECT_EQ(text("SELECT total_time_seconds FROM units WHERE uuid='2'"),
            R"({"alloc_cputime":10800,"walltime":10800})");
}

TEST_F(DatabaseTest, APendingRowIsReplacedByTheStartedOne) {
  auto pending = job("1", 0);
  pending.project.clear();
  write(kNow, kNow + kMinute, {pending});
  EXPECT_EQ(text("SELECT started_at FROM units"), "Unknown");
  auto started = job("1", kNow + 90'000);
  with_times(started, 30, 30);
  write(kNow + kMinute, kNow + 2 * kMinute, {started});
  EXPECT_EQ(text("SELECT count(*)||started_at_ts||project FROM units"), "11767225690000fluids");
  EXPECT_EQ(text("SELECT sum(num_units) FROM usage"), "1");
}

TEST_F(DatabaseTest, ARecycledIdIsAnotherUnit) {
  auto a = job("1", kNow, kNow + 10);
  auto b = job("1", kNow + 20, kNow + 30);
  write(kNow, kNow + kMinute, {a, b});
  EXPECT_EQ(text("SELECT count(*) FROM units"), "2");
  EXPECT_EQ(text("SELECT num_units FROM usage"), "2");
}

TEST_F(DatabaseTest, TheZoneOfTextsDoesNotMakeAnotherUnit) {
  write(kNow, kNow + kMinute, {job("1", kNow)});
  auto same = job("1", kNow);
  same.started_at = "the same moment in another zone";
  write(kNow + kMinute, kNow + 2 * kMinute, {same});
  EXPECT_EQ(text("SELECT count(*)||num_updates FROM units"), "12");
}

TEST_F(DatabaseTest, EmptyNamesAreFilledInLater) {
  auto unit = job("1", kNow);
  unit.name.clear();
  unit.username.clear();
  unit.project.clear();
  unit.groupname.clear();
  write(kNow, kNow + kMinute, {unit});
  auto named = job("1", kNow);
  named.allocation = R"({"cpus":4})";
  write(kNow + kMinute, kNow + 2 * kMinute, {named});
  EXPECT_EQ(text("SELECT name||username||project||groupname||allocation FROM units"),
            R"(job-1adafluidsphys{"cpus":4})");
  // And are not taken away again.
  unit.allocation = "";
  write(kNow + 2 * kMinute, kNow + 3 * kMinute, {unit});
  EXPECT_EQ(text("SELECT name||username||project||allocation FROM units"),
            R"(job-1adafluids{"cpus":4})");
  EXPECT_EQ(text("SELECT num_updates FROM usage WHERE username='ada'"), "2");
}

TEST_F(DatabaseTest, HostileTextsAreStoredAsTheyAre) {
  auto unit = job("'; DROP TABLE units; --", kNow);
  unit.name = std::string("\xff\x01\0", 3);
  unit.allocation = "{broken";
  unit.tags = "[1]";
  unit.total_time_seconds = {{"walltime", std::numeric_limits<double>::quiet_NaN()}};
  write(kNow, kNow + kMinute, {unit});
  EXPECT_EQ(text("SELECT uuid FROM units"), "'; DROP TABLE units; --");
  EXPECT_EQ(text("SELECT hex(name)||allocation||tags||total_time_seconds FROM units"),
            R"(FF0100{}{}{"walltime":0})");
}

TEST_F(DatabaseTest, MalformedMapsOfOthersCountAsEmpty) {
  auto unit = job("1", kNow);
  write(kNow, kNow + kMinute, {with_times(unit, 60, 60)});
  db_.reset();
  {
    auto connection = Connection::open(file(), OpenMode::kReadWrite).value();
    ASSERT_TRUE(
        connection.execute("UPDATE units SET total_time_seconds='{x', avg_cpu_usage=NULL;"
                           "UPDATE usage SET total_time_seconds='{\"walltime\":true}'"));
  }
  open();
  write(kNow + kMinute, kNow + 2 * kMinute, {with_times(unit, 60, 60)});
  EXPECT_EQ(text("SELECT total_time_seconds FROM units"), R"({"alloc_cputime":60,"walltime":60})");
  EXPECT_EQ(text("SELECT total_time_seconds FROM usage"), R"({"alloc_cputime":60,"walltime":60})");
}

TEST_F(DatabaseTest, DaysAreLocal) {
  open("America/New_York");
  // 2026-01-01T22:00 to 23:00 there is the second of January in UTC.
  const std::int64_t evening = kNow + kDay + 3 * kHour;
  write(evening, evening + kHour, {job("1", evening)});
  EXPECT_EQ(text("SELECT last_updated_at FROM daily_usage"), "2026-01-01T00:00:00");
  EXPECT_EQ(text("SELECT last_updated_at FROM usage"), "2026-01-01T23:00:00");
  // A window that ends at midnight belongs to the day it measures.
  write(evening + kHour, evening + 2 * kHour, {job("2", evening)});
  EXPECT_EQ(text("SELECT count(*)||' '||num_units FROM daily_usage"), "1 2");
  write(evening + 2 * kHour, evening + 3 * kHour, {job("3", evening)});
  EXPECT_EQ(text("SELECT group_concat(last_updated_at,' ') FROM daily_usage"),
            "2026-01-01T00:00:00 2026-01-02T00:00:00");
}

TEST_F(DatabaseTest, UsersAndProjectsFollowASuccessfulFetchOnly) {
  auto first = update(kNow, kNow + kMinute, {});
  first.users = std::vector<model::User>{{.name = "ada", .projects = {"fluids"}},
                                         {.name = "bob", .projects = {"optics"}}};
  first.projects = std::vector<model::Project>{{.name = "fluids", .users = {"ada"}},
                                               {.name = "optics", .users = {"bob"}}};
  write(first);
  auto other = update(kNow, kNow + kMinute, {}, "cloud");
  other.users = std::vector<model::User>{{.name = "bob"}};
  write(other);
  EXPECT_EQ(column(db_->reader().users({.everybody = true}, {}), 3), (Texts{"bob", "ada", "bob"}));
  // A failed fetch and an empty one revoke nobody.
  write(kNow + kMinute, kNow + 2 * kMinute, {});
  auto empty = update(kNow + 2 * kMinute, kNow + 3 * kMinute, {});
  empty.users.emplace();
  empty.projects.emplace();
  write(empty);
  EXPECT_EQ(column(db_->reader().projects({.members = {.everybody = true}}), 3),
            (Texts{"fluids", "optics"}));
  auto smaller = update(kNow + 3 * kMinute, kNow + 4 * kMinute, {});
  smaller.users = std::vector<model::User>{{.name = "ada", .projects = {"fluids"}}};
  smaller.projects = std::vector<model::Project>{{.name = "fluids", .users = {"ada"}}};
  write(smaller);
  EXPECT_EQ(column(db_->reader().users({.everybody = true}, {"hpc"}), 3), (Texts{"ada"}));
  EXPECT_EQ(column(db_->reader().users({.everybody = true}, {}), 3), (Texts{"bob", "ada"}));
  EXPECT_EQ(column(db_->reader().projects({.members = {.everybody = true}}), 4),
            (Texts{R"(["ada"])"}));
}

TEST_F(DatabaseTest, AdminsAreKeptBySource) {
  ASSERT_TRUE(db_->writer().write_admins("ceems", {"root", "eve", ""}));
  ASSERT_TRUE(db_->writer().write_admins("grafana", {"eve", "gina"}));
  EXPECT_EQ(
      text("SELECT group_concat(name||tags,' ') FROM (SELECT * FROM admin_users ORDER BY name)"),
      R"(eve["grafana"] gina["grafana"] root["ceems"])");
  ASSERT_TRUE(db_->writer().write_admins("grafana", {"gina"}));
  EXPECT_EQ(text("SELECT tags FROM admin_users WHERE name='eve'"), R"(["ceems"])");
  ASSERT_TRUE(db_->writer().write_admins("ceems", {"root"}));
  EXPECT_FALSE(db_->reader().is_admin("eve").value());
  EXPECT_TRUE(db_->reader().is_admin("gina").value());
  EXPECT_FALSE(db_->reader().is_admin("GINA").value());
  EXPECT_EQ(
      text("SELECT cluster_id||uid||resource_manager||projects FROM admin_users WHERE name='root'"),
      "all[]");
  open();  // does not bring anybody back
  EXPECT_FALSE(db_->reader().is_admin("eve").value());
}

TEST_F(DatabaseTest, PurgesWhatEndedBeforeTheCutoff) {
  auto old = job("old", kNow - 10 * kDay, kNow - 9 * kDay);
  write(kNow - 9 * kDay - kHour, kNow - 9 * kDay, {old, job("lost", kNow - 10 * kDay)});
  auto b = job("new", kNow - kHour, kNow - kMinute);
  b.username = "bob";
  write(kNow - 9 * kDay, kNow, {b, job("runs", kNow - kHour)});
  EXPECT_EQ(text("SELECT count(*) FROM units"), "4");
  ASSERT_TRUE(db_->writer().purge(kNow - 2 * kDay));
  // "lost" has no end but was not seen although its cluster was fetched up to now.
  EXPECT_EQ(text("SELECT group_concat(uuid,' ') FROM (SELECT uuid FROM units ORDER BY uuid)"),
            "new runs");
  EXPECT_EQ(text("SELECT group_concat(last_updated_at,' ') FROM daily_usage"),
            "2025-12-31T00:00:00 2025-12-31T00:00:00");
  EXPECT_EQ(text("SELECT count(*) FROM usage"), "2");
  // What was purged is not taken in again, so it is not counted again.
  write(kNow, kNow + kMinute, {old});
  EXPECT_EQ(text("SELECT count(*) FROM units WHERE uuid='old'"), "0");
}

TEST_F(DatabaseTest, ALongStopDoesNotPurgeRunningUnits) {
  auto unit = job("runs", kNow - kHour);
  write(kNow - kHour, kNow, {with_times(unit, 3600, 3600)});
  ASSERT_TRUE(db_->writer().purge(kNow + 100 * kDay));  // nothing was fetched since
  EXPECT_EQ(text("SELECT count(*) FROM units"), "1");
}

TEST_F(DatabaseTest, AFullDiskIsOneLineAndWorthAnotherTry) {
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
    EXPECT_EQ(done.error().message, "data base " + file() + ": database or disk is full");
  }
}

TEST_F(DatabaseTest, ALockedFileIsReportedAndTheWriterGoesOnLater) {
  auto other = Connection::open(file(), OpenMode::kReadWrite).value();
  ASSERT_TRUE(other.execute("BEGIN IMMEDIATE"));
  std::jthread release([&other] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    static_cast<void>(other.execute("ROLLBACK"));
  });
  write(kNow, kNow + kMinute, {job("1", kNow)});  // waits for it
  EXPECT_EQ(text("SELECT count(*) FROM units"), "1");
}

TEST_F(DatabaseTest, AFailedWriteLeavesNoTransactionOpen) {
  ASSERT_FALSE(db_->writer().write(update(kNow, kNow - 1, {})));
  auto other = Connection::open(file(), OpenMode::kReadWrite).value();
  ASSERT_TRUE(other.execute("BEGIN IMMEDIATE; ROLLBACK"));
  write(kNow, kNow + kMinute, {});
}

TEST_F(DatabaseTest, UnitsAreFilteredByOwnerAndEnd) {
  auto mine = job("mine", kNow, kNow + 10 * kMinute);
  auto runs = job("runs", kNow);
  auto theirs = job("theirs", kNow, kNow + 10 * kMinute);
  theirs.username = "bob";
  auto service = job("service", kNow, kNow + 10 * kMinute);
  service.username = "fluids:svc";
  auto hidden = job("hidden", kNow, kNow + 10 * kMinute);
  hidden.ignore = true;
  auto first = update(kNow, kNow + kHour, {mine, runs, theirs, service, hidden});
  first.projects = std::vector<model::Project>{{.name = "fluids", .users = {"ada", "fluids:svc"}}};
  write(first);
  auto foreign = update(kNow, kNow + kHour, {service}, "cloud");
  foreign.projects = std::vector<model::Project>{{.name = "fluids", .users = {"bob"}}};
  write(foreign);
  Reader& reader = db_->reader();
  const std::vector<std::size_t> fields{2};
  UnitQuery query;
  EXPECT_EQ(column(reader.units(query, fields), 0), Texts{});  // the zero scope is nobody
  query.owners.names = {"ada"};
  EXPECT_EQ(column(reader.units(query, fields), 0), (Texts{"mine", "runs"}));
  query.owners.service_projects = {"fluids"};
  // The service account of the cluster where ada is a member, not of the other one.
  EXPECT_EQ(column(reader.units(query, fields), 0), (Texts{"mine", "runs", "service"}));
  query.owners.service_projects.clear();
  query.ended = TimeRange{kNow, kNow + 10 * kMinute};
  EXPECT_EQ(column(reader.units(query, fields), 0), (Texts{"mine"}));
  query.running = true;
  EXPECT_EQ(column(reader.units(query, fields), 0), (Texts{"mine", "runs"}));
  query.ended = TimeRange{kNow, kNow + 10 * kMinute - 1};
  query.running = false;
  EXPECT_EQ(column(reader.units(query, fields), 0), Texts{});
  query.ended.reset();
  query.owners = {.everybody = true};
  query.uuids = {"theirs", "' OR 1=1 --"};
  EXPECT_EQ(column(reader.units(query, fields), 0), (Texts{"theirs"}));
  query.uuids.clear();
  query.clusters = {"cloud"};
  EXPECT_EQ(column(reader.units(query, fields), 0), (Texts{"service"}));
}

TEST_F(DatabaseTest, PagesOfUnitsFollowOneAnotherWithoutGapOrOverlap) {
  std::vector<model::Unit> units;
  for (const std::string uuid : {"b", "a", "B", "c"}) {
    units.push_back(job(uuid, kNow));
    units.push_back(job(uuid, kNow - kHour, kNow - 1));  // the id was used before
  }
  write(update(kNow, kNow + kHour, units, "one"));
  write(update(kNow, kNow + kHour, units, "two"));
  const std::vector<std::size_t> fields{0, 2, 8};
  UnitQuery query;
  query.owners.everybody = true;
  std::vector<UnitKey> all;
  const auto read = [&] {
    auto cursor = db_->reader().units(query, fields).value();
    std::size_t count = 0;
    for (; cursor->next().value(); ++count) {
      all.push_back({std::string(cursor->text(0)), std::string(cursor->text(1)),
                     std::string(cursor->text(2))});
    }
    return count;
  };
  EXPECT_EQ(read(), 16U);
  const auto whole = std::exchange(all, {});
  EXPECT_EQ(whole[0].uuid, "B");  // byte order
  query.limit = 3;
  for (std::size_t count = 3; count == 3;) {
    count = read();
    EXPECT_EQ(count, all.size() == 16 ? 1U : 3U);
    query.after = all.back();
    if (all.size() == 6) {  // what comes in between and sorts before is not seen
      write(update(kNow + kHour, kNow + 2 * kHour, {job("0", kNow)}, "one"));
    }
  }
  ASSERT_EQ(all.size(), 16U);
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].cluster_id + all[i].uuid + all[i].started_at,
              whole[i].cluster_id + whole[i].uuid + whole[i].started_at);
  }
  query.limit = std::numeric_limits<std::size_t>::max();
  query.after = UnitKey{"' OR 1=1", "", ""};
  EXPECT_EQ(read(), 17U);
}

TEST_F(DatabaseTest, ALeadSeesTheWholeProjectInItsCluster) {
  auto own = job("own", kNow);
  auto fellow = job("fellow", kNow);
  fellow.username = "bob";
  auto other = job("other", kNow);
  other.username = "bob";
  other.project = "optics";
  for (const std::string cluster : {"a", "b"}) {
    auto first = update(kNow, kNow + kHour, {own, fellow, other}, cluster);
    first.projects = std::vector<model::Project>{{.name = "fluids", .users = {"bob"}},
                                                 {.name = "optics", .users = {"bob"}}};
    write(first);
  }
  Reader& reader = db_->reader();
  const std::vector<std::size_t> fields{0, 2};
  UnitQuery query;
  query.owners.led_projects = {{"a", "fluids"}};
  EXPECT_EQ(column(reader.units(query, fields), 1), (Texts{"fellow", "own"}));
  query.owners.names = {"ada"};
  EXPECT_EQ(column(reader.units(query, fields), 1), (Texts{"fellow", "own", "own"}));
  EXPECT_EQ(column(reader.units(query, fields), 0), (Texts{"a", "a", "b"}));
  UsageQuery usage{.members = query.owners};  // ada is a member of nothing
  EXPECT_EQ(column(reader.usage(usage, kAllUsage), 0), (Texts{"a", "a"}));
  EXPECT_EQ(column(reader.projects(usage), 3), (Texts{"fluids"}));
  EXPECT_EQ(column(reader.users(query.owners, {}), 3), Texts{});
  CurrentUsageQuery current{.rows = usage, .updated = {kNow, kNow + kHour}};
  EXPECT_EQ(reader.current_usage(current)->size(), 2U);
  current.daily = true;
  EXPECT_EQ(reader.current_usage(current)->size(), 2U);
  EXPECT_EQ(reader.count_member_units(query.owners, {"a", "b"}, {"own", "fellow"}).value(), 2U);
  EXPECT_EQ(reader.count_member_units(query.owners, {"b"}, {"own", "fellow"}).value(), 0U);
  EXPECT_EQ(reader.count_member_units(query.owners, {"a"}, {"other"}).value(), 0U);
}

TEST_F(DatabaseTest, MembershipIsPerCluster) {
  auto a = update(kNow, kNow + kHour, {job("1", kNow), job("2", kNow)}, "a");
  a.projects = std::vector<model::Project>{{.name = "fluids", .users = {"ada"}}};
  write(a);
  auto b = update(kNow, kNow + kHour, {job("1", kNow), job("3", kNow)}, "b");
  b.projects = std::vector<model::Project>{{.name = "fluids", .users = {"bob"}}};
  write(b);
  Reader& reader = db_->reader();
  EXPECT_EQ(reader.count_member_units({.names = {"ada"}}, {"a"}, {"1", "2"}).value(), 2U);
  EXPECT_EQ(reader.count_member_units({.names = {"ada"}}, {"a", "b"}, {"1", "3"}).value(), 1U);
  EXPECT_EQ(reader.count_member_units({.names = {"ada"}}, {"b"}, {"1"}).value(), 0U);
  EXPECT_EQ(reader.count_member_units({.names = {"eve"}}, {"a", "b"}, {"1"}).value(), 0U);
  UsageQuery usage{.members = {.names = {"ada"}}};
  EXPECT_EQ(column(reader.usage(usage, kAllUsage), 0), (Texts{"a"}));
  EXPECT_EQ(column(reader.projects(usage), 1), (Texts{"a"}));
  EXPECT_EQ(column(reader.usage({}, kAllUsage), 0), Texts{});
  EXPECT_EQ(column(reader.clusters(), 0), (Texts{"a", "b"}));
  EXPECT_EQ(column(reader.stats({}, std::nullopt), 2), (Texts{"2", "2"}));
}

TEST_F(DatabaseTest, CurrentUsageSumsInFloatingPoint) {
  auto a = job("1", kNow, kNow + 1);
  auto b = job("2", kNow, kNow + 1);
  auto c = job("3", kNow, kNow + 1);
  auto d = job("4", kNow);
  with(with_times(a, 60, 100), Metric::kAvgCpuUsage, {{"global", 50}});
  with(with_times(b, 60, 100), Metric::kAvgCpuUsage, {{"global", 51}});
  with(a, Metric::kTotalIoReadStats, {{"bytes", 6e18}});
  with(b, Metric::kTotalIoReadStats, {{"bytes", 6e18}});
  with_times(c, 60, 1e6);  // no value: does not dilute the average
  with_times(d, 60, 0);
  d.username = "bob";
  auto first = update(kNow, kNow + kHour, {a, b, c, d});
  first.projects = std::vector<model::Project>{{.name = "fluids", .users = {"ada"}}};
  write(first);
  CurrentUsageQuery query;
  query.updated = {kNow, kNow + kHour};
  query.maps.fill(true);
  EXPECT_TRUE(db_->reader().current_usage(query)->empty());
  query.rows.members.names = {"ada"};
  const auto groups = db_->reader().current_usage(query).value();
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].username, "ada");
  EXPECT_EQ(groups[0].num_units, 3);
  EXPECT_EQ(groups[0].groupname, "phys");
  EXPECT_EQ(groups[0].maps[0], (model::MetricMap{{"walltime", 180}, {"alloc_cputime", 1000200}}));
  EXPECT_EQ(groups[0].maps[1], (model::MetricMap{{"global", 50.5}}));
  EXPECT_EQ(groups[0].maps[10], (model::MetricMap{{"bytes", 1.2e19}}));
  EXPECT_EQ(groups[1].username, "bob");  // all members of own projects
  EXPECT_EQ(groups[1].maps[1], (model::MetricMap{{"global", 0}}));
  query.terminated_only = true;
  EXPECT_EQ(db_->reader().current_usage(query)->size(), 1U);
  query.terminated_only = false;
  query.daily = true;
  EXPECT_EQ(db_->reader().current_usage(query).value()[0].num_units, 3);
  query.updated = {kNow + kHour + 1, kNow + 2 * kHour};
  EXPECT_TRUE(db_->reader().current_usage(query)->empty());
}

TEST_F(DatabaseTest, ClustersAreNotMixedInCurrentUsage) {
  auto a = job("1", kNow, kNow + 1);
  write(update(kNow, kNow + kHour, {with_times(a, 60, 60)}, "a"));
  write(update(kNow, kNow + kHour, {with_times(a, 90, 90)}, "b"));
  CurrentUsageQuery query;
  query.updated = {kNow, kNow + kHour};
  query.maps.fill(true);
  query.rows.members.everybody = true;
  const auto groups = db_->reader().current_usage(query).value();
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].cluster_id, "a");
  EXPECT_EQ(groups[1].maps[0].at("walltime"), 90);
}

TEST_F(DatabaseTest, ReadersSeeWholeWindowsWhileTheWriterWrites) {
  std::atomic<bool> done{false};
  std::atomic<int> reads{0};
  std::vector<std::jthread> readers;
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back([this, &done, &reads] {
      const std::vector<std::size_t> fields{2};
      UnitQuery query;
      query.owners.everybody = true;
      while (!done || reads < 3) {
        const auto uuids = column(db_->reader().units(query, fields), 0);
        EXPECT_EQ(uuids.size() % 10, 0U) << uuids.size();
        ++reads;
      }
    });
  }
  for (int window = 0; window < 20; ++window) {
    std::vector<model::Unit> units;
    for (int i = 0; i < 10; ++i) {
      units.push_back(job(std::to_string(window * 10 + i), kNow));
    }
    write(kNow + window * kMinute, kNow + (window + 1) * kMinute, units);
  }
  const std::uint64_t commits = db_->reader().generation();
  done = true;
  readers.clear();
  EXPECT_EQ(commits, 20U);
  EXPECT_GE(reads, 3);
  EXPECT_EQ(text("SELECT count(*) FROM units"), "200");
}

TEST_F(DatabaseTest, BackupIsCompleteAndPrivate) {
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

TEST_F(DatabaseTest, AfterCloseTheMainFileHoldsEverything) {
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
}  // namespace ceems::store
