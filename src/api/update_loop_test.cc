#include "api/update_loop.h"

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/fake_clock.h"

namespace ceems::api {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Window = std::pair<std::int64_t, std::int64_t>;  // seconds since the day began

constexpr std::int64_t kDay = 1'767'225'600'000;  // FakeClock starts here: 2026-01-01T00:00:00Z

Window in_seconds(model::Window window) {
  return {(window.start_ms - kDay) / 1000, (window.end_ms - kDay) / 1000};
}

/// A store in memory that checks the contract. Safe for concurrent use.
class FakeWriter final : public store::Writer {
 public:
  Result<std::optional<std::int64_t>> watermark(std::string_view cluster_id) override {
    const std::scoped_lock lock(mutex);
    if (broken) {
      return fail(ErrorCode::kUnavailable, "disk full");
    }
    const auto found = watermarks.find(cluster_id);
    return found == watermarks.end() ? std::nullopt : std::optional(found->second);
  }
  Result<store::WriteReport> write(const store::ClusterUpdate& update) override {
    const std::scoped_lock lock(mutex);
    if (broken) {
      return fail(ErrorCode::kUnavailable, "disk full");
    }
    const auto found = watermarks.find(update.cluster.id);
    if (found != watermarks.end()) {
      EXPECT_EQ(found->second, update.window.start_ms);
    }
    watermarks[update.cluster.id] = update.window.end_ms;
    windows[update.cluster.id].push_back(in_seconds(update.window));
    updates.push_back(update);
    changed.notify_all();
    return store::WriteReport{.written = update.units.size(), .skipped = 0};
  }
  Result<> write_admins(std::string_view source, const std::vector<std::string>& names) override {
    const std::scoped_lock lock(mutex);
    admins[std::string(source)] = names;
    return {};
  }
  Result<> purge(std::int64_t cutoff_ms) override {
    const std::scoped_lock lock(mutex);
    cutoffs.push_back(cutoff_ms);
    return {};
  }

  bool wait_for_windows(const std::string& cluster, std::size_t count) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, seconds(20), [&] { return windows[cluster].size() >= count; });
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::string, std::int64_t, std::less<>> watermarks;
  std::map<std::string, std::vector<Window>> windows;
  std::vector<store::ClusterUpdate> updates;
  std::map<std::string, std::vector<std::string>> admins;
  std::vector<std::int64_t> cutoffs;
  bool broken = false;
};

/// What a test says a cluster does.
struct Script {
  std::function<Result<std::vector<model::Unit>>(model::Window, std::stop_token)> units =
      [](auto, auto) { return std::vector<model::Unit>{}; };
  std::function<Result<UsersAndProjects>()> people = [] { return UsersAndProjects{}; };
  std::function<Result<>(std::vector<model::Unit>&)> update = [](auto&) { return Result<>{}; };
  milliseconds settle{0};
};

class FakeManager final : public ResourceManager {
 public:
  explicit FakeManager(Script& script) : script_(script) {}
  Result<std::vector<model::Unit>> fetch_units(model::Window window,
                                               std::stop_token stop) override {
    return script_.units(window, std::move(stop));
  }
  Result<UsersAndProjects> fetch_users_projects(model::Window /*window*/,
                                                std::stop_token /*stop*/) override {
    return script_.people();
  }

 private:
  Script& script_;
};

class FakeUpdater final : public Updater {
 public:
  explicit FakeUpdater(Script& script) : script_(script) {}
  Result<> update(model::Window /*window*/,
                  std::vector<model::Unit>& units,
                  std::stop_token /*stop*/) override {
    return script_.update(units);
  }
  [[nodiscard]] milliseconds settle() const override { return script_.settle; }

 private:
  Script& script_;
};

