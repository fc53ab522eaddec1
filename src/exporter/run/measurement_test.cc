#include "exporter/run/measurement.h"

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "exporter/run/report/report.h"
#include "testing/temp_dir.h"

namespace ceems::exporter::run {
namespace {

using energy::Domain;
using energy::Method;
using std::chrono::milliseconds;
using ::testing::HasSubstr;

class MeasurementTest : public ::testing::Test {
 protected:
  std::unique_ptr<Measurement> start() {
    MeasurementOptions options{.paths = {}, .job = {}, .name = "test"};
    set_manager(options.job, "run", "1");
    options.job.node = "../n1";
    options.begin_ms = real_clock().now_ms();
    options.interval = milliseconds(100);
    options.flush = milliseconds(10);
    auto made = Measurement::create(options, directory_, real_clock());
    EXPECT_TRUE(made) << made.error().message;
    (*made)->start();
    return *std::move(made);
  }

  testing::TempDir root_;
  DataDirectory directory_ = DataDirectory::create((root_.path() / "run").string()).value();
};

TEST_F(MeasurementTest, CountsAChildAndWritesItsFiles) {
  auto measurement = start();
  const pid_t pid = ::fork();
  if (pid == 0) {
    volatile unsigned long sum = 0;
    for (unsigned long i = 0; i < 30'000'000; ++i) {
      sum = sum + i;
    }
    ::_exit(0);
  }
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT), 0);
  bool ended = false;
  measurement->processes().reap([&](int child, int /*status*/) { ended = child == pid; });
  EXPECT_TRUE(ended);
  EXPECT_TRUE(measurement->finish(0));
  EXPECT_EQ(measurement->failure(), "");
  const Report report = read_report(directory_).value();
  ASSERT_EQ(report.nodes.size(), 1U);
  EXPECT_EQ(report.nodes[0].node, "../n1");
  EXPECT_TRUE(report.nodes[0].ended);
  EXPECT_EQ(report.nodes[0].exit_status, 0);
  EXPECT_GE(report.nodes[0].samples, 2U);
  EXPECT_GT(report.cpu_seconds(), 0);
  EXPECT_TRUE(report.faults.empty());
  EXPECT_TRUE(directory_.has("_.._n1.cjf"));
  measurement.reset();
}

TEST_F(MeasurementTest, SaysWhatItCouldNotWrite) {
  auto measurement = start();
  std::filesystem::remove_all(root_.path() / "run");
  EXPECT_TRUE(measurement->finish(std::nullopt));
  EXPECT_THAT(measurement->failure(), HasSubstr(".sum"));
}

TEST_F(MeasurementTest, ReadsTheCountersOfCrayNodes) {
  root_.write("proc/stat", "cpu  1 0 0 9 0 0 0 0 0 0\ncpu0 1 0 0 9 0 0 0 0 0 0\n");
  root_.write("proc/meminfo", "MemTotal: 1000000 kB\n");
  root_.write("sys/cray/pm_counters/energy", "500 J 1784912345678901 us\n");
  MeasurementOptions options{.paths = {.proc = root_.path() / "proc",
                                       .sys = root_.path() / "sys",
                                       .cgroup = root_.path() / "cgroup"},
                             .job = {},
                             .name = "test"};
  set_manager(options.job, "run", "1");
  options.job.node = "n1";
  auto measurement = Measurement::create(options, directory_, real_clock()).value();
  measurement->start();
  EXPECT_EQ(measurement->energy(), "node measured (cray)");
  EXPECT_TRUE(measurement->finish(0));
}

TEST_F(MeasurementTest, NeedsAFileOfItsOwn) {
  const auto first = start();
  MeasurementOptions options{.paths = {}, .job = {}, .name = "test"};
  set_manager(options.job, "run", "1");
  options.job.node = "../n1";
  EXPECT_FALSE(Measurement::create(options, directory_, real_clock()));
}

/// An account after a second in which these sources had values.
energy::Account account_of(const std::vector<energy::SourceInfo>& sources) {
  energy::Account account{energy::AccountOptions{}};
  for (const energy::SourceInfo& source : sources) {
    account.add_source(source);
  }
  Clock::SteadyTime now{};
  for (int second = 0; second < 2; ++second) {
    now += std::chrono::seconds(1);
    const std::vector<std::optional<energy::Reading>> readings(
        sources.size(), energy::Reading{.joules = 50.0 * second, .fresh = now, .idle_watts = {}});
    account.advance({.time = now, .readings = readings, .node = {}, .managers = {}});
  }
  return account;
}

TEST(DescribeEnergy, SaysWhatIsMeasuredAndWhatIsNot) {
  const energy::SourceInfo model{.name = "power-model",
                                 .domain = Domain::kNode,
                                 .method = Method::kModelled,
                                 .rank = energy::kModelRank};
  const energy::SourceInfo rapl{.name = "rapl", .domain = Domain::kPackage};
  const energy::SourceInfo meter{
      .name = "power_meter", .domain = Domain::kNode, .rank = energy::kPowerMeterRank};
  EXPECT_EQ(describe_energy(account_of({model}), true), "CPUs modelled (RAPL needs root here)");
  EXPECT_EQ(describe_energy(account_of({model}), false),
            "CPUs modelled (this machine shows no RAPL)");
  EXPECT_EQ(describe_energy(account_of({rapl, model}), true), "CPUs measured");
  EXPECT_EQ(describe_energy(account_of({meter, model}), true), "node measured (power_meter)");
  EXPECT_EQ(describe_energy(account_of({}), false),
            "CPUs not measured (this machine shows no RAPL)");
}

}  // namespace
}  // namespace ceems::exporter::run
