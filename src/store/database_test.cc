#include "store/database.h"

#include <limits>

#include "store/json.h"
#include "store/test_database.h"

namespace ceems::store {
namespace {

using model::Metric;

using DatabaseTest = EveryDatabase;
INSTANTIATE_TEST_SUITE_P(All,
                         DatabaseTest,
                         ::testing::Values(Backend::kSqlite, Backend::kPostgres),
                         backend_name);

TEST_P(DatabaseTest, IsRefusedAsLongAsItHoldsAnUnfinishedCopy) {
  db_.reset();
  execute("CREATE TABLE ceems_copy (kind text)");
  const auto refused = another();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(refused.error().message.find("holds an unfinished copy"), std::string::npos);
  execute("DROP TABLE ceems_copy");
  EXPECT_TRUE(another());
}

TEST_P(DatabaseTest, AUnitAccumulatesOverWindows) {
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
  // A map that was never delivered is null at first and empty after a merge.
  EXPECT_EQ(text("SELECT avg_gpu_usage FROM units"), "{}");
  EXPECT_EQ(text("SELECT num_units||' '||num_updates||' "
                 "'||groupname||total_time_seconds||avg_cpu_usage FROM usage"),
            R"(1 2 phys{"alloc_cputime":1500,"walltime":1140}{"global":15})");
  EXPECT_EQ(
      text("SELECT num_units||' '||last_updated_at||total_cpu_energy_usage_kwh FROM daily_usage"),
      R"(1 2026-01-01T00:00:00{"total":0.75})");
}

TEST_P(DatabaseTest, NeverSetMapsAreNullInAFirstRow) {
  write(kNow, kNow + kMinute, {job("7", kNow)});
  EXPECT_EQ(text("SELECT avg_cpu_usage FROM units"), "null");
  EXPECT_EQ(text("SELECT avg_cpu_usage FROM usage"), "null");
  EXPECT_EQ(text("SELECT total_time_seconds FROM units"), "{}");
}

TEST_P(DatabaseTest, UsageIsTheWeightedMeanOfUnits) {
  auto a = job("1", kNow, kNow + kMinute);
  auto b = job("2", kNow, kNow + kMinute);
  with(with_times(a, 60, 1800), Metric::kAvgCpuUsage, {{"global", 10}});
  with(with_times(b, 60, 900), Metric::kAvgCpuUsage, {{"global", 25}});
  write(kNow, kNow + kMinute, {a, b});
  EXPECT_EQ(text("SELECT num_units||avg_cpu_usage FROM usage"), R"(2{"global":15})");
  EXPECT_EQ(text("SELECT num_units||avg_cpu_usage FROM daily_usage"), R"(2{"global":15})");
}

TEST_P(DatabaseTest, UsageWithoutWeightsIsThatOfTheOnlyUnitOrZero) {
  auto a = job("1", kNow, kNow + kMinute);
  auto b = job("2", kNow, kNow + kMinute);
  with(with_times(a, 60, 0), Metric::kAvgCpuUsage, {{"global", 10}});
  with(with_times(b, 60, 0), Metric::kAvgCpuUsage, {{"global", 25}});
  write(kNow, kNow + kMinute, {a});
  EXPECT_EQ(text("SELECT avg_cpu_usage FROM usage"), R"({"global":10})");
  write(kNow + kMinute, kNow + 2 * kMinute, {b});
  EXPECT_EQ(text("SELECT avg_cpu_usage FROM usage"), R"({"global":0})");
  EXPECT_EQ(text("SELECT avg_cpu_usage FROM daily_usage"), R"({"global":0})");
  EXPECT_EQ(text("SELECT avg_cpu_usage FROM units ORDER BY uuid"),
            R"({"global":10} {"global":25})");
}

TEST_P(DatabaseTest, AWindowMustStartAtTheWatermark) {
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
  EXPECT_EQ(db_->reader().watermarks().value(),
            (std::map<std::string, std::int64_t>{{"hpc", kNow + kMinute}}));
}

TEST_P(DatabaseTest, AUnitReportedAgainAfterItsEndAddsNothing) {
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

TEST_P(DatabaseTest, ALateEndAddsOnlyWhatWasNotCounted) {
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

TEST_P(DatabaseTest, APendingRowIsReplacedByTheStartedOne) {
  auto pending = job("1", 0);
  pending.project.clear();
  write(kNow, kNow + kMinute, {pending});
  EXPECT_EQ(text("SELECT started_at FROM units"), "Unknown");
  auto started = job("1", kNow + 90'000);
  with_times(started, 30, 30);
  write(kNow + kMinute, kNow + 2 * kMinute, {started});
  EXPECT_EQ(text("SELECT started_at_ts||' '||project FROM units"), "1767225690000 fluids");
  EXPECT_EQ(text("SELECT sum(num_units) FROM usage"), "1");
}

TEST_P(DatabaseTest, ARecycledIdIsAnotherUnit) {
  auto a = job("1", kNow, kNow + 10);
  auto b = job("1", kNow + 20, kNow + 30);
  write(kNow, kNow + kMinute, {a, b});
  EXPECT_EQ(text("SELECT count(*) FROM units"), "2");
  EXPECT_EQ(text("SELECT num_units FROM usage"), "2");
}

TEST_P(DatabaseTest, TheZoneOfTextsDoesNotMakeAnotherUnit) {
  write(kNow, kNow + kMinute, {job("1", kNow)});
  auto same = job("1", kNow);
  same.started_at = "the same moment in another zone";
  write(kNow + kMinute, kNow + 2 * kMinute, {same});
  EXPECT_EQ(text("SELECT num_updates FROM units"), "2");
}

TEST_P(DatabaseTest, EmptyNamesAreFilledInLater) {
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

TEST_P(DatabaseTest, HostileTextsAreStoredAsTheyAre) {
  auto unit = job("'; DROP TABLE units; --", kNow);
  unit.name = std::string("\xff\x01\0", 3);
  unit.allocation = "{broken";
  unit.tags = "[1]";
  unit.total_time_seconds = {{"walltime", std::numeric_limits<double>::quiet_NaN()}};
  write(kNow, kNow + kMinute, {unit});
  EXPECT_EQ(text("SELECT uuid FROM units"), "'; DROP TABLE units; --");
  EXPECT_EQ(text("SELECT allocation||tags||total_time_seconds FROM units"),
            R"({}{}{"walltime":0})");
  // PostgreSQL stores UTF-8 without NUL only.
  if (GetParam() == Backend::kSqlite) {
    EXPECT_EQ(text("SELECT hex(name) FROM units"), "FF0100");
  } else {
    EXPECT_EQ(text("SELECT name FROM units"), "\xEF\xBF\xBD\x01\xEF\xBF\xBD");
  }
  // And is found again as what it is.
  unit = job(std::string("\xff\0;", 3), kNow);
  write(kNow + kMinute, kNow + 2 * kMinute, {unit});
  write(kNow + 2 * kMinute, kNow + 3 * kMinute, {unit});
  EXPECT_EQ(text("SELECT num_updates FROM units ORDER BY id"), "1 2");
  const std::vector<std::size_t> fields{2};
  UnitQuery query;
  query.owners.everybody = true;
  query.uuids = {unit.uuid};
  EXPECT_EQ(column(db_->reader().units(query, fields), 0).size(), 1U);
}

TEST_P(DatabaseTest, AUnitThatIsRefusedIsInNoTableAndHoldsUpNothing) {
  auto first = job("1", kNow);
  auto clash = job("1", kNow + 5);  // another start with the same text
  clash.started_at = first.started_at;
  const auto report = db_->writer().write(
      update(kNow, kNow + kMinute, {job("0", kNow), first, clash, job("2", kNow)}));
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->written, 3U);
  EXPECT_EQ(report->skipped, 1U);
  EXPECT_EQ(text("SELECT uuid FROM units ORDER BY uuid"), "0 1 2");
  EXPECT_EQ(text("SELECT num_units FROM usage"), "3");
  EXPECT_EQ(text("SELECT num_units FROM daily_usage"), "3");
  EXPECT_EQ(db_->writer().watermark("hpc").value(), kNow + kMinute);
}

TEST_P(DatabaseTest, AFailedWriteLeavesNothingBehind) {
  ASSERT_FALSE(db_->writer().write(update(kNow, kNow - 1, {job("1", kNow)})));
  EXPECT_EQ(text("SELECT count(*) FROM units"), "0");
  execute("DELETE FROM units");  // no transaction is open that locks
  write(kNow, kNow + kMinute, {});
}

TEST_P(DatabaseTest, SumsDoNotDependOnHowWindowsAreCut) {
  constexpr int kWindows = 30;
  std::vector<model::Unit> parts;
  for (int i = 0; i < kWindows; ++i) {
    auto part = job("parts", kNow);
    with(with_times(part, 60, 0.1 * i), Metric::kAvgCpuUsage, {{"global", 100.0 / 3}});
    with(part, Metric::kTotalCpuEnergyUsageKwh, {{"total", 1e-9}});
    write(kNow + i * kMinute, kNow + (i + 1) * kMinute, {part});
  }
  EXPECT_EQ(text("SELECT total_cpu_energy_usage_kwh FROM units").substr(0, 20),
            text("SELECT total_cpu_energy_usage_kwh FROM usage").substr(0, 20));
  const std::vector<std::size_t> fields{19};
  UnitQuery query;
  query.owners.everybody = true;
  const auto kwh = column(db_->reader().units(query, fields), 0);
  ASSERT_EQ(kwh.size(), 1U);
  const auto total = parse_metric_map(kwh[0]).value().at("total");
  EXPECT_NEAR(total, kWindows * 1e-9, 1e-20);  // nothing was rounded on the way
}

TEST_P(DatabaseTest, MoreUnitsThanAreWrittenAtOnce) {
  std::vector<model::Unit> units;
  for (int i = 0; i < 700; ++i) {
    auto unit = job(std::to_string(i % 650), kNow + i);  // the last ids come twice
    unit.username = "user" + std::to_string(i % 7);
    units.push_back(with_times(unit, 1, 1));
  }
  write(kNow, kNow + kMinute, units);
  write(kNow + kMinute, kNow + 2 * kMinute, units);
  EXPECT_EQ(text("SELECT count(*) FROM units"), "700");
  EXPECT_EQ(text("SELECT DISTINCT num_updates FROM units"), "2");
  EXPECT_EQ(text("SELECT sum(num_units) FROM usage"), "700");
  EXPECT_EQ(text("SELECT total_time_seconds FROM usage WHERE username='user3'"),
            R"({"alloc_cputime":200,"walltime":200})");
}

TEST_P(DatabaseTest, MalformedMapsOfOthersCountAsEmpty) {
  auto unit = job("1", kNow);
  write(kNow, kNow + kMinute, {with_times(unit, 60, 60)});
  execute(
      "UPDATE units SET total_time_seconds='{x', avg_cpu_usage='[7]';"
      "UPDATE usage SET total_time_seconds='{\"walltime\":true}'");
  if (GetParam() == Backend::kSqlite) {
    execute("UPDATE units SET avg_gpu_usage=NULL");
  }
  write(kNow + kMinute, kNow + 2 * kMinute, {with_times(unit, 60, 60)});
  EXPECT_EQ(text("SELECT total_time_seconds FROM units"), R"({"alloc_cputime":60,"walltime":60})");
  EXPECT_EQ(text("SELECT total_time_seconds FROM usage"), R"({"alloc_cputime":60,"walltime":60})");
}

TEST_P(DatabaseTest, DaysAreLocal) {
  open("America/New_York");
  // 2026-01-01T22:00 to 23:00 there is the second of January in UTC.
  const std::int64_t evening = kNow + kDay + 3 * kHour;
  write(evening, evening + kHour, {job("1", evening)});
  EXPECT_EQ(text("SELECT last_updated_at FROM daily_usage"), "2026-01-01T00:00:00");
  EXPECT_EQ(text("SELECT last_updated_at FROM usage"), "2026-01-01T23:00:00");
  // A window that ends at midnight belongs to the day it measures.
  write(evening + kHour, evening + 2 * kHour, {job("2", evening)});
  EXPECT_EQ(text("SELECT num_units FROM daily_usage"), "2");
  write(evening + 2 * kHour, evening + 3 * kHour, {job("3", evening)});
  EXPECT_EQ(text("SELECT last_updated_at FROM daily_usage ORDER BY 1"),
            "2026-01-01T00:00:00 2026-01-02T00:00:00");
}

TEST_P(DatabaseTest, UsersAndProjectsFollowASuccessfulFetchOnly) {
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
  // A failed or empty fetch revokes no rights.
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

TEST_P(DatabaseTest, LeadsAreThoseOfTheLastFetchThatSaidAnything) {
  const auto led = [this](const std::string& name) {
    Texts texts;
    const auto found = db_->reader().led_projects(name).value();
    for (const auto& [cluster, project] : found) {
      texts.push_back(cluster + "/" + project);
    }
    return texts;
  };
  EXPECT_EQ(led("lea"), Texts{});
  auto first = update(kNow, kNow + kHour, {}, "a");
  first.leads = {{"fluids", {"lea", "zoe", "lea", ""}}, {"optics", {"lea"}}, {"", {"eve"}}};
  write(first);
  auto other = update(kNow, kNow + kHour, {}, "b");
  other.leads = {{"fluids", {"lea"}},
                 {"d'or", {"o'neil", std::string("nul\0x", 5)}},
                 {std::string(20000, 'x'), {"eve"}},
                 {"long", {std::string(20000, 'x')}}};
  write(other);
  EXPECT_EQ(led("lea"), (Texts{"a/fluids", "a/optics", "b/fluids"}));
  EXPECT_EQ(led("zoe"), Texts{"a/fluids"});
  EXPECT_EQ(led("o'neil"), Texts{"b/d'or"});
  EXPECT_EQ(db_->reader().leads_of("a", "fluids").value(), (Texts{"lea", "zoe"}));
  EXPECT_EQ(db_->reader().leads_of("", "fluids").value(), (Texts{"lea", "zoe"})) << "each once";
  EXPECT_EQ(db_->reader().leads_of("b", "d'or").value(), Texts{"o'neil"});
  EXPECT_EQ(db_->reader().leads_of("a", "d'or").value(), Texts{});
  for (const char* nobody : {"Lea", "lea ", "nul", "eve", ""}) {
    EXPECT_EQ(led(nobody), Texts{}) << nobody;
  }
  // A failed fetch says nothing; the next one takes away and gives, in its cluster.
  write(update(kNow + kHour, kNow + 2 * kHour, {}, "a"));
  EXPECT_EQ(led("lea"), (Texts{"a/fluids", "a/optics", "b/fluids"}));
  auto next = update(kNow + 2 * kHour, kNow + 3 * kHour, {}, "a");
  next.leads = {{"optics", {"lea"}}, {"fluids", {"bob"}}};
  write(next);
  EXPECT_EQ(led("lea"), (Texts{"a/optics", "b/fluids"}));
  EXPECT_EQ(led("zoe"), Texts{});
  EXPECT_EQ(led("bob"), Texts{"a/fluids"});
  open();
  EXPECT_EQ(led("bob"), Texts{"a/fluids"});
  auto last = update(kNow + 3 * kHour, kNow + 4 * kHour, {}, "a");
  last.leads.emplace();
  write(last);
  EXPECT_EQ(led("lea"), Texts{"b/fluids"});
}

TEST_P(DatabaseTest, AdminsAreKeptBySource) {
  ASSERT_TRUE(db_->writer().write_admins("ceems", {"root", "eve", ""}));
  ASSERT_TRUE(db_->writer().write_admins("grafana", {"eve", "gina"}));
  EXPECT_EQ(text("SELECT name||tags FROM admin_users ORDER BY name"),
            R"(eve["grafana"] gina["grafana"] root["ceems"])");
  ASSERT_TRUE(db_->writer().add_admins("grafana", {"hal", "root"}));
  EXPECT_EQ(text("SELECT name||tags FROM admin_users ORDER BY name"),
            R"(eve["grafana"] gina["grafana"] hal["grafana"] root["grafana"])");
  ASSERT_TRUE(db_->writer().write_admins("grafana", {"gina"}));
  EXPECT_EQ(text("SELECT tags FROM admin_users WHERE name='eve'"), R"(["ceems"])");
  EXPECT_FALSE(db_->reader().is_admin("hal").value());
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

TEST_P(DatabaseTest, PurgesWhatEndedBeforeTheCutoff) {
  auto old = job("old", kNow - 10 * kDay, kNow - 9 * kDay);
  write(kNow - 9 * kDay - kHour, kNow - 9 * kDay, {old, job("lost", kNow - 10 * kDay)});
  auto b = job("new", kNow - kHour, kNow - kMinute);
  b.username = "bob";
  write(kNow - 9 * kDay, kNow, {b, job("runs", kNow - kHour)});
  EXPECT_EQ(text("SELECT count(*) FROM units"), "4");
  ASSERT_TRUE(db_->writer().purge(kNow - 2 * kDay));
  // "lost" has no end but was not seen although its cluster was fetched up to now.
  EXPECT_EQ(text("SELECT uuid FROM units ORDER BY uuid"), "new runs");
  EXPECT_EQ(text("SELECT last_updated_at FROM daily_usage ORDER BY 1"),
            "2025-12-31T00:00:00 2025-12-31T00:00:00");
  EXPECT_EQ(text("SELECT count(*) FROM usage"), "2");
  // What was purged is not taken in again, so it is not counted again.
  write(kNow, kNow + kMinute, {old});
  EXPECT_EQ(text("SELECT count(*) FROM units WHERE uuid='old'"), "0");
}

TEST_P(DatabaseTest, PurgeGoesByMomentsNotByTexts) {
  auto no_end = job("no-end", kNow - 10 * kDay);
  no_end.ended_at.clear();
  auto odd = job("odd", kNow - 10 * kDay, kNow - kHour);
  odd.ended_at = "1999-01-01T00:00:00+0000";
  auto old = job("old", kNow - 10 * kDay, kNow - 5 * kDay);
  old.ended_at = "2999-01-01T00:00:00+0000";
  write(kNow - kHour, kNow, {no_end, odd, old});
  ASSERT_TRUE(db_->writer().purge(kNow - 2 * kDay));
  EXPECT_EQ(text("SELECT uuid FROM units ORDER BY uuid"), "no-end odd");
}

TEST_P(DatabaseTest, ManyUnitsArePurgedInTransactionsThatAStopEnds) {
  write(kNow - kHour, kNow, {});
  const auto fill = [&](std::string_view table, std::string_view values) {
    execute(
        fmt::format("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n"
                    " WHERE i < 12000) INSERT INTO {} SELECT {} FROM n",
                    table, values));
  };
  fill("units (cluster_id, uuid, started_at, ended_at_ts, last_updated_at_ts)",
       fmt::format("'hpc', 'u' || i, 's', {} + i, {} + i", kNow - 9 * kDay, kNow - 9 * kDay));
  fill("daily_usage (cluster_id, username, project, last_updated_at, last_updated_at_ts)",
       fmt::format("'hpc', 'u' || i, 'p', 'd', {}", kNow - 9 * kDay));
  write(kNow, kNow + kMinute, {job("new", kNow)});
  const std::int64_t cutoff = kNow - 2 * kDay;
  std::stop_source stop;
  stop.request_stop();
  const auto left = [&] {
    return text("SELECT count(*) FROM units") + "," + text("SELECT count(*) FROM daily_usage");
  };
  EXPECT_EQ(left(), "12001,12001");
  auto commits = db_->reader().generation();
  ASSERT_TRUE(db_->writer().purge(cutoff, stop.get_token()));
  EXPECT_EQ(left(), "7001,12001");
  EXPECT_EQ(text("SELECT uuid FROM units WHERE ended_at_ts > 0 ORDER BY id LIMIT 1"), "u5001");
  if (backend_ == Backend::kSqlite) {  // PostgreSQL counts the notices of its own commits too
    EXPECT_EQ(db_->reader().generation(), commits + 1);
  }
  // What ended before the cutoff is not taken in again, whether its turn has come or not.
  write(kNow + kMinute, kNow + 2 * kMinute, {job("late", kNow - 10 * kDay, kNow - 9 * kDay)});
  EXPECT_EQ(left(), "7001,12001");
  ASSERT_TRUE(db_->writer().purge(cutoff, stop.get_token()));
  EXPECT_EQ(left(), "2001,12001");
  commits = db_->reader().generation();
  ASSERT_TRUE(db_->writer().purge(cutoff));
  EXPECT_EQ(left(), "1,1");
  if (backend_ == Backend::kSqlite) {
    // One for units, three for days, one for the rest.
    EXPECT_EQ(db_->reader().generation(), commits + 5);
  }
}

TEST_P(DatabaseTest, ALongStopDoesNotPurgeRunningUnits) {
  auto unit = job("runs", kNow - kHour);
  write(kNow - kHour, kNow, {with_times(unit, 3600, 3600)});
  ASSERT_TRUE(db_->writer().purge(kNow + 100 * kDay));  // nothing was fetched since
  EXPECT_EQ(text("SELECT count(*) FROM units"), "1");
}

}  // namespace
}  // namespace ceems::store
