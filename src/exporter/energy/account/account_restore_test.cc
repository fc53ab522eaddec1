// What an account learned continues in the account of the next run.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "exporter/energy/account/account.h"
#include "exporter/energy/meter/held_power.h"

namespace ceems::exporter::energy {
namespace {

using std::chrono::seconds;

/// A node of 64 CPUs: packages of 160 to 410 W by use, memory of 30 W, a wall meter, and a GPU of
/// 75 to 700 W.
class Node {
 public:
  explicit Node(const std::string& wall = "ipmi_dcmi", const AccountOptions& options = {})
      : account(options) {
    account.add_source({.name = "rapl-package-0", .domain = Domain::kPackage});
    account.add_source({.name = "rapl-dram-0", .domain = Domain::kDram});
    account.add_source({.name = wall, .domain = Domain::kNode, .rank = kIpmiRank});
    account.add_source({.name = "power-model",
                        .domain = Domain::kNode,
                        .method = Method::kModelled,
                        .rank = kModelRank});
  }

  void run(double use, int times) {
    const double package = 160 + 250 * use;
    const double gpu = 75 + 625 * use;
    for (int i = 0; i < times; ++i) {
      now_ += seconds(1);
      const auto reading = [this](double joules) {
        return std::optional(Reading{.joules = joules, .fresh = now_, .idle_watts = {}});
      };
      const std::vector<std::optional<Reading>> readings{
          reading(package), reading(30), reading(package + 30 + gpu + 100), std::nullopt};
      DeviceSample device{.source = {.name = "GPU-a", .domain = Domain::kGpu},
                          .joules = gpu,
                          .seconds = 1,
                          .fresh = now_};
      device.utilisation = use;
      account.advance(
          {.time = now_,
           .readings = readings,
           .node = {.busy_cpus = 64 * use, .cpus_online = 64, .memory_total_bytes = 256e9},
           .managers = {},
           .devices = {&device, 1}});
    }
  }
  [[nodiscard]] double idle(Domain domain) const { return account.idle_watts(domain).value_or(-1); }

  Account account;

