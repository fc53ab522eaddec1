#include "store/reader.h"

#include <atomic>
#include <chrono>
#include <limits>
#include <thread>
#include <utility>

#include "store/facts.h"
#include "store/reports.h"
#include "store/test_database.h"

namespace ceems::store {
namespace {

using model::Metric;

const std::vector<std::size_t> kAllUsage{0, 2, 3, 5, 6, 7, 9};

using ReaderTest = EveryDatabase;
INSTANTIATE_TEST_SUITE_P(All,
                         ReaderTest,
                         ::testing::Values(Backend::kSqlite, Backend::kPostgres),
                         backend_name);

TEST_P(ReaderTest, UnitsAreFilteredByOwnerAndEnd) {
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
  EXPECT_EQ(column(reader.units(query, fields), 0), Texts{});  // the zero scope has no rows
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

TEST_P(ReaderTest, PagesOfUnitsFollowOneAnotherWithoutGapOrOverlap) {
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

TEST_P(ReaderTest, ALeadSeesTheWholeProjectInItsCluster) {
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
  EXPECT_EQ(column(reader.usage(usage, kAllUsage), 0), (Texts{"a", "a", "b"}));
  EXPECT_EQ(column(reader.projects(usage), 3), (Texts{"fluids"}));
  EXPECT_EQ(column(reader.users(query.owners, {}), 3), Texts{});
  CurrentUsageQuery current{.rows = usage, .updated = {kNow, kNow + kHour}};
  EXPECT_EQ(reader.current_usage(current)->size(), 3U);
  current.daily = true;
  EXPECT_EQ(reader.current_usage(current)->size(), 3U);
  EXPECT_EQ(reader.count_member_units(query.owners, {"a", "b"}, {"own", "fellow"}).value(), 2U);
  EXPECT_EQ(reader.count_member_units(query.owners, {"b"}, {"own", "fellow"}).value(), 1U);
  EXPECT_EQ(reader.count_member_units(query.owners, {"a"}, {"other"}).value(), 0U);
}

TEST_P(ReaderTest, AUserIsKnownByAClusterOrByUnits) {
  Reader& reader = db_->reader();
  EXPECT_TRUE(reader.knows_user("ada").value());  // nothing has been read yet
  auto first = update(kNow - kHour, kNow, {job("1", kNow - kHour, kNow)});
  first.users = std::vector<model::User>{{.name = "bob", .projects = {"fluids"}}};
  write(first);
  EXPECT_TRUE(reader.knows_user("ada").value());
  EXPECT_TRUE(reader.knows_user("bob").value());
  for (const char* name : {"Ada", "ada@uni.example", "UNI\\ada", "eve", ""}) {
    EXPECT_FALSE(reader.knows_user(name).value()) << name;
  }
}

TEST_P(ReaderTest, CommitsOfReportsLeaveUsageAsItIs) {
  Reader& reader = db_->reader();
  const std::uint64_t before = reader.usage_generation();
  write(update(kNow - kHour, kNow, {job("1", kNow - kHour, kNow)}));
  EXPECT_GT(reader.usage_generation(), before);
  const ReportKey key{.cluster_id = "hpc", .uuid = "1", .started_at_ts = kNow - kHour};
  // PostgreSQL announces commits to this program, too, a moment later: that of the window may be
  // announced while reports are committed, but only once.
  EXPECT_TRUE(testing::eventually([&] {
    const std::uint64_t usage = reader.usage_generation();
    const std::uint64_t all = reader.generation();
    EXPECT_TRUE(db_->writer().postpone_reports({key}, kNow));
    EXPECT_TRUE(db_->writer().drop_reports({key}));
    EXPECT_TRUE(testing::eventually([&] { return reader.generation() > all; }));
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    return usage == reader.usage_generation();
  }));
}

TEST_P(ReaderTest, MissingSumsAreComputedWithoutAWindow) {
  for (int day = 0; day < 40; ++day) {
    const std::int64_t start = kNow + day * kDay;
    write(start, start + kDay, {job(std::to_string(day), start, start + kHour)});
  }
  CurrentUsageQuery query;
  query.updated = {kNow, kNow + 50 * kDay};
  query.rows.members.everybody = true;
  const auto expected = db_->reader().current_usage(query).value().at(0).num_units;
  EXPECT_EQ(expected, 40);
  execute("DELETE FROM ceems_unit_spans");
  std::size_t rounds = 0;
  std::size_t left = 1;
  for (; left > 0 && rounds < 100; ++rounds) {
    const auto done = db_->writer().fill_sums();
    ASSERT_TRUE(done) << done.error().message;
    left = *done;
  }
  EXPECT_EQ(left, 0U);
  // 240 spans of four hours and those above them, as far as they are over.
  EXPECT_GT(std::stoi(text("SELECT count(*) FROM ceems_unit_spans")), 300);
  EXPECT_EQ(db_->reader().current_usage(query).value().at(0).num_units, expected);
}

TEST_P(ReaderTest, MembersSeeWhatRanWhileTheProjectHadThem) {
  std::int64_t end = kNow;
  const auto next = [&](const std::string& uuid, bool runs, std::int64_t length,
                        std::vector<std::string> members) {
    auto unit = job(uuid, end + kMinute, runs ? 0 : end + 2 * kMinute);
    unit.username = "bob";
    auto window = update(end, end + length, {unit});
    window.projects = std::vector<model::Project>{{.name = "fluids", .users = std::move(members)}};
    write(window);
    end += length;
  };
  const auto seen = [&](const std::string& user) {
    std::string all;
    for (const std::string uuid : {"early", "running", "joined", "gone", "back", "late"}) {
      const bool sees =
          db_->reader().count_member_units({.names = {user}}, {"hpc"}, {uuid}).value() == 1;
      all += sees ? uuid + " " : "";
      for (const UnitLife& life :
           db_->reader().unit_lives({.names = {user}}, "hpc", {uuid}).value()) {
        EXPECT_EQ(life.in_scope, sees) << user << uuid;
      }
    }
    return all;
  };
  next("early", false, kHour, {"bob", "eve"});
  next("running", true, kHour, {"bob", "eve"});
  EXPECT_EQ(seen("ada"), "");
  next("joined", false, kHour, {"ada", "bob", "eve"});
  EXPECT_EQ(seen("ada"), "running joined ");
  EXPECT_EQ(seen("eve"), "early running joined ");
  EXPECT_EQ(seen("bob"), "early running joined ");
  next("gone", false, 6 * kDay, {"bob"});
  EXPECT_EQ(seen("ada") + seen("eve"), "");
  next("back", false, kHour, {"ada", "bob", "eve"});  // within a week
  EXPECT_EQ(seen("ada"), "running joined gone back ");
  EXPECT_EQ(seen("eve"), "early running joined gone back ");
  next("away", false, kHour, {"bob"});
  next("idle", false, 8 * kDay, {"bob"});
  next("late", false, kHour, {"ada", "bob"});
  EXPECT_EQ(seen("ada"), "running late ");
  EXPECT_EQ(seen("bob"), "early running joined gone back late ");
  // What is one's own stays one's own.
  next("own", false, kHour, {"ada"});
  EXPECT_EQ(seen("bob"), "early running joined gone back late ");
}

TEST_P(ReaderTest, OwnUnitsAreOwnWithoutAnyMembership) {
  auto own = job("own", kNow - kHour, kNow);
  auto nowhere = job("nowhere", kNow - kHour, kNow);
  nowhere.project = "";  // no associations at all
  auto fellow = job("fellow", kNow - kHour, kNow);
  fellow.username = "bob";
  auto first = update(kNow - kHour, kNow, {own, nowhere, fellow});
  first.projects = std::vector<model::Project>{{.name = "fluids", .users = {"bob"}}};
  write(first);
  Reader& reader = db_->reader();
  const Scope ada{.names = {"ada"}};
  EXPECT_EQ(reader.count_member_units(ada, {"hpc"}, {"own", "nowhere"}).value(), 2U);
  EXPECT_EQ(reader.count_member_units(ada, {"hpc"}, {"fellow"}).value(), 0U);
  for (const UnitLife& life : reader.unit_lives(ada, "hpc", {"own", "nowhere", "fellow"}).value()) {
    EXPECT_EQ(life.in_scope, life.uuid != "fellow") << life.uuid;
  }
  const UsageQuery usage{.members = ada};
  EXPECT_EQ(column(reader.usage(usage, kAllUsage), 0), (Texts{"hpc", "hpc"}));
  EXPECT_EQ(column(reader.projects(usage), 3), Texts{});
  CurrentUsageQuery current{.rows = usage, .updated = {kNow - kDay, kNow}};
  for (const bool daily : {false, true}) {
    current.daily = daily;
    const auto groups = reader.current_usage(current).value();
    ASSERT_EQ(groups.size(), 2U) << daily;
    EXPECT_EQ(groups[0].username, "ada");
    EXPECT_EQ(groups[1].username, "ada");
  }
  UsageSeriesQuery days;
  days.members = ada;
  days.days = {kNow - kDay, kNow};
  std::int64_t units = 0;
  for (const UsageOfDay& day : reader.usage_by_day(days).value()) {
    units += day.units;
  }
  EXPECT_EQ(units, 2);
  SummaryQuery sums;
  sums.filter.owners.everybody = true;
  sums.filter.members = ada;
  EXPECT_EQ(reader.unit_summary(sums)->units, 2);
}

TEST_P(ReaderTest, MembershipIsPerCluster) {
  auto a = update(kNow, kNow + kHour, {job("1", kNow), job("2", kNow)}, "a");
  a.projects = std::vector<model::Project>{{.name = "fluids", .users = {"ada"}}};
  write(a);
  auto b = update(kNow, kNow + kHour, {job("1", kNow), job("3", kNow)}, "b");
  b.projects = std::vector<model::Project>{{.name = "fluids", .users = {"bob"}}};
  write(b);
  Reader& reader = db_->reader();
  EXPECT_EQ(reader.count_member_units({.names = {"ada"}}, {"a"}, {"1", "2"}).value(), 2U);
  EXPECT_EQ(reader.count_member_units({.names = {"bob"}}, {"a", "b"}, {"1", "2"}).value(), 1U);
  EXPECT_EQ(reader.count_member_units({.names = {"bob"}}, {"a"}, {"1"}).value(), 0U);
  EXPECT_EQ(reader.count_member_units({.names = {"bob"}}, {"b"}, {"1", "3"}).value(), 2U);
  EXPECT_EQ(reader.count_member_units({.names = {"eve"}}, {"a", "b"}, {"1"}).value(), 0U);
  UsageQuery usage{.members = {.names = {"bob"}}};
  EXPECT_EQ(column(reader.usage(usage, kAllUsage), 0), (Texts{"b"}));
  EXPECT_EQ(column(reader.projects(usage), 1), (Texts{"b"}));
  EXPECT_EQ(column(reader.usage({}, kAllUsage), 0), Texts{});
  EXPECT_EQ(column(reader.clusters(), 0), (Texts{"a", "b"}));
  EXPECT_EQ(column(reader.stats({}, std::nullopt), 2), (Texts{"2", "2"}));
}

TEST_P(ReaderTest, LivesOfAnIdAreThoseOfAllItsUnits) {
  auto old = job("1", kNow, kNow + kMinute);
  old.project = "secret";
  old.username = "bob";
  auto hidden = job("1", kNow + 2 * kMinute, kNow + 3 * kMinute);
  hidden.project = "secret";
  hidden.username = "bob";
  hidden.ignore = true;
  auto mine = job("1", kNow + 4 * kMinute);
  auto other = job("2", kNow, kNow + kMinute);
  auto a = update(kNow, kNow + kHour, {old, hidden, mine, other}, "a");
  a.projects = std::vector<model::Project>{{.name = "fluids", .users = {"ada"}},
                                           {.name = "secret", .users = {"bob"}}};
  write(a);
  write(update(kNow, kNow + kHour, {job("1", kNow)}, "b"));
  const auto lives = db_->reader().unit_lives({.names = {"ada"}}, "a", {"1", "x"});
  ASSERT_TRUE(lives);
  ASSERT_EQ(lives->size(), 3U);
  EXPECT_FALSE((*lives)[0].in_scope);
  EXPECT_EQ((*lives)[0].created_ms, kNow);
  EXPECT_EQ((*lives)[0].started_ms, kNow);
  EXPECT_EQ((*lives)[0].ended_ms, kNow + kMinute);
  EXPECT_FALSE((*lives)[1].in_scope);
  EXPECT_EQ((*lives)[1].started_ms, kNow + 2 * kMinute);
  EXPECT_TRUE((*lives)[2].in_scope);
  EXPECT_EQ((*lives)[2].ended_ms, 0);
  EXPECT_EQ(db_->reader().unit_lives({.names = {"ada"}}, "a", {})->size(), 0U);
  EXPECT_EQ(db_->reader().unit_lives({.names = {"ada"}}, "c", {"1"})->size(), 0U);
}

TEST_P(ReaderTest, CurrentUsageSumsInFloatingPoint) {
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

TEST_P(ReaderTest, TheHourThatComesTwiceIsTwoHours) {
  open("Europe/Paris");
  // 2026-10-25T02:30 in summer time, then an hour later in winter time.
  const std::int64_t first = 1'792'888'200'000;
  auto a = job("1", first - kMinute, first - 1);
  auto b = job("2", first + kHour - kMinute, first + kHour - 1);
  b.username = "bob";
  write(first - kMinute, first, {with_times(a, 59, 59)});
  write(first, first + kHour, {with_times(b, 59, 59)});
  EXPECT_EQ(text("SELECT last_updated_at FROM units"), "2026-10-25T02:30:00 2026-10-25T02:30:00");
  CurrentUsageQuery query;
  query.updated = {first, first + kHour - 1};
  query.maps.fill(true);
  query.rows.members.everybody = true;
  const auto groups = db_->reader().current_usage(query).value();
  ASSERT_EQ(groups.size(), 1U);
  EXPECT_EQ(groups[0].username, "ada");
  // Both belong to the same day, of 25 hours.
  EXPECT_EQ(text("SELECT DISTINCT last_updated_at FROM daily_usage"), "2026-10-25T00:00:00");
}

TEST_P(ReaderTest, ClustersAreNotMixedInCurrentUsage) {
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

TEST_P(ReaderTest, ReadersSeeWholeWindowsWhileTheWriterWrites) {
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
  EXPECT_GE(commits, 20U);
  EXPECT_GE(reads, 3);
  EXPECT_EQ(text("SELECT count(*) FROM units"), "200");
}

}  // namespace
}  // namespace ceems::store
