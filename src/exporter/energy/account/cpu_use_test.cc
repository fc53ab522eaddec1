#include "exporter/energy/account/cpu_use.h"

#include <chrono>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

namespace ceems::exporter::energy {
namespace {

using host::BusyCpu;
using std::chrono::seconds;

constexpr Clock::SteadyTime kStart{seconds(10)};

/// Two sockets of two cores with two threads: CPUs 0 and 4 are on core 0, 1 and 5 on core 1, ...
host::CpuTopology two_sockets() {
  return {.cpus = {{0, 0}, {0, 1}, {1, 2}, {1, 3}, {0, 0}, {0, 1}, {1, 2}, {1, 3}},
          .packages = {0, 1},
          .cores = 4};
}

class CpuUseTest : public ::testing::Test {
 protected:
  /// Adds the ticks of one second to each CPU.
  std::optional<double> advance(std::vector<std::uint64_t> ticks) {
    std::vector<BusyCpu> cpus;
    for (std::size_t i = 0; i < ticks.size(); ++i) {
      counters_.resize(ticks.size());
      total_ += ticks[i];
      counters_[i] += ticks[i];
      cpus.push_back({.cpu = static_cast<int>(i), .ticks = counters_[i]});
    }
    now_ += seconds(1);
    return meter_.advance(total_, cpus, now_);
  }

  CpuUseMeter meter_{two_sockets(), 0.25};
  std::vector<std::uint64_t> counters_;
  std::uint64_t total_ = 0;
  Clock::SteadyTime now_ = kStart;
};

TEST_F(CpuUseTest, CountsTheSecondThreadOfACoreForLess) {
  EXPECT_EQ(advance({5, 5, 5, 5, 5, 5, 5, 5}), std::nullopt);
  EXPECT_TRUE(meter_.cpus().empty());
  // Core 0 has one busy thread, core 1 two, core 2 half a thread, core 3 none.
  EXPECT_EQ(advance({100, 100, 50, 0, 0, 100, 0, 0}), 3.5);
  ASSERT_EQ(meter_.cpus().size(), 8U);
  EXPECT_EQ(meter_.cpus()[0].cores, 1);
  EXPECT_EQ(meter_.cpus()[1].cores, 0.625);
  EXPECT_EQ(meter_.cpus()[5].cores, 0.625);
  EXPECT_EQ(meter_.cpus()[2].cores, 0.5);
  EXPECT_EQ(meter_.cpus()[2].socket, 1);
  ASSERT_EQ(meter_.sockets().size(), 2U);
  EXPECT_EQ(meter_.sockets()[0].cpus, 4);
  EXPECT_EQ(meter_.sockets()[0].busy, 3);
  EXPECT_EQ(meter_.sockets()[0].cores, 2.25);
  EXPECT_EQ(meter_.sockets()[0].cores_max, 2.5);
  EXPECT_EQ(meter_.sockets()[1].cores, 0.5);
}

TEST_F(CpuUseTest, DividesACoreByTheTimesOfItsThreads) {
  advance({0, 0, 0, 0, 0, 0, 0, 0});
  advance({100, 0, 0, 0, 20, 0, 0, 0});
  // The second thread adds a quarter for 0.2 s.
  EXPECT_DOUBLE_EQ(meter_.sockets()[0].cores, 1.05);
  EXPECT_DOUBLE_EQ(meter_.cpus()[0].cores, 1.05 / 1.2);
  EXPECT_DOUBLE_EQ(meter_.cpus()[4].cores, 1.05 * 0.2 / 1.2);
}

TEST_F(CpuUseTest, TakesThreadsOfAPartOfAnIntervalToBeBusyAtTheSameTime) {
  advance({0, 0, 0, 0, 0, 0, 0, 0});
  advance({40, 40, 0, 0, 40, 40, 0, 0});  // a job on two cores started 0.4 s ago
  EXPECT_NEAR(meter_.sockets()[0].cores, 0.4 * 2 * 1.25, 0.05);
  EXPECT_DOUBLE_EQ(meter_.cpus()[5].cores, meter_.sockets()[0].cores / 4);
  EXPECT_DOUBLE_EQ(meter_.cpus()[3].cores, 0);
}

TEST_F(CpuUseTest, TakesChoresToBeDoneOneAfterTheOther) {
  advance({0, 0, 0, 0, 0, 0, 0, 0});
  advance({1, 0, 0, 0, 1, 0, 0, 0});
  EXPECT_NEAR(meter_.sockets()[0].cores, 0.02, 0.002);
  advance({30, 0, 0, 0, 1, 0, 0, 0});
  EXPECT_NEAR(meter_.sockets()[0].cores, 0.307, 0.001);
}

TEST_F(CpuUseTest, IsUnknownWhereTheCounterFell) {
  advance({100, 0, 0, 0, 0, 0, 0, 0});
  EXPECT_EQ(advance({100, 0, 0, 0, 0, 0, 0, 0}), 1);
  total_ -= 150;
  EXPECT_EQ(advance({100, 0, 0, 0, 0, 0, 0, 0}), std::nullopt);
  EXPECT_TRUE(meter_.cpus().empty());
  EXPECT_EQ(advance({30, 0, 0, 0, 0, 0, 0, 0}), 0.3);
  EXPECT_EQ(meter_.cpus().size(), 8U);
  // No time has passed.
  now_ -= seconds(1);
  EXPECT_EQ(advance({30, 0, 0, 0, 0, 0, 0, 0}), std::nullopt);
}

TEST_F(CpuUseTest, CountsACpuFromWhenItCameOnline) {
  advance({0, 0, 0, 0, 0, 0, 0});
  counters_.push_back(1'000'000);  // since an earlier boot of this CPU
  EXPECT_EQ(advance({50, 0, 0, 0, 0, 0, 0, 0}), 0.5);
  EXPECT_EQ(meter_.cpus()[7].busy, 0);
  advance({0, 0, 0, 0, 0, 0, 0, 50});
  EXPECT_EQ(meter_.cpus()[7].busy, 0.5);
}

TEST_F(CpuUseTest, DistrustsCpusThatDoNotAddUp) {
  advance({0, 0, 0, 0, 0, 0, 0, 0});
  total_ += 600;  // of CPUs whose lines do not move
  EXPECT_EQ(advance({100, 0, 0, 0, 0, 0, 0, 0}), 7);
  EXPECT_TRUE(meter_.cpus().empty());
}

/// Two CPUs, of which one is busy, in intervals of a second.
class LateCpuUse : public ::testing::Test {
 protected:
  /// Seconds by the clock, by the counters, and what the latter count of these.
  std::optional<double> advance(double passed, double counted, double rate = 1) {
    now_ += std::chrono::milliseconds(static_cast<int>(passed * 1000));
    counted_ += counted * rate;
    const auto ticks = static_cast<std::uint64_t>(std::round(counted_ * 100));
    const std::vector<BusyCpu> cpus{{.cpu = 0, .ticks = ticks}, {.cpu = 1, .ticks = 0}};
    return meter_.advance(ticks, cpus, now_, 2 * ticks);
  }
  void run(int count, double rate = 1) {
    for (int i = 0; i < count; ++i) {
      advance(1, 1, rate);
    }
  }

