#include "store/facts.h"

#include <string>
#include <tuple>

#include "store/facts_test_support.h"
#include "store/schema/tables.h"

namespace ceems::store {
namespace {

using model::Metric;

TEST_P(UnitFacts, FollowTheUnitFromWindowToWindow) {
  model::Unit unit = job("1", 0);
  unit.started_at = "Unknown";
  unit.state = "PENDING";
  write(kNow - 2 * kHour, kNow - kHour, {unit});
  EXPECT_EQ(text("SELECT state FROM ceems_unit_facts"), "PENDING");

  unit = job("1", kNow - 30 * kMinute);
  with_times(unit, 1800, 3600).total_time_seconds["alloc_gputime"] = 1800;
  with(unit, Metric::kAvgCpuUsage, {{"global", 50}});
  unit.peak_memory_bytes = 5e9;
  unit.gpu_idle_share = 1;
  unit.idle_kwh = 0.25;
  unit.not_used_kwh = 0.125;
  write(kNow - kHour, kNow, {unit});
  EXPECT_EQ(column_of_all(Fact::kState), Texts{"RUNNING"});  // one row
  EXPECT_EQ(column_of_all(Fact::kCpu), Texts{"5000"});
  EXPECT_EQ(column_of_all(Fact::kGpuIdle), Texts{"10000"});

  unit = job("1", kNow - 30 * kMinute, kNow + 90 * kMinute);
  with_times(unit, 5400, 10800).total_time_seconds["alloc_gputime"] = 5400;
  with(unit, Metric::kAvgCpuUsage, {{"global", 10}});
  unit.peak_memory_bytes = 4e9;
  unit.gpu_idle_share = 0;
  unit.idle_kwh = 0.5;
  unit.not_used_kwh = 0;
  write(kNow, kNow + 2 * kHour, {unit});
  EXPECT_EQ(column_of_all(Fact::kState), Texts{"COMPLETED"});
  EXPECT_EQ(column_of_all(Fact::kWall), Texts{"7200"});
  EXPECT_EQ(column_of_all(Fact::kCpu), Texts{"2000"});
  EXPECT_EQ(column_of_all(Fact::kPeak), Texts{"5000000000"});
  EXPECT_EQ(column_of_all(Fact::kGpuIdle), Texts{"2500"});
  EXPECT_EQ(column_of_all(Fact::kUnused), Texts{"750000000"});
  EXPECT_EQ(column_of_all(Fact::kNotUsed), Texts{"125000000"});

  // What is not measured changes nothing, and neither does a repeated report.
  unit.ended_at_ts = kNow + 2 * kHour;
  unit.peak_memory_bytes.reset();
  unit.gpu_idle_share.reset();
  unit.idle_kwh.reset();
  unit.not_used_kwh.reset();
  write(kNow + 2 * kHour, kNow + 3 * kHour, {unit});
  write(kNow + 3 * kHour, kNow + 4 * kHour, {unit});
  EXPECT_EQ(column_of_all(Fact::kPeak), Texts{"5000000000"});
  EXPECT_EQ(column_of_all(Fact::kUnused), Texts{"750000000"});
  EXPECT_EQ(column_of_all(Fact::kNotUsed), Texts{"125000000"});
  EXPECT_EQ(column_of_all(Fact::kEnded), Texts{std::to_string(kNow + 2 * kHour)});

  ASSERT_TRUE(db_->writer().purge(kNow + kDay));
  EXPECT_EQ(text("SELECT count(*) FROM ceems_unit_facts"), "0");
}

TEST_P(UnitFacts, GetWhatAGapLacked) {
  model::Unit unit = job("1", kNow - kHour);
  with_times(unit, 3600, 7200);
  unit.total_time_seconds["alloc_gputime"] = 3600;
  auto window = update(kNow - kHour, kNow, {unit});
  window.gaps = {{.id = 0, .updater = "tsdb", .parts = {"energy"}}};
  write(window);
  EXPECT_EQ(column_of_all(Fact::kKwh), Texts{"-1"});
  const auto gaps = db_->writer().gaps("hpc");
  ASSERT_TRUE(gaps && gaps->size() == 1);
  auto units = db_->writer().gap_units(gaps->front().id);
  ASSERT_TRUE(units && units->size() == 1);
  with(units->front(), Metric::kTotalCpuEnergyUsageKwh, {{"total", 1.5}});
  units->front().peak_memory_bytes = 1e9;
  units->front().idle_kwh = 0.125;
  units->front().not_used_kwh = 0.0625;
  units->front().gpu_idle_share = 0.5;
  ASSERT_TRUE(db_->writer().fill_gap(
      {.cluster = window.cluster, .gap_id = gaps->front().id, .units = *units}));
  EXPECT_EQ(column_of_all(Fact::kKwh), Texts{"1500000000"});
  EXPECT_EQ(column_of_all(Fact::kPeak), Texts{"1000000000"});
  EXPECT_EQ(column_of_all(Fact::kUnused), Texts{"125000000"});
  EXPECT_EQ(column_of_all(Fact::kNotUsed), Texts{"62500000"});
  EXPECT_EQ(column_of_all(Fact::kGpuIdle), Texts{"5000"});
}

/// What was not used is part of the idle energy: a sum over fewer windows would be too small.
TEST_P(UnitFacts, KnowWhatWasNotUsedOnlyIfAllWindowsDo) {
  struct Measured {
    std::optional<double> idle, not_used;
  };
  std::int64_t at = kNow;
  const auto sum_of = [&](const char* id, std::initializer_list<Measured> windows) {
    for (const Measured& one : windows) {
      model::Unit unit = job(id, kNow);
      unit.idle_kwh = one.idle;
      unit.not_used_kwh = one.not_used;
      write(at, at + kHour, {unit});
      at += kHour;
    }
    return text(fmt::format("SELECT not_used_energy FROM ceems_unit_facts WHERE uuid = '{}'", id));
  };
  const Measured both{.idle = 1, .not_used = 0.5};
  const Measured old{.idle = 1, .not_used = {}};
  EXPECT_EQ(sum_of("none", {{}, {}}), "-1");
  EXPECT_EQ(sum_of("all", {{}, both, {}, both}), "1000000000");
  EXPECT_EQ(sum_of("later", {old, both, both}), "-1");
  EXPECT_EQ(sum_of("no-more", {both, old, both}), "-1");
  EXPECT_EQ(sum_of("gap", {{}, {}, {1, 0}}), "0");
}

TEST_P(UnitFacts, OfVersion15DoNotKnowWhatWasNotUsed) {
  model::Unit unit = job("1", kNow - kHour);
  unit.idle_kwh = 0.5;
  unit.not_used_kwh = 0.25;
  write(kNow - kHour, kNow, {unit});
  execute(
      "DROP TABLE ceems_tokens; DROP TABLE ceems_feedback; DROP TABLE ceems_node_effects;"
      "DROP TABLE ceems_ended_units; DROP TABLE ceems_export_targets;"
      "ALTER TABLE ceems_unit_facts DROP COLUMN not_used_energy;"
      "ALTER TABLE ceems_unit_facts DROP COLUMN verdict;"
      "ALTER TABLE ceems_unit_facts DROP COLUMN strip;"
      "UPDATE ceems_schema SET version = 15");
  open();
  EXPECT_EQ(text("SELECT version FROM ceems_schema"), std::to_string(kOwnVersion));
  EXPECT_EQ(column_of_all(Fact::kUnused), Texts{"500000000"});
  EXPECT_EQ(column_of_all(Fact::kNotUsed), Texts{"-1"});
  ASSERT_TRUE(db_->writer().lead());
  write(kNow, kNow + kHour, {unit, job("2", kNow)});
  unit = job("3", kNow + kMinute);
  unit.idle_kwh = 0.5;
  unit.not_used_kwh = 0.25;
  write(kNow + kHour, kNow + 2 * kHour, {unit});
  EXPECT_EQ(column_of_all(Fact::kUnused), (Texts{"1000000000", "-1", "500000000"}));
  EXPECT_EQ(column_of_all(Fact::kNotUsed), (Texts{"-1", "-1", "250000000"}));
  FactFilter filter = everybodys();
  const auto sums = db_->reader().unit_summary({.filter = filter, .facets = {Fact::kUser}});
  ASSERT_TRUE(sums);
  EXPECT_EQ(sums->idle_units, 2);
  EXPECT_EQ(sums->not_used_units, 1);
  EXPECT_DOUBLE_EQ(sums->not_used_kwh, 0.25);
  EXPECT_DOUBLE_EQ(sums->facets.at(0).at(0).not_used_kwh, 0.25);
}

TEST_P(UnitFacts, OfAnOldDatabaseAreWrittenInPieces) {
  std::vector<model::Unit> units;
  constexpr int kUnits = 4500;
  for (int i = 0; i < kUnits; ++i) {
    units.push_back(job(std::to_string(i), kNow - kHour, kNow - kMinute));
    with(units.back(), Metric::kTotalCpuEnergyUsageKwh, {{"total", i}});
  }
  write(kNow - kHour, kNow, units);
  EXPECT_FALSE(db_->writer().fill_facts().value());
  EXPECT_TRUE(db_->reader().facts_complete().value());
  // Before version 9 there was no such table.
  execute(
      "DROP TABLE ceems_unit_facts; DROP TABLE ceems_facts_todo;"
      "DROP TABLE ceems_unit_reports; DROP TABLE ceems_findings;"
      "DROP TABLE ceems_outbox; DROP TABLE ceems_contacts;"
      "DROP TABLE ceems_nodes; DROP TABLE ceems_node_days; DROP TABLE ceems_node_progress;"
      "DROP TABLE ceems_bills; DROP TABLE ceems_flavors; DROP TABLE ceems_members; DROP TABLE "
      "ceems_tokens; DROP TABLE ceems_feedback; DROP TABLE ceems_node_effects;"
      "DROP TABLE ceems_ended_units; DROP TABLE ceems_export_targets;"
      "UPDATE ceems_schema SET version = 8");
  open();
  EXPECT_FALSE(db_->reader().facts_complete().value());
  ASSERT_TRUE(db_->writer().lead().value());
  EXPECT_TRUE(db_->writer().fill_facts().value());
  EXPECT_EQ(text("SELECT count(*) FROM ceems_unit_facts"), "2000");
  EXPECT_EQ(text("SELECT min(uuid) FROM ceems_unit_facts WHERE uuid = '4499'"), "4499");
  open();  // a restart in between
  ASSERT_TRUE(db_->writer().lead().value());
  // A unit that is written meanwhile keeps what it measured.
  units = {job("3", kNow + kMinute, kNow + kHour)};
  units[0].peak_memory_bytes = 7e9;
  write(kNow, kNow + kHour, units);
  EXPECT_TRUE(db_->writer().fill_facts().value());
  EXPECT_FALSE(db_->writer().fill_facts().value());
  EXPECT_TRUE(db_->reader().facts_complete().value());
  EXPECT_EQ(text("SELECT count(*) FROM ceems_unit_facts"), std::to_string(kUnits + 1));
  EXPECT_EQ(text("SELECT sum(energy) FROM ceems_unit_facts WHERE energy >= 0"),
            std::to_string(std::int64_t{kUnits} * (kUnits - 1) / 2 * 1'000'000'000));
  EXPECT_EQ(text("SELECT max(peak_memory) FROM ceems_unit_facts"), "7000000000");
}

TEST_P(UnitFacts, RunOnceTheyHaveStartedAndUntilTheyEnd) {
  const auto with_state = [](model::Unit unit, const char* state) {
    unit.state = state;
    return unit;
  };
  write(kNow - 2 * kHour, kNow,
        {with_state(job("runs", kNow - kHour), "RUNNING"),
         with_state(job("held", kNow - kHour), "SUSPENDED"), with_state(job("waits", 0), "PENDING"),
         with_state(job("waits too", 0), "RUNNING"),
         with_state(job("ended", kNow - kHour, kNow - kMinute), "RUNNING"),
         with_state(job("failed", kNow - kHour, kNow - kMinute), "FAILED")});
  FactListQuery query{.filter = everybodys(), .columns = {Fact::kUuid}, .sort = Fact::kUuid};
  query.filter.state_running = true;
  query.descending = false;
  EXPECT_EQ(column(db_->reader().unit_facts(query), 0), (Texts{"held", "runs"}));
  EXPECT_EQ(db_->reader().unit_summary({.filter = query.filter, .facets = {}})->units, 2);
  query.filter.states = {"FAILED"};
  EXPECT_EQ(column(db_->reader().unit_facts(query), 0), (Texts{"failed", "held", "runs"}));
  query.filter.state_running = false;
  EXPECT_EQ(column(db_->reader().unit_facts(query), 0), Texts{"failed"});
}

TEST_P(UnitFacts, AddUpByKind) {
  const auto run = [](const std::string& id, const std::string& name, int hours_ago, double kwh) {
    model::Unit unit = job(id, kNow - (hours_ago + 1) * kHour, kNow - hours_ago * kHour);
    unit.name = name;
    with_times(unit, 3600, 7200);
    with(unit, Metric::kAvgCpuUsage, {{"global", 10 * kwh}});
    with(unit, Metric::kTotalCpuEnergyUsageKwh, {{"total", kwh}});
    unit.idle_kwh = kwh / 4;
    return unit;
  };
  auto known = run("2", "train_11", 7, 2);
  known.not_used_kwh = 0.125;
  auto failed = run("3", "train_12", 1, 8);
  failed.state = "TIMEOUT";
  auto others = run("4", "train_3", 1, 1);
  others.username = "bob";
  others.not_used_kwh = 0.25;
  auto unmeasured = job("5", kNow - 2 * kHour, kNow - kHour);
  unmeasured.name = "idle";
  auto dark = job("6", kNow - 2 * kHour, kNow - kHour);
  dark.name = "train_99";
  write(kNow - 9 * kHour, kNow,
        {run("1", "train_10", 8, 2), known, failed, others, unmeasured, dark});
  KindQuery query{.filter = everybodys(), .failed = {"FAILED", "TIMEOUT"}};
  query.sort = KindQuery::Sort::kUnused;
  query.filter.ended = TimeRange{kNow - 9 * kHour, kNow};
  auto kinds = db_->reader().unit_kinds(query);
  ASSERT_TRUE(kinds) << kinds.error().message;
  ASSERT_EQ(kinds->size(), 3U);
  const UnitKind& train = kinds->front();
  EXPECT_EQ(train.name, "train_#");
  EXPECT_EQ(train.units, 4);
  EXPECT_EQ(train.measured, 3) << "a run without energy is not one of 0 kWh";
  EXPECT_EQ(train.grams_known, 0);
  EXPECT_EQ(train.running, 0);
  EXPECT_EQ(train.failed, 1);
  EXPECT_DOUBLE_EQ(train.kwh, 12);
  EXPECT_DOUBLE_EQ(train.idle_kwh, 3);
  EXPECT_EQ(train.idle_units, 3);
  EXPECT_DOUBLE_EQ(train.idle_of_kwh, 12);
  EXPECT_EQ(train.not_used_units, 1);
  EXPECT_DOUBLE_EQ(train.not_used_of_kwh, 2);
  EXPECT_DOUBLE_EQ(train.not_used_kwh, 0.125);
  EXPECT_NEAR(train.cpu.value(), (20 + 20 + 80) / 3.0, 0.1);
  EXPECT_EQ(train.gpu, std::nullopt);
  EXPECT_DOUBLE_EQ(train.kwh_before.value(), 2);
  EXPECT_DOUBLE_EQ(train.kwh_since.value(), 8);
  EXPECT_EQ(train.last_ended_ms, kNow - kHour);
  EXPECT_EQ(train.last_advised_ms, 0);
  EXPECT_EQ((*kinds)[1].user, "bob");
  EXPECT_EQ((*kinds)[2].name, "idle");
  EXPECT_EQ((*kinds)[2].idle_units, 0);
  EXPECT_EQ((*kinds)[2].kwh_since, std::nullopt);
  query.sort = KindQuery().sort;
  kinds = db_->reader().unit_kinds(query);
  EXPECT_EQ(kinds->front().user, "bob") << "a well-run kind is not blamed for its size";
  EXPECT_EQ(kinds->back().not_used_units, 0);

  query.limit = 1;
  query.sort = KindQuery::Sort::kUnits;
  EXPECT_EQ(db_->reader().unit_kinds(query)->size(), 1U);
  // Whose names may not be seen, all of a project are one kind.
  query.limit = 9;
  query.filter.names = {.user = "bob"};
  kinds = db_->reader().unit_kinds(query);
  ASSERT_EQ(kinds->size(), 2U);
  EXPECT_EQ((*kinds)[0].name, "");
  EXPECT_EQ((*kinds)[0].units, 5);
  EXPECT_EQ((*kinds)[1].name, "train_#");
}

TEST_P(UnitFacts, CursorsStayWhereTheyAreWhileRowsCome) {
  std::vector<model::Unit> units;
  for (int i = 0; i < 10; ++i) {
    units.push_back(job(std::to_string(i), kNow - kHour, kNow - (i + 1) * kMinute));
  }
  write(kNow - kHour, kNow, units);
  FactListQuery query{.filter = everybodys(), .columns = {Fact::kUuid}};
  query.limit = 4;
  auto rows = db_->reader().unit_facts(query);
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE((*rows)->next().value());
  }
  EXPECT_EQ((*rows)->text(0), "3");
  query.after = FactPlace{.value = std::string((*rows)->text(1)), .id = (*rows)->integer(2)};
  rows->reset();
  write(kNow, kNow + kHour, {job("new", kNow, kNow + kMinute)});
  EXPECT_EQ(column(db_->reader().unit_facts(query), 0), (Texts{"4", "5", "6", "7"}));
  query.backwards = true;
  EXPECT_EQ(column(db_->reader().unit_facts(query), 0), (Texts{"2", "1", "0", "new"}));
}

TEST_P(UnitFacts, AddUpWhateverSourcesSay) {
  std::vector<model::Unit> units;
  for (int i = 0; i < 20; ++i) {
    model::Unit& unit = units.emplace_back(job(std::to_string(i), kNow - kHour, kNow - kMinute));
    with_times(unit, 1e300, 1e300).total_time_seconds["alloc_gputime"] = 1e300;
    for (const Metric metric : {Metric::kAvgCpuUsage, Metric::kAvgGpuUsage}) {
      with(unit, metric, {{"global", 1e300}});
    }
    with(unit, Metric::kTotalCpuEnergyUsageKwh, {{"total", 1e300}});
    unit.idle_kwh = 1e300;
    unit.peak_memory_bytes = 1e300;
    unit.gpu_idle_share = 1;
  }
  write(kNow - kHour, kNow, units);
  SummaryQuery query{.filter = everybodys(), .facets = {Fact::kUser}};
  query.heat = {Fact::kCpu, Fact::kGpu};
  const auto sums = db_->reader().unit_summary(query);
  ASSERT_TRUE(sums) << sums.error().message;
  EXPECT_EQ(sums->units, 20);
  EXPECT_GT(sums->cpu_seconds_used, 0);
  EXPECT_EQ(column_of_all(Fact::kCpu).size(), 20U);
}

TEST_P(UnitFacts, OfIgnoredUnitsAreLeftOut) {
  auto unit = job("1", kNow - kHour, kNow - kMinute);
  unit.ignore = true;
  write(kNow - kHour, kNow, {unit, job("2", kNow - kHour, kNow - kMinute)});
  EXPECT_EQ(column_of_all(Fact::kUuid), Texts{"2"});
}

TEST_P(UnitFacts, AreCountedUpToALimit) {
  std::vector<model::Unit> units;
  for (int i = 0; i < 20; ++i) {
    units.push_back(job(std::to_string(i), kNow - kHour, kNow - kMinute));
    units.back().username = i < 15 ? "ada" : "bob";
  }
  write(kNow - kHour, kNow, units);
  FactFilter filter = everybodys();
  EXPECT_TRUE(db_->reader().has_more_units(filter, 19).value());
  EXPECT_FALSE(db_->reader().has_more_units(filter, 20).value());
  filter.owners = {.everybody = false, .names = {"bob"}};
  EXPECT_FALSE(db_->reader().has_more_units(filter, 5).value());
  filter.owners = {};
  EXPECT_FALSE(db_->reader().has_more_units(filter, 0).value());
}

TEST_P(UnitFacts, CanBeThoseOfTheProjectsOfAMember) {
  std::vector<model::Unit> units;
  for (const auto& [uuid, user, project] : {std::tuple("1", "ada", "fluids"),
                                            {"2", "bob", "fluids"},
                                            {"3", "eve", "optics"},
                                            {"4", "ada", "optics"}}) {
    units.push_back(job(uuid, kNow - kHour, kNow - kMinute));
    units.back().username = user;
    units.back().project = project;
  }
  ClusterUpdate window = update(kNow - kHour, kNow, std::move(units));
  window.projects = std::vector<model::Project>{{.name = "fluids", .users = {"ada", "bob"}},
                                                {.name = "optics", .users = {"eve"}}};
  write(window);
  FactListQuery query{.filter = everybodys(), .columns = {Fact::kUuid}, .sort = Fact::kUuid};
  query.descending = false;
  const auto seen = [&](Scope members) {
    query.filter.members = std::move(members);
    return column(db_->reader().unit_facts(query), 0);
  };
  EXPECT_EQ(seen({.names = {"ada"}}), (Texts{"1", "2", "4"}));  // "4" is her own
  EXPECT_EQ(seen({.names = {"eve"}}), (Texts{"3", "4"}));
  EXPECT_EQ(seen({.led_projects = {{"hpc", "optics"}}}), (Texts{"3", "4"}));
  EXPECT_EQ(seen({}), Texts{});
}

TEST_P(UnitFacts, GiveUnusedEnergyToTheDaysOfUsage) {
  std::vector<model::Unit> units;
  for (const char* user : {"ada", "bob"}) {
    units.push_back(job(user, kNow - kHour, kNow - kMinute));
    with_times(units.back(), 3600, 7200).username = user;
    with(units.back(), Metric::kTotalCpuEnergyUsageKwh, {{"total", 2}});
    with(units.back(), Metric::kTotalCpuEmissionsGms, {{"owid_total", 50}, {"rte_total", 30}});
    units.back().idle_kwh = 0.5;
  }
  write(kNow - kHour, kNow, units);
  UsageSeriesQuery query{.members = {.everybody = true},
                         .days = {kNow - 2 * kDay, kNow},
                         .ended = {kNow - 2 * kDay, kNow},
                         .by = UsageBy::kUser,
                         .idle = true};
  const auto days = db_->reader().usage_by_day(query);
  ASSERT_TRUE(days) << days.error().message;
  ASSERT_EQ(days->size(), 4U);
  EXPECT_EQ((*days)[0].day_ms, kNow - kDay);
  EXPECT_EQ((*days)[0].cpu_kwh, 2);
  EXPECT_EQ((*days)[0].cpu_grams, 30);
  EXPECT_EQ((*days)[0].cpu_seconds, 7200);
  EXPECT_EQ((*days)[0].units, 1);
  EXPECT_EQ((*days)[2].idle_kwh, 0.5);
  EXPECT_EQ((*days)[2].day_ms, kNow - 15 * kMinute);
  query.members = {};
  EXPECT_TRUE(db_->reader().usage_by_day(query)->empty());
}

TEST_P(UnitFacts, SetEnergyAgainstTheHoursInWhichItWasMeasured) {
  std::vector<model::Unit> units;
  for (const char* uuid : {"1", "2", "3"}) {
    units.push_back(job(uuid, kNow - kHour, kNow - kMinute));
    with_times(units.back(), 3600, uuid[0] == '2' ? 7200 : 1800);
    units.back().total_time_seconds["alloc_gputime"] = 3600;
  }
  with(units[1], Metric::kTotalCpuEnergyUsageKwh, {{"total", 2}});
  write(kNow - kHour, kNow, units);
  const UsageSeriesQuery query{.members = {.everybody = true}, .days = {kNow - 2 * kDay, kNow}};
  const auto day = [&] { return db_->reader().usage_by_day(query).value().at(0); };
  EXPECT_EQ(day().core_hours(), 3);
  EXPECT_EQ(day().core_hours_with_energy(), 2);
  EXPECT_EQ(day().gpu_hours(), 3);
  EXPECT_EQ(day().gpu_hours_with_energy(), 1);
}

class UnitFactsOfFiles : public AnyDatabase {};

TEST_F(UnitFactsOfFiles, FollowWhatTheReferenceHasWritten) {
  write(kNow - kHour, kNow, {job("1", kNow - kHour), job("2", kNow - kHour, kNow - kMinute)});
  db_.reset();
  // It updates one unit and its usage, adds one and purges one.
  execute(
      "UPDATE units SET state = 'FAILED', ended_at_ts = 1767229200000,"
      " last_updated_at = '2026-01-01T01:00:00' WHERE uuid = '1';"
      "UPDATE usage SET last_updated_at = '2026-01-01T01:00:00';"
      "INSERT INTO units (cluster_id, uuid, started_at, started_at_ts, ended_at_ts, username,"
      " state, ignore, last_updated_at) VALUES ('hpc', '3', 'x', 5, 1767229200000, 'bob',"
      " 'TIMEOUT', 0, '2026-01-01T01:00:00');"
      "DELETE FROM units WHERE uuid = '2'");
  open();
  while (db_->writer().fill_facts().value()) {
  }
  EXPECT_EQ(text("SELECT uuid || state FROM ceems_unit_facts ORDER BY uuid"), "1FAILED 3TIMEOUT");
}

INSTANTIATE_TEST_SUITE_P(,
                         UnitFacts,
                         ::testing::Values(Backend::kSqlite, Backend::kPostgres),
                         backend_name);

}  // namespace
}  // namespace ceems::store
