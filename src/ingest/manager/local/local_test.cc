#include "ingest/manager/local/local.h"

#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ingest/manager/all.h"
#include "ingest/manager/local/units.h"
#include "ingest/updater/fake_tsdb.h"

namespace ceems::ingest {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kLocalDay = 1'767'225'600'000;  // 2026-01-01T00:00:00Z
constexpr const char* kStartTime = "ceems_compute_unit_start_time_seconds";
constexpr const char* kEnd = "ceems_compute_unit_end_time_seconds";

using Labels = std::map<std::string, std::string>;

Labels unit_labels(const std::string& uuid, const std::string& host = "n1") {
  return {{"manager", "cgroup"},
          {"hostname", host},
          {"cgrouphostname", ""},
          {"uuid", uuid},
          {"instance", host + ":9010"}};
}

std::vector<tsdb::Sample> constant(double value, std::int64_t first, std::int64_t last) {
  std::vector<tsdb::Sample> samples;
  for (std::int64_t t = first; t <= last; t += 15'000) {
    samples.push_back({kLocalDay + t, value});
  }
  return samples;
}

double seconds(std::int64_t ms) {
  return static_cast<double>(kLocalDay + ms) / 1000;
}

/// Adds a unit that lived from start to end (0: still running), with samples from `first` to
/// `last`.
void add_unit(FakeTsdb& tsdb,
              const std::string& uuid,
              std::int64_t start,
              std::int64_t end,
              std::int64_t first,
              std::int64_t last,
              const std::string& host = "n1") {
  tsdb.add(kStartTime, unit_labels(uuid, host), constant(seconds(start), first, last));
  if (end > 0) {
    std::int64_t seen = first;
    while (seen < end) {
      seen += 15'000;
    }
    tsdb.add(kEnd, unit_labels(uuid, host), constant(seconds(end), seen, last));
  }
  auto info = unit_labels(uuid, host);
  info["name"] = "name of " + uuid;
  info["username"] = "alice";
  tsdb.add("ceems_compute_unit_info", info, constant(1, first, last));
  tsdb.add("ceems_compute_unit_cpus", unit_labels(uuid, host), constant(2, first, last));
  tsdb.add("ceems_compute_unit_memory_total_bytes", unit_labels(uuid, host),
           constant(1 << 30, first, last));
}

std::unique_ptr<ResourceManager> manager(FakeTsdb& tsdb) {
  return make_local({}, tsdb.client(), TimeZone());
}

/// Fetches the units of a window after it has settled.
std::vector<model::Unit> fetch(FakeTsdb& tsdb, std::int64_t from, std::int64_t to) {
  tsdb.now_ms = kLocalDay + to + 25'000;
  auto units =
      manager(tsdb)->fetch_units({.start_ms = kLocalDay + from, .end_ms = kLocalDay + to}, {});
  EXPECT_TRUE(units) << (units ? "" : units.error().message);
  return units ? std::move(*units) : std::vector<model::Unit>{};
}

TEST(Local, ReportsARunningUnit) {
  FakeTsdb tsdb;
  add_unit(tsdb, "a.service", 30'000, 0, 40'000, 600'000);
  const auto units = fetch(tsdb, 0, 120'000);
  ASSERT_EQ(units.size(), 1U);
  const auto& unit = units[0];
  EXPECT_EQ(unit.uuid, "a.service");
  EXPECT_EQ(unit.name, "name of a.service");
  EXPECT_EQ(unit.username, "alice");
  EXPECT_EQ(unit.project, "local");
  EXPECT_EQ(unit.started_at, "2026-01-01T00:00:30+0000");
  EXPECT_EQ(unit.ended_at, "Unknown");
  EXPECT_EQ(unit.ended_at_ts, 0);
  EXPECT_EQ(unit.state, "RUNNING");
  EXPECT_EQ(unit.elapsed, "00:01:30");
  EXPECT_EQ(unit.allocation, R"({"cpus":2,"gpus":0,"mem":1073741824})");
  EXPECT_EQ(unit.total_time_seconds, (model::MetricMap{{"walltime", 90},
                                                       {"alloc_cputime", 180},
                                                       {"alloc_cpumemtime", 92160},
                                                       {"alloc_gputime", 0},
                                                       {"alloc_gpumemtime", 0}}));
}

/// Returns the unit of the window (kLocalDay + 60 s, kLocalDay + 120 s] for one life, if there is
/// one. Times are milliseconds after kLocalDay. Samples up to 25 s after the window are visible,
/// and a unit without samples for 45 s has ended.
std::optional<model::Unit> unit_at(UnitLife life) {
  life.uuid = "u";
  life.start_ms += kLocalDay;
  life.last_seen_ms += kLocalDay;
  for (std::int64_t* time : {&life.end_ms, &life.end_first_seen_ms, &life.seen_before_ms}) {
    *time += *time > 0 ? kLocalDay : 0;
  }
  const auto units =
      local_units({life},
                  {.window = {.start_ms = kLocalDay + 60'000, .end_ms = kLocalDay + 120'000},
                   .settle_ms = 25'000,
                   .gone_after_ms = 45'000,
                   .project = "local"},
                  TimeZone());
  return units.empty() ? std::nullopt : std::optional(units.front());
}

double walltime(const std::optional<model::Unit>& unit) {
  return unit ? unit->total_time_seconds.at("walltime") : -1;
}

TEST(LocalUnit, ThatIsSeenInTurnsWithAnotherStartIsOneLife) {
  const auto lives =
      lives_of({{.value = 100, .first_ms = 110'000, .last_ms = 150'000, .last_by_mark_ms = 140'000},
                {.value = 200, .first_ms = 210'000, .last_ms = 250'000},
                {.value = 100, .first_ms = 260'000, .last_ms = 300'000}},
               {});
  ASSERT_EQ(lives.size(), 2U);
  EXPECT_EQ(lives[0].start_ms, 100'000);
  EXPECT_EQ(lives[0].last_seen_ms, 300'000);
  EXPECT_EQ(lives[0].seen_before_ms, 140'000);
  EXPECT_EQ(lives[1].start_ms, 200'000);
  EXPECT_EQ(lives[1].last_seen_ms, 250'000);
  EXPECT_EQ(lives[1].seen_before_ms, 0);
}

TEST(LocalUnit, ThatStartsAtTheEndOfTheWindowIsThereAndALaterOneIsNot) {
  EXPECT_EQ(walltime(unit_at({.start_ms = 119'999, .last_seen_ms = 145'000})), 0.001);
  EXPECT_EQ(walltime(unit_at({.start_ms = 120'000, .last_seen_ms = 145'000})), 0);
  EXPECT_FALSE(unit_at({.start_ms = 120'001, .last_seen_ms = 145'000}));
}

TEST(LocalUnit, ThatEndsAtTheEndOfTheWindowHasEndedAndALaterOneHasNot) {
  for (const std::int64_t late : {-1, 0, 1}) {
    const auto unit = unit_at({.start_ms = 60'000,
                               .last_seen_ms = 145'000,
                               .end_ms = 120'000 + late,
                               .end_first_seen_ms = 130'000});
    ASSERT_TRUE(unit);
    EXPECT_EQ(unit->ended_at_ts, late <= 0 ? kLocalDay + 120'000 + late : 0) << late;
    EXPECT_EQ(unit->state, late <= 0 ? "ENDED" : "RUNNING") << late;
    EXPECT_EQ(walltime(unit), late < 0 ? 59.999 : 60) << late;
  }
}

TEST(LocalUnit, ThatEndsAtTheStartOfTheWindowBelongsToTheOneBefore) {
  for (const std::int64_t late : {-1, 0, 1}) {
    const auto unit = unit_at({.start_ms = 30'000,
                               .last_seen_ms = 85'000,
                               .seen_before_ms = 85'000,
                               .end_ms = 60'000 + late,
                               .end_first_seen_ms = 75'000});
    EXPECT_EQ(walltime(unit), late > 0 ? 0.001 : -1) << late;
  }
}

TEST(LocalUnit, WithoutSamplesIsGoneAfterAWhileToTheMillisecond) {
  EXPECT_EQ(unit_at({.start_ms = 60'000, .last_seen_ms = 75'000})->ended_at_ts, kLocalDay + 75'000);
  EXPECT_EQ(unit_at({.start_ms = 60'000, .last_seen_ms = 75'001})->ended_at_ts, 0);
}

TEST(Local, CountsAFiveSecondUnitOverASeamOfWindows) {
  FakeTsdb tsdb;
  add_unit(tsdb, "short", 57'000, 62'000, 64'000, 130'000);
  double walltime = 0;
  std::string states;
  for (std::int64_t from = 0; from < 300'000; from += 60'000) {
    for (const auto& unit : fetch(tsdb, from, from + 60'000)) {
      walltime += unit.total_time_seconds.at("walltime");
      states += unit.state + " ";
    }
  }
  EXPECT_EQ(walltime, 5);
  EXPECT_EQ(states, "RUNNING ENDED ");
}

TEST(Local, EndsAUnitThatVanishedAtItsLastSampleOnce) {
  FakeTsdb tsdb;
  add_unit(tsdb, "lost", 10'000, 0, 15'000, 90'000);
  std::vector<std::int64_t> ends;
  double walltime = 0;
  for (std::int64_t from = 0; from < 600'000; from += 60'000) {
    for (const auto& unit : fetch(tsdb, from, from + 60'000)) {
      walltime += unit.total_time_seconds.at("walltime");
      ends.push_back(unit.ended_at_ts == 0 ? 0 : unit.ended_at_ts - kLocalDay);
    }
  }
  EXPECT_EQ(ends, (std::vector<std::int64_t>{0, 0, 90'000}));
  EXPECT_EQ(walltime, 80);
}

TEST(Local, ReportsAnEndThatTheWindowBeforeCouldNotSee) {
  FakeTsdb tsdb;
  // The unit ended at 55 s, but nothing could be scraped between 50 s and 100 s.
  tsdb.add(kStartTime, unit_labels("late"), constant(seconds(5'000), 20'000, 50'000));
  tsdb.series.back().samples.push_back({kLocalDay + 100'000, seconds(5'000)});
  tsdb.add(kEnd, unit_labels("late"), {{kLocalDay + 100'000, seconds(55'000)}});
  const auto first = fetch(tsdb, 0, 60'000).at(0);
  EXPECT_EQ(first.state, "RUNNING");
  EXPECT_EQ(first.total_time_seconds.at("walltime"), 45);
  const auto units = fetch(tsdb, 60'000, 120'000);
  ASSERT_EQ(units.size(), 1U);
  EXPECT_EQ(units[0].state, "ENDED");
  EXPECT_EQ(units[0].ended_at_ts, kLocalDay + 55'000);
  EXPECT_EQ(units[0].total_time_seconds.at("walltime"), 5);
  EXPECT_TRUE(fetch(tsdb, 120'000, 180'000).empty());
}

TEST(Local, CountsATimeWithoutSamplesWhenTheUnitIsSeenAgain) {
  FakeTsdb tsdb;
  auto samples = constant(seconds(0), 0, 105'000);
  // The pause is shorter than `gone_after`.
  for (const auto& sample : constant(seconds(0), 150'000, 600'000)) {
    samples.push_back(sample);
  }
  tsdb.add(kStartTime, unit_labels("gap"), samples);
  double walltime = 0;
  for (std::int64_t from = 0; from < 300'000; from += 60'000) {
    for (const auto& unit : fetch(tsdb, from, from + 60'000)) {
      EXPECT_EQ(unit.state, "RUNNING");
      walltime += unit.total_time_seconds.at("walltime");
    }
  }
  EXPECT_EQ(walltime, 300);
}

TEST(Local, TakesARestartedServiceForTwoUnits) {
  FakeTsdb tsdb;
  auto labels = unit_labels("web.service");
  auto samples = constant(seconds(0), 0, 60'000);
  for (const auto& sample : constant(seconds(70'000), 75'000, 300'000)) {
    samples.push_back(sample);
  }
  tsdb.add(kStartTime, labels, samples);
  tsdb.add(kEnd, labels, {{kLocalDay + 72'000, seconds(65'000)}});
  const auto units = fetch(tsdb, 0, 120'000);
  ASSERT_EQ(units.size(), 2U);
  EXPECT_EQ(units[0].ended_at_ts, kLocalDay + 65'000);
  EXPECT_EQ(units[0].total_time_seconds.at("walltime"), 65);
  EXPECT_EQ(units[1].started_at_ts, kLocalDay + 70'000);
  EXPECT_EQ(units[1].ended_at_ts, 0);
  EXPECT_EQ(units[1].username, "unknown");
}

TEST(Local, JoinsTheSameUnitOnSeveralHosts) {
  FakeTsdb tsdb;
  add_unit(tsdb, "db.service", 10'000, 0, 15'000, 300'000, "n1");
  add_unit(tsdb, "db.service", 20'000, 0, 25'000, 300'000, "n2");
  const auto units = fetch(tsdb, 0, 120'000);
  ASSERT_EQ(units.size(), 1U);
  EXPECT_EQ(units[0].started_at_ts, kLocalDay + 10'000);
  EXPECT_EQ(units[0].total_time_seconds.at("alloc_cputime"), 4 * 110);
}

TEST(Local, LeavesOutUnitsOfOtherManagersAndTimesThatAreNone) {
  FakeTsdb tsdb;
  auto slurm = unit_labels("1");
  slurm["manager"] = "slurm";
  tsdb.add(kStartTime, slurm, constant(seconds(0), 0, 60'000));
  tsdb.add(kStartTime, unit_labels("2"), constant(-1, 0, 60'000));
  tsdb.add(kStartTime, unit_labels("3"), constant(1e300, 0, 60'000));
  EXPECT_TRUE(fetch(tsdb, 0, 60'000).empty());
}

TEST(Local, FindsUsersOfThePast) {
  FakeTsdb tsdb;
  add_unit(tsdb, "a", 0, 10'000, 0, 60'000);
  auto local = manager(tsdb);
  const auto people =
      local->fetch_users_projects({.start_ms = kLocalDay, .end_ms = kLocalDay + 86'400'000}, {});
  ASSERT_TRUE(people) << people.error().message;
  ASSERT_EQ(people->users.size(), 1U);
  EXPECT_EQ(people->users[0].name, "alice");
  EXPECT_EQ(people->users[0].projects, std::vector<std::string>{"local"});
  ASSERT_EQ(people->projects.size(), 1U);
  EXPECT_EQ(people->projects[0].users, std::vector<std::string>{"alice"});
}

TEST(Local, FailsWhileTheTsdbDoesNotAnswer) {
  FakeTsdb tsdb;
  tsdb.override_answer = [](const auto&) {
    return Result<net::ClientResponse>(fail(ErrorCode::kUnavailable, "connection refused"));
  };
  const auto units =
      manager(tsdb)->fetch_units({.start_ms = kLocalDay, .end_ms = kLocalDay + 60'000}, {});
  ASSERT_FALSE(units);
  EXPECT_EQ(units.error().message, "TSDB: connection refused");
}

TEST(Local, NeedsAnUrl) {
  const testing::FakeClock clock;
  const ManagerContext context{.clock = &clock};
  ClusterConfig config;
  config.cluster.id = "c1";
  const auto made = create_manager(local_manager(), config, context);
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().message, HasSubstr("cluster c1: manager local needs the URL"));
  config.web_url = "http://localhost:9090";
  config.extra = config::parse_yaml("project: p\nunit_managers: []\n", "c.yml").value();
  EXPECT_THAT(create_manager(local_manager(), config, context).error().message,
              HasSubstr("c.yml:2: unit_managers: expected at least one manager"));
}

}  // namespace
}  // namespace ceems::ingest