 private:
  Clock::SteadyTime now_{seconds(1000)};
};

TEST(AccountRestore, ContinuesWithTheIdlePowerOfEveryDomain) {
  Node before;
  for (int round = 0; round < 5; ++round) {
    for (const double use : {0.0, 0.2, 0.5, 0.9}) {
      before.run(use, 30);
    }
  }
  Node after;
  after.account.restore(before.account.learned());
  // Full from the first second on. Without a state the packages would idle at 205 W.
  after.run(1.0, 2);
  for (const Domain domain : kDomains) {
    EXPECT_NEAR(after.idle(domain), before.idle(domain), 0.01 * before.idle(domain))
        << to_string(domain);
  }
  after.run(1.0, 3600);
  EXPECT_NEAR(after.idle(Domain::kPackage), 160, 0.02 * 160);
  EXPECT_NEAR(after.idle(Domain::kGpu), 75, 0.02 * 75);
  Node forgetful;
  forgetful.run(1.0, 3600);
  EXPECT_NEAR(forgetful.idle(Domain::kPackage), 205, 0.05 * 205);
}

TEST(AccountRestore, LetsANodeThatIsNeverIdleExtrapolate) {
  Node before;
  for (int round = 0; round < 20; ++round) {
    for (const double use : {0.3, 0.5, 0.7, 0.9}) {
      before.run(use, 30);
    }
  }
  // Nothing wakes with the first core of this node, but 8 % are assumed.
  EXPECT_NEAR(before.idle(Domain::kPackage), 160 / 1.08, 0.05 * 160);
  Node after;
  after.account.restore(before.account.learned());
  after.run(0.9, 2);
  EXPECT_NEAR(after.idle(Domain::kPackage), before.idle(Domain::kPackage), 0.01);
  for (const double use : {0.9, 0.4, 0.6}) {
    after.run(use, 600);
  }
  EXPECT_NEAR(after.idle(Domain::kPackage), 160 / 1.08, 0.05 * 160);
}

TEST(AccountIdleBasis, IsAssumedWhileTheUseIsConstant) {
  AccountOptions options;
  options.assumed = {.packages = 0.3, .memory = 0.4, .node = 0.35};
  Node node("ipmi_dcmi", options);
  node.run(1.0, 2);  // before the first window is full
  EXPECT_NEAR(node.idle(Domain::kPackage), 0.3 * 410, 1e-9);
  EXPECT_EQ(node.account.idle_basis(Domain::kPackage), IdleBasis::kAssumed);
  node.run(1.0, 1800);
  EXPECT_NEAR(node.idle(Domain::kPackage), 0.3 * 410, 0.03 * 0.3 * 410);
  EXPECT_NEAR(node.idle(Domain::kDram), 0.4 * 30, 0.05 * 0.4 * 30);
  for (const Domain domain : kDomains) {
    EXPECT_EQ(node.account.idle_basis(domain), IdleBasis::kAssumed) << to_string(domain);
  }
  // So it is stored.
  Node next("ipmi_dcmi", options);
  next.account.restore(node.account.learned());
  next.run(1.0, 60);
  EXPECT_EQ(next.account.idle_basis(Domain::kPackage), IdleBasis::kAssumed);
  for (const double use : {0.0, 0.5, 0.0, 0.9}) {
    next.run(use, 300);
  }
  EXPECT_NEAR(next.idle(Domain::kPackage), 160, 0.05 * 160);
  for (const Domain domain : kDomains) {
    EXPECT_EQ(next.account.idle_basis(domain), IdleBasis::kLearned) << to_string(domain);
  }
}

TEST(AccountIdleBasis, IsConfiguredWhereAValueIsGiven) {
  AccountOptions options;
  options.idle_watts.at(index(Domain::kPackage)) = 99;
  Node node("ipmi_dcmi", options);
  node.run(1.0, 60);
  EXPECT_EQ(node.account.idle_basis(Domain::kPackage), IdleBasis::kConfigured);
  EXPECT_EQ(node.account.idle_basis(Domain::kDram), IdleBasis::kAssumed);
  options.idle_watts.at(index(Domain::kNode)) = 300;
  Node whole("ipmi_dcmi", options);
  whole.run(1.0, 60);
  EXPECT_EQ(whole.account.idle_basis(Domain::kNode), IdleBasis::kConfigured);
  EXPECT_EQ(whole.account.idle_basis(Domain::kOther), IdleBasis::kConfigured);
  EXPECT_EQ(to_string(IdleBasis::kConfigured), "configured");
}

TEST(AccountRestore, TakesNothingOfOtherMeters) {
  Node before;
  before.run(0.0, 60);
  const Learned learned = before.account.learned();
  EXPECT_EQ(learned.idle.size(), 5U);
  Node other("redfish");
  other.account.restore(learned);
  other.run(1.0, 2);
  EXPECT_NEAR(other.idle(Domain::kPackage), 160, 0.1);  // the same counter
  EXPECT_NEAR(other.idle(Domain::kNode), (410 + 30 + 700 + 100) / 2.0, 0.1);
}

TEST(AccountRestore, LeavesConfiguredValuesAlone) {
  Node before;
  before.run(0.0, 60);
  AccountOptions options;
  options.idle_watts.at(index(Domain::kPackage)) = 99;
  Node after("ipmi_dcmi", options);
  after.account.restore(before.account.learned());
  after.run(0.0, 60);
  EXPECT_EQ(after.idle(Domain::kPackage), 99);
  for (const Learned::Idle& entry : after.account.learned().idle) {
    EXPECT_NE(entry.domain, Domain::kPackage);
  }
}

/// A node with two units of 16 cores, of which one draws 4 W a core and the other 1.5 W, and a BMC
/// that shows the average of 10 s every 10 s.
class TwoUnits {
 public:
  explicit TwoUnits(bool packages = true) : packages_(packages) {
    if (packages_) {
      account.add_source({.name = "rapl-package-0", .domain = Domain::kPackage});
    }
    account.add_source({.name = "ipmi_dcmi", .domain = Domain::kNode, .rank = kIpmiRank});
  }

  void run(double hot, double cool, int times) {
    for (int i = 0; i < times; ++i) {
      now_ += seconds(1);
      const double package = 100 + 4 * 16 * hot + 1.5 * 16 * cool;
      wall_joules_ += 80 + 1.1 * package;
      if (++age_ == 10) {
        bmc_ = {.watts = wall_joules_ / 10, .time = now_};
        wall_joules_ = 0;
        age_ = 0;
      }
      snapshot_.taken = now_;
      snapshot_.units.resize(2);
      snapshot_.units[0].uuid = "hot";
      snapshot_.units[0].stats.cpu_user_seconds += 16 * hot;
      snapshot_.units[1].uuid = "cool";
      snapshot_.units[1].stats.cpu_user_seconds += 16 * cool;
      const ManagerUnits manager{.manager = "slurm", .snapshot = &snapshot_};
      std::vector<std::optional<Reading>> readings(1);
      if (packages_) {
        readings = {Reading{.joules = package, .fresh = now_, .idle_watts = {}}, std::nullopt};
      }
      if (bmc_.watts > 0) {
        readings.back() = Reading{
            .joules = bmc_.watts, .fresh = bmc_.time, .idle_watts = {}, .watts = bmc_.watts};
      }
      account.advance({.time = now_,
                       .readings = readings,
                       .node = {.busy_cpus = 16 * hot + 16 * cool, .cpus_online = 64},
                       .managers = {&manager, 1},
                       .timing = {}});
    }
  }
  /// What the hot unit is charged in a second with both at work, relative to the cool one.
  double ratio() {
    const auto joules = [this](std::string_view uuid) {
      return account.units()[account.units()[0]->uuid == uuid ? 0 : 1]->joules(
          packages_ ? Domain::kPackage : Domain::kNode);
    };
    const double hot = joules("hot");
    const double cool = joules("cool");
    run(1, 1, 1);
    return (joules("hot") - hot) / (joules("cool") - cool);
  }

