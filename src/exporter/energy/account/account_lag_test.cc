// The account of a node whose wall meter is late.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "exporter/energy/account/account.h"
#include "exporter/energy/meter/held_power.h"

namespace ceems::exporter::energy {
namespace {

/// 64 CPUs that draw 100 to 420 W, at the wall 80 W more and a tenth for the supply.
class LateNode {
 public:
  explicit LateNode(bool packages) : packages_(packages) {
    if (packages_) {
      account_.add_source({.name = "rapl-package-0", .domain = Domain::kPackage});
    }
    account_.add_source(meter_.source());
  }

  static double package_watts(double cpus) { return 100 + 5 * cpus; }
  static double wall_watts(double cpus) { return 80 + 1.1 * package_watts(cpus); }

  void run(int seconds) {
    for (int i = 0; i < seconds; ++i) {
      step();
    }
  }

  void load(double cpus, int seconds) {
    cpus_ = cpus;
    next_ = second_ + seconds;
    run(seconds);
  }

  Account account_{{}};
  double memory_ = 0;          ///< watts of memory by busy CPU, which no meter shows
  std::vector<double> other_;  ///< watts, by second
  double meter_joules_ = 0;    ///< the integral of what the BMC shows

 private:
  void step() {
    if (second_ >= next_) {
      cpus_ = std::uniform_real_distribution(2.0, 64.0)(random_);
      next_ = second_ + std::uniform_int_distribution(30, 300)(random_);
    }
    second_ += 1;
    now_ += std::chrono::seconds(1);
    watts_.push_back(wall_watts(cpus_) + memory_ * cpus_);
    if (second_ % 60 == 5 && second_ > 60) {  // the average of the minute that ended 5 s ago
      double sum = 0;
      for (auto i = watts_.size() - 65; i < watts_.size() - 5; ++i) {
        sum += watts_[i];
      }
      shown_ = std::round(sum / 60);
    }
    if (shown_ > 0 && second_ % 5 == 0) {
      meter_.publish({.watts = shown_, .time = now_});
    }
    std::vector<std::optional<Reading>> readings;
    if (packages_) {
      readings.emplace_back(
          Reading{.joules = package_watts(cpus_), .fresh = now_, .idle_watts = {}});
    }
    const auto wall = meter_.read({.now = now_, .utilisation = {}});
    readings.push_back(wall ? std::optional(*wall) : std::nullopt);
    meter_joules_ += wall ? wall->joules : 0;
    const double before = account_.node_joules(Domain::kOther);
    account_.advance({.time = now_,
                      .readings = readings,
                      .node = {.busy_cpus = cpus_, .cpus_online = 64},
                      .managers = {}});
    other_.push_back(account_.node_joules(Domain::kOther) - before);
  }

  bool packages_;
  PublishedPowerMeter meter_{
      SourceInfo{.name = "ipmi_dcmi", .domain = Domain::kNode, .rank = kIpmiRank}};
  std::mt19937_64 random_{3};
  std::vector<double> watts_;
  Clock::SteadyTime now_{std::chrono::hours(1)};
  int second_ = 0;
  int next_ = 0;
  double cpus_ = 2;
  double shown_ = 0;
};

TEST(AccountOfALateMeter, KeepsOtherSteadyWhenTheLoadChanges) {
  LateNode node(true);
  node.run(3600);
  const auto lag = node.account_.wall_lag();
  ASSERT_TRUE(lag);
  EXPECT_NEAR(lag->delay + lag->window / 2, 35, 5);
  node.other_.clear();
  node.run(3600);
  // 80 W and a tenth of 110 to 420 W, never the hundreds of watts of a step of the load.
  EXPECT_GE(*std::ranges::min_element(node.other_), 80);
  EXPECT_LE(*std::ranges::max_element(node.other_), 80 + 42 + 15);
  EXPECT_NEAR(node.account_.node_joules(Domain::kNode), node.meter_joules_, 420 * 100);
}

TEST(AccountOfALateMeter, LearnsTheIdlePowerOfTheNodeAndTheRest) {
  LateNode node(true);
  node.run(3600);
  const double packages = node.account_.idle_watts(Domain::kPackage).value_or(0);
  EXPECT_NEAR(packages, 100 / 1.08, 10);  // extrapolated: the node was never idle, and 8 % wake
  const double other = node.account_.idle_watts(Domain::kOther).value_or(0);
  EXPECT_NEAR(other, 80 + 0.1 * packages, 4);
  EXPECT_NEAR(node.account_.idle_watts(Domain::kNode).value_or(0), packages + other, 1e-6);
}

/// The wall power is then not a function of the packages' power.
TEST(AccountOfALateMeter, KeepsTheIdlePowerWhenProgramsUseMemoryThatNoMeterShows) {
  LateNode node(true);
  node.load(0, 900);
  node.run(3600);
  node.memory_ = 1.5;
  for (int i = 0; i < 20; ++i) {
    node.load(24 + i % 3, 300);
  }
  EXPECT_NEAR(node.account_.idle_watts(Domain::kNode).value_or(0), 190, 0.05 * 190);
}

TEST(AccountOfALateMeter, LearnsTheIdlePowerWithoutPackages) {
  LateNode node(false);
  node.run(3600);
  ASSERT_TRUE(node.account_.wall_lag());
  EXPECT_NEAR(node.account_.idle_watts(Domain::kNode).value_or(0), 190, 9.5);
  EXPECT_NEAR(node.account_.node_joules(Domain::kNode), node.meter_joules_, 1e-6);
}

}  // namespace
}  // namespace ceems::exporter::energy