struct Fixture {
  std::unique_ptr<UpdateLoop> loop() {
    std::vector<UpdateSource> sources;
    for (auto& [id, script] : scripts) {
      UpdateSource source{.cluster = {.id = id, .manager = "fake", .updaters = {}},
                          .manager = std::make_unique<FakeManager>(script),
                          .updaters = {}};
      source.updaters.push_back(std::make_unique<FakeUpdater>(script));
      sources.push_back(std::move(source));
    }
    auto made = UpdateLoop::create(options, std::move(sources), writer, clock);
    EXPECT_TRUE(made) << (made ? "" : made.error().message);
    return std::move(*made);
  }

  UpdateOptions options;
  FakeWriter writer;
  testing::FakeClock clock;
  std::map<std::string, Script> scripts{{"a", {}}};
};

model::Unit unit(const std::string& uuid, std::int64_t ended_ms = 0) {
  model::Unit u;
  u.uuid = uuid;
  u.started_at = "2026";
  u.ended_at_ts = ended_ms;
  return u;
}

TEST(UpdateLoop, FillsFromTheStartOfTheDayInWindowsOfTheMaximum) {
  Fixture f;
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

TEST(UpdateLoop, GoesOnAtTheWatermarkOfTheStore) {
  Fixture f;
  f.options.update_from = "2025-01-01";
  f.writer.watermarks["a"] = kDay + 60'000;
  f.clock.advance(minutes(3) + milliseconds(700));
  EXPECT_EQ(f.loop()->run_round(), 1U);
  EXPECT_THAT(f.writer.windows["a"], ElementsAre(Window{60, 180}));
}

TEST(UpdateLoop, LeavesTheLastSecondsToSettle) {
  Fixture f;
  f.scripts["a"].settle = seconds(25);
  f.clock.advance(seconds(20));
  auto loop = f.loop();
  EXPECT_EQ(loop->run_round(), 0U);
  f.clock.advance(seconds(20));
  EXPECT_EQ(loop->run_round(), 1U);
  EXPECT_THAT(f.writer.windows["a"], ElementsAre(Window{0, 15}));
}

TEST(UpdateLoop, CutsWindowsAtMidnightOfTheZone) {
  Fixture f;
  f.options.time_zone = "Europe/Paris";
  f.options.max_update_interval = hours(48);
  f.options.update_from = "2025-12-31T22:00";
  f.clock.advance(minutes(10));
  EXPECT_EQ(f.loop()->run_round(), 2U);
  EXPECT_THAT(f.writer.windows["a"], ElementsAre(Window{-10800, -3600}, Window{-3600, 600}));
}

TEST(UpdateLoop, AClusterThatFailsKeepsItsWindowAndDoesNotStopOthers) {
  Fixture f;
  f.scripts["b"] = {};
  bool down = true;
  f.scripts["a"].units = [&down](auto, auto) -> Result<std::vector<model::Unit>> {
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
  Fixture f;
  bool down = true;
  f.scripts["a"].units = [](auto, auto) { return std::vector<model::Unit>{unit("1")}; };
  f.scripts["a"].update = [&down](auto& units) -> Result<> {
    units[0].name = "changed";
    if (down) {
      return fail(ErrorCode::kTimeout, "TSDB: no answer");
    }
    return {};
  };
  f.clock.advance(minutes(10));
  auto loop = f.loop();
  EXPECT_EQ(loop->run_round(), 0U);
  down = false;
  EXPECT_EQ(loop->run_round(), 1U);
  EXPECT_EQ(f.writer.updates[0].units[0].name, "changed");
}

TEST(UpdateLoop, AStoreThatFailsGetsTheSameWindowAgain) {
  Fixture f;
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
  Fixture f;
  f.scripts["b"] = {};
  f.scripts["a"].units = [](auto, auto) -> Result<std::vector<model::Unit>> {
    throw std::bad_alloc();
  };
  f.clock.advance(minutes(10));
  EXPECT_EQ(f.loop()->run_round(), 1U);
  EXPECT_THAT(f.writer.windows["b"], ElementsAre(Window{0, 600}));
}

TEST(UpdateLoop, KnownUsersStayWhereTheyCannotBeFetched) {
  Fixture f;
  f.scripts["a"].people = []() -> Result<UsersAndProjects> {
    return fail(ErrorCode::kUnavailable, "sacctmgr: exit status 1");
  };
  f.clock.advance(minutes(10));
  EXPECT_EQ(f.loop()->run_round(), 1U);
  EXPECT_FALSE(f.writer.updates[0].users.has_value());
  EXPECT_FALSE(f.writer.updates[0].projects.has_value());
}

TEST(UpdateLoop, WaitsWhileTheClockIsBehindAndFillsWhenItJumpsAhead) {
  Fixture f;
  f.clock.advance(minutes(60));
  auto loop = f.loop();
  EXPECT_EQ(loop->run_round(), 1U);
  f.clock.step_to(Clock::SystemTime(milliseconds(kDay)) + minutes(30));
  EXPECT_EQ(loop->run_round(), 0U);
  f.clock.step_to(Clock::SystemTime(milliseconds(kDay)) + minutes(61));
  EXPECT_EQ(loop->run_round(), 1U);
  f.clock.step_to(Clock::SystemTime(milliseconds(kDay)) + hours(3));
  EXPECT_EQ(loop->run_round(), 2U);
  EXPECT_THAT(f.writer.windows["a"], ElementsAre(Window{0, 3600}, Window{3600, 3660},
                                                 Window{3660, 7260}, Window{7260, 10800}));
}

TEST(UpdateLoop, WritesAdminsAndPurgesWholeDays) {
  Fixture f;
  f.options.admins = {"root", "ceems-int-svc"};
  f.options.retention = hours(49);
  f.clock.advance(hours(5));
  f.loop()->run_round();
  EXPECT_EQ(f.writer.admins["ceems"], (std::vector<std::string>{"root", "ceems-int-svc"}));
  EXPECT_THAT(f.writer.cutoffs, ElementsAre(kDay - 2 * 86'400'000));
  Fixture kept;
  kept.options.purge = false;
  kept.loop()->run_round();
  EXPECT_THAT(kept.writer.cutoffs, IsEmpty());
}

TEST(UpdateLoop, DropsUnitsThatThePurgeWouldDeleteAndRepeatedOnes) {
  Fixture f;
  f.options.retention = hours(24);
  f.scripts["a"].units = [](auto, auto) {
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
  Fixture f;
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

TEST(UpdateLoop, AClusterThatHangsDoesNotHoldUpOthersOrTheStop) {
  Fixture f;
  f.scripts["slow"].units = [](auto, std::stop_token stop) -> Result<std::vector<model::Unit>> {
    std::mutex mutex;
    std::condition_variable_any forever;
    std::unique_lock lock(mutex);
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

TEST(UpdateLoop, ReadsUpdateFrom) {
  const Clock::SystemTime now{milliseconds(kDay + 5 * 3'600'000)};
  const auto from = [now](std::string_view text, std::string_view zone) {
    return parse_update_from(text, zone, now);
  };
  EXPECT_EQ(from("", "UTC"), kDay);
  EXPECT_EQ(from("today", "Europe/Paris"), kDay - 3'600'000);
  EXPECT_EQ(from("2026-01-01T01:00", "Europe/Paris"), kDay);
  EXPECT_EQ(from("2026-01-01T00:00:01", "UTC"), kDay + 1000);
  EXPECT_EQ(from("soon", "UTC").error().message, "failed to parse time string: soon");
  EXPECT_EQ(from("", "Mars/Olympus").error().message, "unknown time zone Mars/Olympus");
}

TEST(UpdateLoop, RefusesIntervalsOfNothing) {
  Fixture f;
  f.options.update_interval = milliseconds(0);
  const auto made = UpdateLoop::create(f.options, std::vector<UpdateSource>{}, f.writer, f.clock);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().message,
            "update_interval and/or max_update_interval must be more than 0s");
}

}  // namespace
}  // namespace ceems::api
