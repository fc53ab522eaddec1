#include "exporter/run/recorder.h"

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/fake_clock.h"
#include "testing/temp_dir.h"

namespace ceems::exporter::run {
namespace {

using energy::Domain;
using energy::Method;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

/// A machine of 4 CPUs that draws 100 W by the model, with one process of the job, which uses two
/// of the three CPUs that are busy.
class RecorderTest : public ::testing::Test {
 protected:
  RecorderTest() {
    root_.write("proc/11/statm", "20 10 4 1 0 3 0\n");
    set_ticks();
    Job job;
    set_manager(job, "run", "a\"b\\");
    source_ =
        std::make_shared<JobSource>(JobSource::Options{.paths = {.proc = root_.path() / "proc",
                                                                 .sys = root_.path() / "sys",
                                                                 .cgroup = root_.path() / "cgroup"},
                                                       .job = job,
                                                       .self_cgroups = {},
                                                       .allowed_cpus = {0, 1, 2, 3},
                                                       .self = 10},
                                    clock_);
    recorder_ = std::make_unique<Recorder>(
        NodeSummary{.job = "a\"b\\", .name = "x", .node = "n1", .begin_ms = clock_.now_ms()},
        source_, marks_, seconds(1), clock_);
    account_.add_source({.name = "power-model",
                         .domain = Domain::kNode,
                         .method = Method::kModelled,
                         .rank = energy::kModelRank});
    step(0);
  }

  void set_ticks() {
    root_.write("proc/11/stat", "11 (a) S 10 1 1 0 -1 0 0 0 0 0 " + std::to_string(ticks_) +
                                    " 0 0 0 20 0 1 0 5 4096 10 1\n");
  }
  void step(int length) {
    clock_.advance(seconds(length));
    ticks_ += 2 * length * static_cast<int>(::sysconf(_SC_CLK_TCK));
    set_ticks();
    const auto snapshot = source_->snapshot(std::chrono::milliseconds(0)).value();
    const std::vector<std::optional<energy::Reading>> readings{
        energy::Reading{.joules = 100.0 * length, .fresh = clock_.steady_now(), .idle_watts = 40}};
    const std::vector<energy::ManagerUnits> managers{
        {.manager = "run", .snapshot = snapshot.get()}};
    account_.advance({.time = clock_.steady_now(),
                      .readings = readings,
                      .node = {.busy_cpus = 3, .cpus_online = 4, .memory_total_bytes = 1e9},
                      .managers = managers});
    recorder_->take(account_, clock_.steady_now());
  }