  Account account{AccountOptions{}};

 private:
  bool packages_;
  UnitSnapshot snapshot_;
  Clock::SteadyTime now_{seconds(1000)};
  PowerReading bmc_;
  double wall_joules_ = 0;
  int age_ = 0;
};

TEST(AccountRestore, LetsUnitsAndLateMetersGoOn) {
  TwoUnits before;
  for (int round = 0; round < 30; ++round) {
    before.run(round % 2, round % 3 != 0 ? 1 : 0, 35);
  }
  before.run(1, 1, 20);
  const auto lag = before.account.wall_lag();
  ASSERT_TRUE(lag);
  const double ratio = before.ratio();
  EXPECT_GT(ratio, 1.5);
  const Learned learned = before.account.learned();
  ASSERT_NE(learned.lag_of("ipmi_dcmi"), nullptr);
  TwoUnits after;
  after.account.restore(learned);
  after.run(1, 1, 12);
  EXPECT_EQ(after.account.wall_lag(), lag);
  EXPECT_NEAR(after.ratio(), ratio, 0.1 * ratio);
  EXPECT_NEAR(after.account.idle_watts(Domain::kNode).value_or(0),
              before.account.idle_watts(Domain::kNode).value_or(0), 3);
  TwoUnits forgetful;
  forgetful.run(1, 1, 12);
  EXPECT_FALSE(forgetful.account.wall_lag());
  EXPECT_NEAR(forgetful.ratio(), 1, 0.1);
}

/// The node draws 190 W when idle. Nothing but the BMC shows what the units draw, 4.4 and 1.65 W a
/// core, 10 to 20 s late.
TEST(AccountOfAWallMeterAlone, TellsUnitsApartAndGoesOn) {
  TwoUnits before(false);
  for (int round = 0; round < 60; ++round) {
    before.run(round % 2, round % 3 != 0 ? 1 : 0, 53);
  }
  before.run(1, 1, 40);
  ASSERT_TRUE(before.account.wall_lag());
  EXPECT_NEAR(before.account.idle_watts(Domain::kNode).value_or(0), 190, 2);
  EXPECT_EQ(before.account.idle_basis(Domain::kNode), IdleBasis::kLearned);
  const double ratio = before.ratio();
  EXPECT_GT(ratio, 1.4);  // of what they draw and half of the idle power
  const Learned learned = before.account.learned();
  const auto node = std::ranges::find(learned.idle, Domain::kNode, &Learned::Idle::domain);
  ASSERT_NE(node, learned.idle.end());
  EXPECT_EQ(node->units.size(), 2);
  TwoUnits after(false);
  after.account.restore(learned);
  after.run(1, 1, 40);  // until a value describes a time that it has seen
  EXPECT_NEAR(after.ratio(), ratio, 0.1 * ratio);
  EXPECT_NEAR(after.account.idle_watts(Domain::kNode).value_or(0),
              before.account.idle_watts(Domain::kNode).value_or(0), 3);
}

/// While few values have told units apart, the line through use and power knows better.
TEST(AccountOfAWallMeterAlone, TakesIdlePowerFromTheLineWhileTheFilterIsUnsure) {
  struct Round {
    int seconds;
    double hot, cool;
  };
  TwoUnits node(false);
  double least = 1000;
  for (const Round& round : {Round{17, 1, 1}, Round{20, 0, 1}, Round{13, 1, 0}, Round{29, 1, 0},
                             Round{14, 0, 0}, Round{10, 1, 0}, Round{27, 0, 1}, Round{24, 1, 1},
                             Round{22, 1, 0}, Round{33, 0, 0}, Round{12, 1, 1}, Round{11, 1, 1},
                             Round{12, 0, 0}, Round{17, 1, 0}, Round{35, 0, 0}, Round{30, 0, 1}}) {
    for (int i = 0; i < round.seconds; ++i) {
      node.run(round.hot, round.cool, 1);
      if (node.account.wall_lag()) {
        least = std::min(least, node.account.idle_watts(Domain::kNode).value_or(0));
      }
    }
  }
  EXPECT_NEAR(least, 190, 0.06 * 190);  // the filter alone said 163 W for some seconds
}

}  // namespace
}  // namespace ceems::exporter::energy
