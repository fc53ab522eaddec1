#include "ingest/update_loop.h"

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/mutex.h"
#include "ingest/update_loop_test_support.h"

namespace ceems::ingest {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(UpdateLoop, FillsFromTheStartOfTheDayInWindowsOfTheMaximum) {
  LoopFixture f;
  f.clock.advance(hours(2) + minutes(30));
  auto loop = f.loop();
  EXPECT_EQ(loop->run_round(), 3U);
  EXPECT_THAT(f.writer.windows["a"],
              ElementsAre(Window{0, 3600}, Window{3600, 7200}, Window{7200, 9000}));
  EXPECT_EQ(loop->run_round(), 0U);  // nothing new
  f.clock.advance(minutes(15));
  EXPECT_EQ(loop->run_round(), 1U);
  EXPECT_EQ(f.writer.windows["a"].back(), (Window{9000, 9900}));
}

// Half a second of work in each round would take a day for a large database.
TEST(UpdateLoop, ComputesAllMissingSumsInOneRound) {
  LoopFixture f;
  f.clock.advance(minutes(30));
  f.writer.sums_left = 100;
  EXPECT_EQ(f.loop()->run_round(), 1U);
  EXPECT_EQ(f.writer.sums_left, 0U);
}

TEST(UpdateLoop, GoesOnAtTheWatermarkOfTheStore) {
  LoopFixture f;
  f.options.update_from = "2025-01-01";
  f.writer.watermarks["a"] = kDay + 60'000;
  f.clock.advance(minutes(3) + milliseconds(700));
  EXPECT_EQ(f.loop()->run_round(), 1U);
  EXPECT_THAT(f.writer.windows["a"], ElementsAre(Window{60, 180}));
}

TEST(UpdateLoop, LeavesTheLastSecondsToSettle) {
  LoopFixture f;
  f.scripts["a"].settle = seconds(25);
  f.clock.advance(seconds(20));
  auto loop = f.loop();
  EXPECT_EQ(loop->run_round(), 0U);
  f.clock.advance(seconds(20));
  EXPECT_EQ(loop->run_round(), 1U);
  EXPECT_THAT(f.writer.windows["a"], ElementsAre(Window{0, 15}));
}

TEST(UpdateLoop, CutsWindowsAtMidnightOfTheZone) {
  LoopFixture f;
  f.options.time_zone = "Europe/Paris";
  f.options.max_update_interval = hours(48);
  f.options.update_from = "2025-12-31T22:00";
  f.clock.advance(minutes(10));
  EXPECT_EQ(f.loop()->run_round(), 2U);
  EXPECT_THAT(f.writer.windows["a"], ElementsAre(Window{-10800, -3600}, Window{-3600, 600}));
}

TEST(UpdateLoop, AClusterThatFailsKeepsItsWindowAndDoesNotStopOthers) {
  LoopFixture f;
  f.scripts["b"] = {};
  bool down = true;
  f.scripts["a"].units = [&down](auto, const auto&) -> Result<std::vector<model::Unit>> {
    if (down) {
      return fail(ErrorCode::kUnavailable, "sacct: exit status 1");
    }
    return std::vector<model::Unit>{unit("1")};
  };
  auto loop = f.loop();
  for (int i = 0; i < 3; ++i) {
    f.clock.advance(minutes(10));
    loop->run_round();
  }
  EXPECT_THAT(f.writer.windows["a"], IsEmpty());
  EXPECT_THAT(f.writer.windows["b"],
              ElementsAre(Window{0, 600}, Window{600, 1200}, Window{1200, 1800}));
  down = false;
  loop->run_round();
  EXPECT_THAT(f.writer.windows["a"], ElementsAre(Window{0, 1800}));
}

TEST(UpdateLoop, AnUpdaterThatFailsKeepsTheWindow) {
  LoopFixture f;
  bool down = true;
  f.scripts["a"].units = [](auto, const auto&) { return std::vector<model::Unit>{unit("1")}; };
  f.scripts["a"].update = [&down](const auto&, auto& units) -> Result<Missing> {
    units[0].name = "changed";
    if (down) {
      return fail(ErrorCode::kTimeout, "TSDB: no answer");
    }
    return Missing{};
  };
  f.clock.advance(minutes(10));
  auto loop = f.loop();
  EXPECT_EQ(loop->run_round(), 0U);
  down = false;
  EXPECT_EQ(loop->run_round(), 1U);
  EXPECT_EQ(f.writer.updates[0].units[0].name, "changed");
}

TEST(UpdateLoop, AStoreThatFailsGetsTheSameWindowAgain) {
  LoopFixture f;
  f.clock.advance(minutes(10));
  auto loop = f.loop();
  f.writer.broken = true;
  EXPECT_EQ(loop->run_round(), 0U);
  f.clock.advance(minutes(10));
  EXPECT_EQ(loop->run_round(), 0U);
  f.writer.broken = false;
  EXPECT_EQ(loop->run_round(), 1U);
  EXPECT_THAT(f.writer.windows["a"], ElementsAre(Window{0, 1200}));
}

TEST(UpdateLoop, ManagersThatThrowAreErrors) {
  LoopFixture f;
  f.scripts["b"] = {};
  f.scripts["a"].units = [](auto, const auto&) -> Result<std::vector<model::Unit>> {
    throw std::bad_alloc();
  };
  f.clock.advance(minutes(10));
  EXPECT_EQ(f.loop()->run_round(), 1U);
  EXPECT_THAT(f.writer.windows["b"], ElementsAre(Window{0, 600}));
}

TEST(UpdateLoop, KnownUsersStayWhereTheyCannotBeFetched) {
  LoopFixture f;
  f.scripts["a"].people = []() -> Result<UsersAndProjects> {
    return fail(ErrorCode::kUnavailable, "sacctmgr: exit status 1");
  };
  f.clock.advance(minutes(10));
  EXPECT_EQ(f.loop()->run_round(), 1U);
  EXPECT_FALSE(f.writer.updates[0].users.has_value());
  EXPECT_FALSE(f.writer.updates[0].projects.has_value());
}

TEST(UpdateLoop, UnitsUsersAndProjectsGetTheIdAndManagerOfTheirCluster) {
  LoopFixture f;
  f.scripts["a"].units = [](auto, const auto&) { return std::vector<model::Unit>{unit("1")}; };
  f.scripts["a"].people = [] { return users_and_projects({{.project = "p", .user = "u"}}); };
  f.clock.advance(minutes(10));
  EXPECT_EQ(f.loop()->run_round(), 1U);
  const auto& update = f.writer.updates.at(0);
  EXPECT_EQ(update.units.at(0).cluster_id, "a");
  EXPECT_EQ(update.units.at(0).resource_manager, "fake");
  EXPECT_EQ(update.users->at(0).cluster_id, "a");
  EXPECT_EQ(update.users->at(0).resource_manager, "fake");
  EXPECT_EQ(update.projects->at(0).cluster_id, "a");
  EXPECT_EQ(update.projects->at(0).resource_manager, "fake");
}

TEST(UpdateLoop, KnownLeadsStayWhereTheyCannotBeFetched) {
  LoopFixture f;
  f.scripts["a"].leads = [] { return ProjectLeads{{"fluids", {"lea"}}}; };
  f.clock.advance(minutes(10));
  auto loop = f.loop();
  EXPECT_EQ(loop->run_round(), 1U);
  EXPECT_EQ(f.writer.updates[0].leads, (ProjectLeads{{"fluids", {"lea"}}}));
  f.scripts["a"].leads = []() -> Result<ProjectLeads> {
    return fail(ErrorCode::kUnavailable, "sacctmgr: exit status 1");
  };
  f.clock.advance(minutes(15));
  EXPECT_EQ(loop->run_round(), 1U);
  EXPECT_FALSE(f.writer.updates[1].leads.has_value());
  EXPECT_TRUE(f.writer.updates[1].users.has_value());
  f.scripts["a"].leads = [] { return ProjectLeads{}; };
  f.clock.advance(minutes(15));
  EXPECT_EQ(loop->run_round(), 1U);
  EXPECT_EQ(f.writer.updates[2].leads, ProjectLeads{});
}

TEST(UpdateLoop, WaitsWhileTheClockIsBehindAndFillsWhenItJumpsAhead) {
  LoopFixture f;
  f.clock.advance(minutes(60));
  auto loop = f.loop();
  EXPECT_EQ(loop->run_round(), 1U);
  f.clock.step_to(Clock::SystemTime(milliseconds(kDay)) + minutes(30));
  EXPECT_EQ(loop->run_round(), 0U);
  f.clock.advance(minutes(31));
  EXPECT_EQ(loop->run_round(), 1U);
  f.clock.step_to(Clock::SystemTime(milliseconds(kDay)) + hours(3));
  EXPECT_EQ(loop->run_round(), 0U);  // the clock may still step back
  f.clock.advance(minutes(15));
  EXPECT_EQ(loop->run_round(), 3U);
  EXPECT_THAT(f.writer.windows["a"],
              ElementsAre(Window{0, 3600}, Window{3600, 3660}, Window{3660, 7260},
                          Window{7260, 10860}, Window{10860, 11700}));
}

TEST(UpdateLoop, AClockThatStepsAheadAndBackLosesNothing) {
  LoopFixture f;
  f.clock.advance(minutes(60));
  auto loop = f.loop();
  EXPECT_EQ(loop->run_round(), 1U);
  f.clock.advance(minutes(5));
  f.clock.step_to(Clock::SystemTime(milliseconds(kDay)) + hours(24 * 365));
  EXPECT_EQ(loop->run_round(), 1U);  // as far as the steady clock says
  f.clock.step_to(Clock::SystemTime(milliseconds(kDay)) + minutes(66));
  EXPECT_EQ(loop->run_round(), 1U);
  EXPECT_THAT(f.writer.windows["a"],
              ElementsAre(Window{0, 3600}, Window{3600, 3900}, Window{3900, 3960}));
}

TEST(UpdateLoop, WindowsAreNotShorterThanUpdatersNeedNorIsWhatIsLeftOfTheDay) {
  LoopFixture f;
  f.scripts["a"].shortest = minutes(4);
  f.options.update_from = "2026-01-01T22:00";
  f.clock.advance(hours(22) + minutes(3));
  auto loop = f.loop();
  EXPECT_EQ(loop->run_round(), 0U);
  f.clock.advance(minutes(1));
  EXPECT_EQ(loop->run_round(), 1U);
  f.clock.advance(minutes(57));  // 23:01
  EXPECT_EQ(loop->run_round(), 1U);
  f.clock.advance(minutes(57));  // 23:58: a window up to now would leave two minutes
  EXPECT_EQ(loop->run_round(), 1U);
  f.clock.advance(minutes(3));
  EXPECT_EQ(loop->run_round(), 1U);
  f.clock.advance(minutes(3));
  EXPECT_EQ(loop->run_round(), 1U);
  constexpr std::int64_t kMinute = 60;
  EXPECT_THAT(
      f.writer.windows["a"],
      ElementsAre(Window{1320 * kMinute, 1324 * kMinute}, Window{1324 * kMinute, 1381 * kMinute},
                  Window{1381 * kMinute, 1436 * kMinute}, Window{1436 * kMinute, 1440 * kMinute},
                  Window{1440 * kMinute, 1444 * kMinute}));
}

TEST(UpdateLoop, OnlyTheProgramThatLeadsFetchesAndWrites) {
  LoopFixture f;
  f.writer.leads = false;
  f.clock.advance(minutes(10));
  auto loop = f.loop();
  EXPECT_EQ(loop->run_round(), 0U);
  EXPECT_THAT(f.writer.cutoffs, IsEmpty());
  // Another program has written in the meantime.
  f.writer.watermarks["a"] = kDay + 300'000;
  f.writer.leads = true;
  EXPECT_EQ(loop->run_round(), 1U);
  EXPECT_THAT(f.writer.windows["a"], ElementsAre(Window{300, 600}));
  f.writer.leads = false;
  EXPECT_EQ(loop->run_round(), 0U);
  f.writer.watermarks["a"] = kDay + 900'000;
  f.clock.advance(minutes(10));
  f.writer.leads = true;
  EXPECT_EQ(loop->run_round(), 1U);
  EXPECT_EQ(f.writer.windows["a"].back(), (Window{900, 1200}));
}

TEST(UpdateLoop, AWrittenWindowIsReleasedInItsRound) {
  LoopFixture f;
  auto loop = f.loop();
  f.clock.advance(minutes(90));  // two windows
  EXPECT_EQ(loop->run_round(), 2U);
  EXPECT_THAT(f.scripts["a"].released, ElementsAre(kDay, kDay + 3'600'000, kDay + 5'400'000));
  f.writer.broken = true;
  f.clock.advance(minutes(10));
  EXPECT_EQ(loop->run_round(), 0U);
  EXPECT_EQ(f.scripts["a"].released.back(), kDay + 5'400'000);
}

/// Returns the admins that a test sets.
class FakeAdmins final : public AdminSource {
 public:
  Result<AdminNames> fetch(const std::stop_token& /*stop*/) override { return answer; }
  Result<AdminNames> answer = AdminNames{};
};

TEST(UpdateLoop, AdminsOfGrafanaFollowEveryFetchThatIsNotEmpty) {
  using Names = std::vector<std::string>;
  LoopFixture f;
  const auto grafana = std::make_shared<FakeAdmins>();
  f.options.grafana = grafana;
  f.writer.admins["grafana"] = {"old"};
  auto loop = f.loop();
  grafana->answer = fail(ErrorCode::kUnavailable, "connection refused");
  loop->run_round();
  EXPECT_EQ(f.writer.admins["grafana"], Names{"old"});
  EXPECT_EQ(UpdateMetrics(f.registry).admin_failures.value(), 1U);
  grafana->answer = AdminNames{.names = {"ada"}, .all = false};
  loop->run_round();
  EXPECT_EQ(f.writer.admins["grafana"], (Names{"old", "ada"}));
  grafana->answer = AdminNames{.names = {"ada", "bob"}};
  loop->run_round();
  EXPECT_EQ(f.writer.admins["grafana"], (Names{"ada", "bob"}));
  grafana->answer = AdminNames{.names = {"bob"}};
  loop->run_round();
  EXPECT_EQ(f.writer.admins["grafana"], Names{"bob"});
  grafana->answer = AdminNames{};
  loop->run_round();
  EXPECT_EQ(f.writer.admins["grafana"], Names{"bob"});
}

TEST(UpdateLoop, AdminsOfGrafanaEndWithItsConfiguration) {
  LoopFixture f;
  f.writer.admins["grafana"] = {"old"};
  f.loop()->run_round();
  EXPECT_THAT(f.writer.admins["grafana"], IsEmpty());
}

TEST(UpdateLoop, CountsWhatItDoes) {
  LoopFixture f;
  bool down = false;
  f.scripts["a"].units = [&down](auto, const auto&) -> Result<std::vector<model::Unit>> {
    if (down) {
      return fail(ErrorCode::kUnavailable, "down");
    }
    return std::vector<model::Unit>{unit("1"), unit("2")};
  };
  f.clock.advance(minutes(90));
  auto loop = f.loop();
  const ClusterMetrics metrics(f.registry, "a");
  EXPECT_EQ(metrics.watermark.value(), 0);
  loop->run_round();
  down = true;
  f.clock.advance(minutes(10));
  loop->run_round();
  EXPECT_EQ(UpdateMetrics(f.registry).rounds.value(), 2U);
  EXPECT_EQ(metrics.watermark.value(), (kDay + 5'400'000) / 1000.0);
  EXPECT_EQ(metrics.windows.value(), 2U);
  EXPECT_EQ(metrics.units.value(), 2);
  EXPECT_EQ(metrics.failures.value(), 1U);
  EXPECT_EQ(metrics.failing.value(), 1);
}

/// What a round logs.
std::string log_of_a_round(UpdateLoop& loop) {
  ::testing::internal::CaptureStderr();
  loop.run_round();
  return ::testing::internal::GetCapturedStderr();
}

TEST(UpdateLoop, LogsOnceThatItCannotPurge) {
  LoopFixture f;
  f.writer.purged = fail(ErrorCode::kUnavailable, "disk full");
  auto loop = f.loop();
  EXPECT_THAT(log_of_a_round(*loop), HasSubstr("cannot purge old units\" err=\"disk full\""));
  EXPECT_THAT(log_of_a_round(*loop), Not(HasSubstr("purge")));
  EXPECT_EQ(UpdateMetrics(f.registry).purge_failures.value(), 2U);
  f.writer.purged = {};
  EXPECT_THAT(log_of_a_round(*loop), Not(HasSubstr("purge")));
  EXPECT_EQ(UpdateMetrics(f.registry).purge_failures.value(), 2U);
  f.writer.purged = fail(ErrorCode::kUnavailable, "disk full");
  EXPECT_THAT(log_of_a_round(*loop), HasSubstr("cannot purge old units"));
}

TEST(UpdateLoop, LogsOnceWhoUpdatesTheDatabase) {
  LoopFixture f;
  auto loop = f.loop();
  EXPECT_THAT(log_of_a_round(*loop), Not(HasSubstr("updates the database")));
  f.writer.leads = false;
  EXPECT_THAT(log_of_a_round(*loop), HasSubstr("another program updates the database; waiting"));
  EXPECT_THAT(log_of_a_round(*loop), Not(HasSubstr("updates the database")));
  f.writer.leads = fail(ErrorCode::kUnavailable, "no answer");
  EXPECT_THAT(log_of_a_round(*loop), HasSubstr("who updates it\" err=\"no answer\""));
  EXPECT_THAT(log_of_a_round(*loop), Not(HasSubstr("update")));
  f.writer.leads = true;
  EXPECT_THAT(log_of_a_round(*loop), HasSubstr("this program updates the database"));
  f.writer.leads = fail(ErrorCode::kUnavailable, "no answer");
  EXPECT_THAT(log_of_a_round(*loop), HasSubstr("who updates it\" err=\"no answer\""));
}

TEST(UpdateLoop, FillsFactsUntilThereAreNoneWithout) {
  LoopFixture f;
  f.scripts.clear();  // so that no one else writes
  std::vector<bool> told;
  f.options.on_written = [&told](bool leads) { told.push_back(leads); };
  f.writer.facts_left = 3;
  auto loop = f.loop();
  loop->run_round();
  EXPECT_EQ(f.writer.facts_left, 0U);
  EXPECT_THAT(told, ElementsAre(true, true)) << "at the begin, and once all are filled";
  told.clear();
  loop->run_round();
  EXPECT_THAT(told, ElementsAre(true));
  f.writer.filled = fail(ErrorCode::kUnavailable, "disk full");
  EXPECT_THAT(log_of_a_round(*loop), HasSubstr("cannot write the facts of units, trying again in "
                                               "the next round\" err=\"disk full\""));
  EXPECT_THAT(log_of_a_round(*loop), Not(HasSubstr("facts")));
  f.writer.filled = {};
  EXPECT_THAT(log_of_a_round(*loop), Not(HasSubstr("facts")));
  f.writer.filled = fail(ErrorCode::kUnavailable, "disk full");
  EXPECT_THAT(log_of_a_round(*loop), HasSubstr("cannot write the facts"));
}

TEST(UpdateLoop, CountsTheSumsThatAreOpen) {
  LoopFixture f;
  f.writer.sums_left = 100;
  f.clock.advance(minutes(10));
  std::stop_source stopped;
  stopped.request_stop();
  auto loop = f.loop();
  EXPECT_EQ(loop->run_round(stopped.get_token()), 0U) << "no window, because it is to stop";
  EXPECT_EQ(UpdateMetrics(f.registry).sums_open.value(), 99);
  EXPECT_EQ(loop->run_round(), 1U);
  EXPECT_EQ(UpdateMetrics(f.registry).sums_open.value(), 0);
}

TEST(UpdateLoop, TrustsAClockThatStepsAfterAQuarterOfAnHourEvenIfRoundsAreRare) {
  LoopFixture f;
  f.options.update_interval = hours(6);
  auto loop = f.loop();
  EXPECT_EQ(loop->run_round(), 0U);
  f.clock.step_to(Clock::SystemTime(milliseconds(kDay)) + hours(1));
  EXPECT_EQ(loop->run_round(), 0U);
  f.clock.advance(minutes(15) - milliseconds(1));
  EXPECT_EQ(loop->run_round(), 1U);
  EXPECT_THAT(f.writer.windows["a"], ElementsAre(Window{0, 899}));
  f.clock.advance(milliseconds(1));
  EXPECT_EQ(loop->run_round(), 2U);
  EXPECT_EQ(f.writer.windows["a"].back(), (Window{4499, 4500}));
}

TEST(UpdateLoop, ItsThreadFollowsGrafanaAndFillsWhatIsMissing) {
  LoopFixture f;
  const auto grafana = std::make_shared<FakeAdmins>();
  grafana->answer = AdminNames{.names = {"ada"}};
  f.options.grafana = grafana;
  f.options.backfill_pause = milliseconds(0);
  f.writer.facts_left = 3;
  f.writer.sums_left = 3;
  auto loop = f.loop();
  loop->start();
  EXPECT_TRUE(f.writer.wait_for_admins("grafana", {"ada"}));
  EXPECT_TRUE(testing::eventually([&] {
    const MutexLock lock(f.writer.mutex);
    return f.writer.facts_left == 0 && f.writer.sums_left == 0;
  }));
  loop->stop();
  EXPECT_EQ(f.writer.cutoffs.size(), 1U) << "one round";
}

TEST(UpdateLoop, BeginsOnlyWhenItMay) {
  LoopFixture f;
  f.options.admins = {"root"};
  f.clock.advance(minutes(10));
  std::atomic<int> asked = 0;
  f.options.wait_until_ready = [&asked](const std::stop_token& /*stop*/) {
    ++asked;
    return false;
  };
  auto loop = f.loop();
  loop->start();
  EXPECT_TRUE(testing::eventually([&asked] { return asked == 2; }));
  loop->stop();
  EXPECT_THAT(f.writer.admins, IsEmpty());
  EXPECT_THAT(f.writer.cutoffs, IsEmpty());
  EXPECT_THAT(f.writer.windows["a"], IsEmpty());
  LoopFixture other;
  other.options.admins = {"root"};
  other.clock.advance(minutes(10));
  other.options.wait_until_ready = [](const std::stop_token& /*stop*/) { return true; };
  auto ready = other.loop();
  ready->start();
  EXPECT_TRUE(other.writer.wait_for_windows("a", 1));
  ready->stop();
}

TEST(UpdateLoop, DoesNotWriteAdminsAtItsStartWhereAnotherProgramLeads) {
  LoopFixture f;
  f.options.admins = {"root"};
  f.writer.leads = false;
  auto loop = f.loop();
  loop->start();
  loop->stop();
  EXPECT_THAT(f.writer.admins, IsEmpty());
}

TEST(UpdateLoop, WritesAdminsAndPurgesWholeDays) {
  LoopFixture f;
  f.options.admins = {"root", "ceems-int-svc"};
  f.options.retention = hours(49);
  f.clock.advance(hours(5));
  f.loop()->run_round();
  EXPECT_EQ(f.writer.admins["ceems"], (std::vector<std::string>{"root", "ceems-int-svc"}));
  EXPECT_THAT(f.writer.cutoffs, ElementsAre(kDay - 2 * 86'400'000));
  LoopFixture kept;
  kept.options.purge = false;
  kept.loop()->run_round();
  EXPECT_THAT(kept.writer.cutoffs, IsEmpty());
}

TEST(UpdateLoop, DropsUnitsThatThePurgeWouldDeleteAndRepeatedOnes) {
  LoopFixture f;
  f.options.retention = hours(24);
  f.scripts["a"].units = [](auto, const auto&) {
    auto newer = unit("1");
    newer.name = "newer";
    return std::vector<model::Unit>{unit("old", kDay - 86'400'001), unit("1"), newer,
                                    unit("young", kDay - 86'400'000)};
  };
  f.clock.advance(minutes(10));
  f.loop()->run_round();
  const auto& units = f.writer.updates.at(0).units;
  ASSERT_EQ(units.size(), 2U);
  EXPECT_EQ(units[0].name, "newer");
  EXPECT_EQ(units[1].uuid, "young");
}

TEST(UpdateLoop, RunsTheFirstRoundAtOnceAndLaterOnesByTheClock) {
  LoopFixture f;
  f.scripts["b"] = {};
  f.options.update_interval = minutes(10);
  f.options.backfill_pause = milliseconds(0);
  f.clock.advance(minutes(150));
  auto loop = f.loop();
  loop->start();
  ASSERT_TRUE(f.writer.wait_for_windows("a", 3));
  ASSERT_TRUE(f.writer.wait_for_windows("b", 3));
  f.clock.advance(minutes(10));
  ASSERT_TRUE(f.writer.wait_for_windows("a", 4));
  ASSERT_TRUE(f.writer.wait_for_windows("b", 4));
  loop->stop();
  loop->stop();
  EXPECT_EQ(f.writer.windows["a"].back(), (Window{9000, 9600}));
}

TEST(UpdateLoop, KnowsTheConfiguredAdminsOnceItIsStarted) {
  LoopFixture f;
  f.options.admins = {"root"};
  auto loop = f.loop();
  loop->start();
  loop->stop();
  EXPECT_EQ(f.writer.admins["ceems"], std::vector<std::string>{"root"});
  EXPECT_EQ(f.writer.admins_written_by, std::this_thread::get_id());
}

TEST(UpdateLoop, AClusterThatHangsDoesNotHoldUpOthersOrTheStop) {
  LoopFixture f;
  f.scripts["slow"].units = [](auto,
                               const std::stop_token& stop) -> Result<std::vector<model::Unit>> {
    Mutex mutex;
    Condition forever;
    MutexLock lock(mutex);
    forever.wait(lock, stop, [] { return false; });
    return fail(ErrorCode::kUnavailable, "stopped");
  };
  f.options.update_interval = minutes(10);
  f.clock.advance(minutes(10));
  auto loop = f.loop();
  loop->start();
  ASSERT_TRUE(f.writer.wait_for_windows("a", 1));
  f.clock.advance(minutes(10));
  ASSERT_TRUE(f.writer.wait_for_windows("a", 2));
  loop->stop();
  EXPECT_THAT(f.writer.windows["slow"], IsEmpty());
  EXPECT_FALSE(f.writer.watermarks.contains("slow"));
}

TEST(UpdateLoop, RefusesIntervalsOfNothing) {
  LoopFixture f;
  const auto made = [&f](milliseconds interval, milliseconds longest) {
    f.options.update_interval = interval;
    f.options.max_update_interval = longest;
    return UpdateLoop::create(f.options, std::vector<UpdateSource>{}, f.writer, f.registry,
                              f.clock);
  };
  for (const auto& refused : {made(milliseconds(0), hours(1)), made(hours(1), milliseconds(999))}) {
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().message,
              "update_interval and/or max_update_interval must be more than 0s");
  }
  ::testing::internal::CaptureStderr();
  EXPECT_TRUE(made(milliseconds(1), seconds(1)));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("no clusters are configured; there is nothing to update"));
}

}  // namespace
}  // namespace ceems::ingest