  testing::TempDir root_;
  testing::FakeClock clock_;
  int ticks_ = 0;
  std::shared_ptr<JobSource> source_;
  std::shared_ptr<marks::Ledger> marks_ = std::make_shared<marks::Ledger>();
  std::unique_ptr<Recorder> recorder_;
  energy::Account account_{energy::AccountOptions{}};
};

TEST_F(RecorderTest, SummarizesTheAccount) {
  for (int i = 0; i < 10; ++i) {
    step(1);
  }
  recorder_->end(3);
  const NodeSummary summary = recorder_->take_part().summary;
  EXPECT_EQ(summary.samples, 11U);
  EXPECT_EQ(summary.gaps, 0U);
  EXPECT_DOUBLE_EQ(summary.seconds, 10);
  EXPECT_DOUBLE_EQ(summary.elapsed_seconds(), 10);
  EXPECT_DOUBLE_EQ(summary.cpu_seconds, 20);
  EXPECT_EQ(summary.cpus, 4);
  EXPECT_EQ(summary.unit, "processes");
  EXPECT_EQ(summary.exit_status, 3);
  EXPECT_TRUE(summary.ended);
  EXPECT_THAT(summary.method, UnorderedElementsAre(Pair("other", "modelled")));
  // Of 60 W of active power two thirds; nothing is reserved, so idle power goes by use, too.
  const double joules = account_.units().front()->joules(Domain::kNode);
  EXPECT_GT(joules, 400);
  EXPECT_LT(joules, 1000);
  EXPECT_DOUBLE_EQ(summary.total_joules(), joules);
  EXPECT_EQ(summary.memory_peak_bytes, 6.0 * static_cast<double>(::sysconf(_SC_PAGESIZE)));
}

TEST_F(RecorderTest, WritesLinesOfEverySample) {
  step(1);
  std::string lines = recorder_->take_part().lines;
  const std::string ms = std::to_string(clock_.now_ms());
  EXPECT_THAT(lines, HasSubstr("ceems_compute_unit_cpu_user_seconds_total{hostname=\"n1\",uuid="
                               "\"a\\\"b\\\\\"} 2 " +
                               ms + "\n"));
  EXPECT_THAT(lines, HasSubstr(",domain=\"other\"} "));
  EXPECT_EQ(recorder_->take_part().lines, "");
  step(1);
  EXPECT_EQ(std::ranges::count(recorder_->take_part().lines, '\n'), 4);
}

TEST_F(RecorderTest, ThinsLinesButNotTheSummary) {
  recorder_->take_part();
  recorder_->set_stride(4);
  for (int i = 0; i < 8; ++i) {
    step(1);
  }
  const Recorder::Part part = recorder_->take_part();
  EXPECT_EQ(std::ranges::count(part.lines, '\n'), 2 * 4);
  EXPECT_EQ(part.summary.samples, 9U);
  EXPECT_DOUBLE_EQ(part.summary.cpu_seconds, 16);
}

TEST_F(RecorderTest, TakesWhatTheJobSaysAboutItself) {
  UnitSnapshot snapshot;
  snapshot.manager = "run";
  snapshot.units.emplace_back().uuid = "a\"b\\";
  const auto entry = marks_->open(snapshot, snapshot.units.front(), clock_.steady_now());
  marks::Stream stream;
  const auto say = [&](std::string_view text) {
    ASSERT_TRUE(marks_->take(*entry, *marks::parse_message(text), stream, clock_.steady_now()));
  };
  step(1);
  const double before = account_.units().front()->joules(Domain::kNode);
  say("begin solve");
  say("result step 50");
  say("fom speed -2 ns/day");
  step(4);
  say("fom speed 4 ns/day");
  say("end solve");
  const double solved = account_.units().front()->joules(Domain::kNode) - before;
  step(2);
  say("begin last");
  step(3);
  marks_->end_all(clock_.steady_now());
  step(0);
  const Recorder::Part part = recorder_->take_part();
  ASSERT_EQ(part.summary.regions.size(), 2U);
  const RegionSummary& solve = part.summary.regions[0];
  EXPECT_EQ(solve.name, "solve");
  EXPECT_DOUBLE_EQ(solve.seconds, 4);
  EXPECT_EQ(solve.count, 1U);
  EXPECT_GT(solved, 100);
  EXPECT_NEAR(solve.joules.value(), solved, 1e-6);
  EXPECT_NEAR(solve.self_joules.value(), solved, 1e-6);
  EXPECT_DOUBLE_EQ(part.summary.regions[1].seconds, 3);
  EXPECT_EQ(part.summary.regions[1].count, 1U);
  ASSERT_EQ(part.summary.results.size(), 1U);
  EXPECT_DOUBLE_EQ(part.summary.results[0].total, 50);
  ASSERT_EQ(part.summary.foms.size(), 1U);
  EXPECT_DOUBLE_EQ(part.summary.foms[0].last, 4);
  EXPECT_DOUBLE_EQ(part.summary.foms[0].mean, (4 * -2 + 5 * 4) / 9.0);
  EXPECT_THAT(part.lines, HasSubstr("ceems_compute_unit_results_total{hostname=\"n1\",uuid="
                                    "\"a\\\"b\\\\\",result=\"step\",unit=\"\"} 50 "));
  EXPECT_THAT(part.lines, HasSubstr(",region=\"solve\",domain=\"node\"} "));
}

TEST_F(RecorderTest, CountsGaps) {
  step(1);
  step(30);
  step(1);
  EXPECT_EQ(recorder_->take_part().summary.gaps, 1U);
}

TEST(RunRecorder, SaysHowEnergyIsKnown) {
  energy::Account account{energy::AccountOptions{}};
  account.add_source({.name = "rapl", .domain = Domain::kPackage});
  account.add_source({.name = "power-model",
                      .domain = Domain::kNode,
                      .method = Method::kModelled,
                      .rank = energy::kModelRank});
  EXPECT_TRUE(methods_of(account).empty());
  Clock::SteadyTime now{};
  for (int second = 0; second < 2; ++second) {
    now += seconds(1);
    const std::vector<std::optional<energy::Reading>> readings{
        energy::Reading{.joules = 50.0 * second, .fresh = now, .idle_watts = {}},
        energy::Reading{.joules = 100.0 * second, .fresh = now, .idle_watts = 40}};
    account.advance({.time = now, .readings = readings, .node = {}, .managers = {}});
  }
  EXPECT_EQ(methods_of(account).at("package"), "measured");
}

}  // namespace
}  // namespace ceems::exporter::run
