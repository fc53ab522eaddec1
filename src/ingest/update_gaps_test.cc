#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ingest/update_loop_test_support.h"
#include "store/schema/tables.h"

namespace ceems::ingest {
namespace {

using model::Metric;
using std::chrono::minutes;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using Parts = std::vector<std::string>;

/// A cluster with one unit and an updater that provides avg_cpu_usage and energy unless the test
/// makes it fail.
struct GapFixture : LoopFixture {
  GapFixture() {
    scripts["a"].units = [](model::Window window, const auto&) {
      auto one = unit("1");
      one.total_time_seconds = {
          {"walltime", static_cast<double>(window.end_ms - window.start_ms) / 1000}};
      return std::vector<model::Unit>{one};
    };
    scripts["a"].update = [this](const UpdateRequest& request,
                                 std::vector<model::Unit>& units) -> Result<Missing> {
      requests.push_back(request);
      if (down) {
        units.at(0).metric(Metric::kAvgCpuUsage)["global"] = -1;  // an incomplete result
        return fail(ErrorCode::kTimeout, "TSDB: no answer");
      }
      const auto wanted = [&request](const std::string& part) {
        return request.parts.empty() ||
               std::ranges::find(request.parts, part) != request.parts.end();
      };
      Missing missing{.parts = {}, .cause = {}, .lasting = true};
      for (const auto metric : {Metric::kAvgCpuUsage, Metric::kTotalCpuEnergyUsageKwh}) {
        const std::string part = std::string(store::column_name(metric)) + ".x";
        if (!wanted(part)) {
          continue;
        }
        if (part == broken_part) {
          missing.parts.push_back(part);
          missing.cause =
              Error{refused ? ErrorCode::kInvalidArgument : ErrorCode::kUnavailable, "no " + part};
          missing.lasting = refused;
          continue;
        }
        units.at(0).metric(metric)["x"] = 7;
        units.at(0).has_metric[static_cast<std::size_t>(metric)] = true;
      }
      return missing;
    };
  }