  CpuUseMeter meter_;
  double counted_ = 1;
  Clock::SteadyTime now_ = kStart;
};

TEST_F(LateCpuUse, IsFoundByTheTimeThatWasCounted) {
  run(3);
  EXPECT_DOUBLE_EQ(meter_.slip(), 0);
  EXPECT_NEAR(advance(1, 1.3).value_or(0), 1, 0.01);
  EXPECT_NEAR(meter_.slip(), 0.3, 1e-9);
  advance(1, 0.7);
  EXPECT_NEAR(meter_.slip(), -0.3, 0.001);
  run(60);
  EXPECT_NEAR(advance(1, 1.5).value_or(0), 1, 0.01);
  EXPECT_NEAR(meter_.slip(), 0.5, 0.01);
  EXPECT_NEAR(meter_.sockets()[0].busy, 1, 0.01);
  EXPECT_NEAR(advance(1, 0.5).value_or(0), 1, 0.01);
  EXPECT_NEAR(meter_.slip(), -0.5, 0.01);
}

TEST_F(LateCpuUse, LearnsThatTheCountersGoALittleFaster) {
  run(3600, 1.02);
  EXPECT_NEAR(meter_.slip(), 0, 0.012);
}

TEST_F(LateCpuUse, IsNotKnownOfCountersThatAreNoClock) {
  run(60, 0.4);  // as if idle time were not counted
  EXPECT_EQ(meter_.slip(), 0);
  EXPECT_DOUBLE_EQ(advance(1, 1, 0.4).value_or(0), 0.4);
  const std::vector<BusyCpu> one{{.cpu = 0, .ticks = 10'000}};
  now_ += seconds(1);
  meter_.advance(10'000, one, now_, 20'000);  // a CPU went offline
  EXPECT_EQ(meter_.slip(), 0);
  now_ += seconds(1);
  meter_.advance(10'100, one, now_);
  EXPECT_EQ(meter_.slip(), 0);
}

TEST(CpuUseMeter, IsOneSocketWithoutTopology) {
  CpuUseMeter meter;
  const std::vector<BusyCpu> before{{.cpu = 0, .ticks = 0}, {.cpu = 3, .ticks = 0}};
  const std::vector<BusyCpu> after{{.cpu = 0, .ticks = 100}, {.cpu = 3, .ticks = 50}};
  EXPECT_FALSE(meter.knows(before));
  meter.advance(0, before, kStart);
  EXPECT_EQ(meter.advance(150, after, kStart + seconds(1)), 1.5);
  ASSERT_EQ(meter.sockets().size(), 1U);
  EXPECT_EQ(meter.sockets()[0].cpus, 2);
  EXPECT_EQ(meter.sockets()[0].cores, 1.5);
  EXPECT_EQ(meter.sockets()[0].cores_max, 2);
  EXPECT_EQ(meter.cpus()[1].socket, -1);
  meter.set_topology(two_sockets());
  EXPECT_TRUE(meter.knows(before));
}

}  // namespace
}  // namespace ceems::exporter::energy