  std::vector<UpdateRequest> requests;
  bool down = false;
  bool refused = false;
  std::string broken_part;
};

TEST(UpdateGaps, AWindowWaitsForItsMetricsThreeRoundsThenIsWrittenWithoutAndFilledLater) {
  GapFixture f;
  auto loop = f.loop();
  f.down = true;
  for (int i = 0; i < 2; ++i) {
    f.clock.advance(minutes(10));
    EXPECT_EQ(loop->run_round(), 0U);
  }
  f.clock.advance(minutes(10));
  EXPECT_EQ(loop->run_round(), 1U);
  EXPECT_THAT(f.writer.windows["a"], ElementsAre(Window{0, 1800}));
  EXPECT_THAT(f.writer.updates.at(0).units.at(0).metric(Metric::kAvgCpuUsage), IsEmpty());
  ASSERT_THAT(f.writer.open_gaps["a"], SizeIs(1));
  EXPECT_EQ(f.writer.open_gaps["a"][0].first.updater, "up");
  EXPECT_EQ(f.writer.open_gaps["a"][0].first.parts, Parts{"*"});
  // From now on users see their units without delay.
  f.clock.advance(minutes(10));
  EXPECT_EQ(loop->run_round(), 1U);
  EXPECT_THAT(f.writer.open_gaps["a"], SizeIs(2));
  EXPECT_THAT(f.writer.fills, IsEmpty());
  const ClusterMetrics metrics(f.registry, "a");
  EXPECT_EQ(metrics.gaps.value(), 1);
  f.down = false;
  f.clock.advance(minutes(10));
  EXPECT_EQ(loop->run_round(), 1U);
  EXPECT_THAT(f.writer.open_gaps["a"], IsEmpty());
  ASSERT_THAT(f.writer.fills, SizeIs(2));
  const auto& filled = f.writer.fills[0].units.at(0);
  EXPECT_EQ(filled.metric(Metric::kAvgCpuUsage).at("x"), 7);
  EXPECT_EQ(filled.metric(Metric::kTotalCpuEnergyUsageKwh).at("x"), 7);
  EXPECT_EQ(filled.total_time_seconds.at("walltime"), 1800);
  EXPECT_EQ(metrics.gaps.value(), 0);
  EXPECT_EQ(metrics.gaps_filled.value(), 2U);
  EXPECT_EQ(metrics.failing.value(), 0);
}

TEST(UpdateGaps, AQueryThatIsRefusedHoldsNothingUpAndIsAskedAgainOnlyWhenItWorks) {
  GapFixture f;
  f.broken_part = "avg_cpu_usage.x";
  f.refused = true;
  auto loop = f.loop();
  for (int i = 0; i < 3; ++i) {
    f.clock.advance(minutes(10));
    EXPECT_EQ(loop->run_round(), 1U);
  }
  // One request per window: retrying the gaps would be useless.
  EXPECT_THAT(f.requests, SizeIs(3));
  ASSERT_THAT(f.writer.open_gaps["a"], SizeIs(3));
  EXPECT_EQ(f.writer.open_gaps["a"][0].first.parts, Parts{"avg_cpu_usage.x"});
  EXPECT_EQ(f.writer.updates[0].units[0].metric(Metric::kTotalCpuEnergyUsageKwh).at("x"), 7);
  f.broken_part.clear();
  f.clock.advance(minutes(10));
  EXPECT_EQ(loop->run_round(), 1U);
  EXPECT_THAT(f.writer.open_gaps["a"], IsEmpty());
  ASSERT_THAT(f.writer.fills, SizeIs(3));
  EXPECT_EQ(f.writer.fills[0].units[0].metric(Metric::kAvgCpuUsage).at("x"), 7);
  // Metrics that were written with the window are not added again.
  EXPECT_THAT(f.writer.fills[0].units[0].metric(Metric::kTotalCpuEnergyUsageKwh), IsEmpty());
}

TEST(UpdateGaps, OneFailingPartKeepsTheWindowBackToo) {
  GapFixture f;
  f.broken_part = "avg_cpu_usage.x";
  auto loop = f.loop();
  f.clock.advance(minutes(10));
  EXPECT_EQ(loop->run_round(), 0U);
  f.broken_part.clear();
  f.clock.advance(minutes(10));
  EXPECT_EQ(loop->run_round(), 1U);
  EXPECT_THAT(f.writer.windows["a"], ElementsAre(Window{0, 1200}));
  EXPECT_THAT(f.writer.open_gaps["a"], IsEmpty());
}

TEST(UpdateGaps, NoneAreMadeWhereTheStoreKeepsNone) {
  GapFixture f;
  f.writer.keeping_gaps = false;
  f.down = true;
  auto loop = f.loop();
  for (int i = 0; i < 5; ++i) {
    f.clock.advance(minutes(10));
    EXPECT_EQ(loop->run_round(), 0U);
  }
}

TEST(UpdateGaps, GapsOfUpdatersThatAreGoneAreClosed) {
  GapFixture f;
  f.writer.open_gaps["a"].push_back(
      {{.id = 9, .updater = "gone", .parts = {"*"}, .window = {.start_ms = 0, .end_ms = 1}},
       {unit("1")}});
  auto loop = f.loop();
  f.clock.advance(minutes(10));
  EXPECT_EQ(loop->run_round(), 1U);
  EXPECT_THAT(f.writer.open_gaps["a"], IsEmpty());
  EXPECT_THAT(f.writer.fills.at(0).units, IsEmpty());
}

TEST(UpdateGaps, UpdatersAreToldUpToWhereEverythingIsComplete) {
  GapFixture f;
  f.broken_part = "avg_cpu_usage.x";
  f.refused = true;
  auto loop = f.loop();
  for (int i = 0; i < 3; ++i) {
    f.clock.advance(minutes(10));
    loop->run_round();
  }
  const auto& released = f.scripts["a"].released;
  EXPECT_THAT(released, ElementsAre(kDay, kDay, kDay));  // the first window is incomplete
  f.broken_part.clear();
  f.clock.advance(minutes(10));
  loop->run_round();
  EXPECT_THAT(released, ElementsAre(kDay, kDay, kDay, kDay, kDay + 40 * 60'000));
}

TEST(UpdateGaps, AGapThatCannotBeFilledDoesNotKeepOthersWaiting) {
  GapFixture f;
  for (std::int64_t id = 1; id <= 3; ++id) {
    f.writer.open_gaps["a"].push_back({{.id = id,
                                        .updater = "up",
                                        .parts = {"avg_cpu_usage.x"},
                                        .window = {.start_ms = id, .end_ms = id + 1}},
                                       {unit("1")}});
  }
  const auto update = f.scripts["a"].update;
  f.scripts["a"].update = [&](const UpdateRequest& request,
                              std::vector<model::Unit>& units) -> Result<Missing> {
    if (request.window.start_ms == 1) {
      return fail(ErrorCode::kTimeout, "too slow");
    }
    return update(request, units);
  };
  auto loop = f.loop();
  f.clock.advance(minutes(10));
  loop->run_round();
  f.clock.advance(minutes(10));
  loop->run_round();
  ASSERT_THAT(f.writer.open_gaps["a"], SizeIs(1));
  EXPECT_EQ(f.writer.open_gaps["a"][0].first.id, 1);
}

TEST(UpdateGaps, OfAQueryThatNobodyMendsTheOldestAreGivenUp) {
  GapFixture f;
  f.broken_part = "avg_cpu_usage.x";
  f.refused = true;
  for (std::int64_t id = 1; id <= 2003; ++id) {
    f.writer.open_gaps["a"].push_back({{.id = id,
                                        .updater = "up",
                                        .parts = {"avg_cpu_usage.x"},
                                        .window = {.start_ms = id, .end_ms = id + 1}},
                                       {unit("1")}});
  }
  f.writer.last_gap = 2003;
  auto loop = f.loop();
  f.clock.advance(minutes(10));
  loop->run_round();
  EXPECT_THAT(f.writer.open_gaps["a"], SizeIs(2000));
  EXPECT_EQ(f.writer.open_gaps["a"].front().first.id, 5);
}

TEST(UpdateGaps, ALaterUpdaterReplacesMetricsOfAnEarlierOneInGapsToo) {
  GapFixture f;
  struct Later final : Updater {
    Result<Missing> update(const UpdateRequest& /*request*/,
                           std::vector<model::Unit>& units,
                           std::stop_token /*stop*/) override {
      units.at(0).metric(Metric::kAvgCpuUsage) = {{"y", 1}};
      units.at(0).has_metric[0] = true;
      return Missing{};
    }
    [[nodiscard]] bool gives(Metric metric) const override {
      return metric == Metric::kAvgCpuUsage;
    }
  };
  UpdateSource source{.cluster = {.id = "a", .manager = "fake", .updaters = {}},
                      .manager = std::make_unique<FakeManager>(f.scripts["a"]),
                      .updaters = {}};
  source.updaters.push_back({.id = "up", .updater = std::make_unique<FakeUpdater>(f.scripts["a"])});
  source.updaters.push_back({.id = "later", .updater = std::make_unique<Later>()});
  std::vector<UpdateSource> sources;
  sources.push_back(std::move(source));
  auto loop = UpdateLoop::create(f.options, std::move(sources), f.writer, f.registry, f.clock);
  ASSERT_TRUE(loop);
  f.down = true;
  for (int i = 0; i < 3; ++i) {
    f.clock.advance(minutes(10));
    (*loop)->run_round();
  }
  f.down = false;
  f.clock.advance(minutes(10));
  (*loop)->run_round();
  ASSERT_THAT(f.writer.fills, SizeIs(1));
  EXPECT_THAT(f.writer.fills[0].units[0].metric(Metric::kAvgCpuUsage), IsEmpty());
  EXPECT_EQ(f.writer.fills[0].units[0].metric(Metric::kTotalCpuEnergyUsageKwh).at("x"), 7);
}

}  // namespace
}  // namespace ceems::ingest
