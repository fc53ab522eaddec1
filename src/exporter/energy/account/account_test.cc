#include "exporter/energy/account/account.h"

#include <initializer_list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace ceems::exporter::energy {
namespace {

using std::chrono::seconds;

AccountOptions with_idle_watts(std::initializer_list<std::pair<Domain, double>> watts) {
  AccountOptions options;
  for (const auto& [domain, value] : watts) {
    options.idle_watts.at(index(domain)) = value;
  }
  return options;
}

/// A node whose meters and units a test sets before each step().
class AccountTest : public ::testing::Test {
 protected:
  explicit AccountTest(const AccountOptions& options = {}) : account_(options) {
    snapshot_.manager = "slurm";
    node_ = {.busy_cpus = 0.0, .cpus_online = 64, .memory_total_bytes = 256e9};
  }

  std::size_t add(const std::string& name, Domain domain, int rank = 0) {
    watts_.emplace_back();
    return account_.add_source({.name = name, .domain = domain, .rank = rank});
  }
  std::size_t add_model() {
    watts_.emplace_back();
    return account_.add_source({.name = "power-model",
                                .domain = Domain::kNode,
                                .method = Method::kModelled,
                                .rank = 1000});
  }

  Unit& unit(const std::string& uuid, double cpus) {
    for (Unit& known : snapshot_.units) {
      if (known.uuid == uuid) {
        return known;
      }
    }
    Unit& added = snapshot_.units.emplace_back();
    added.uuid = uuid;
    added.stats.reserved_cpus = cpus;
    return added;
  }

  /// Advances time. Meters deliver watts_ (nothing: no value), and units have the busy CPUs of
  /// use_, which are part of node_.busy_cpus. The first call starts with a sample of length 0.
  void step(int times = 1) {
    if (!started_) {
      started_ = true;
      sample(0);
    }
    for (int i = 0; i < times; ++i) {
      sample(1);
    }
  }

  void sample(int length) {
    now_ += seconds(length);
    for (Unit& known : snapshot_.units) {
      known.stats.cpu_user_seconds += use_[known.uuid] * length;
    }
    snapshot_.taken = now_;
    std::vector<std::optional<Reading>> readings;
    readings.reserve(watts_.size());
    for (const auto& watts : watts_) {
      readings.push_back(
          watts ? std::optional(
                      Reading{.joules = *watts * length, .fresh = now_, .idle_watts = model_idle_})
                : std::nullopt);
    }
    if (elsewhere_ && readings[*elsewhere_]) {
      readings[*elsewhere_]->elsewhere = true;
    }
    const ManagerUnits units{.manager = "slurm", .snapshot = &snapshot_};
    account_.advance({.time = now_, .readings = readings, .node = node_, .managers = {&units, 1}});
  }

  double joules(const std::string& uuid, Domain domain) {
    for (const auto& entry : account_.units()) {
      if (entry->uuid == uuid) {
        return entry->joules(domain);
      }
    }
    return -1;
  }
  double idle_joules(const std::string& uuid, Domain domain) {
    for (const auto& entry : account_.units()) {
      if (entry->uuid == uuid) {
        return entry->idle_joules(domain);
      }
    }
    return -1;
  }
  double unused_joules(const std::string& uuid, Domain domain) {
    for (const auto& entry : account_.units()) {
      if (entry->uuid == uuid) {
        return entry->unused_idle_joules(domain);
      }
    }
    return -1;
  }
  double source_joules(const std::string& name) {
    for (const auto& source : account_.sources()) {
      if (source.info.name == name) {
        return source.joules.value();
      }
    }
    return -1;
  }

  Account account_;
  UnitSnapshot snapshot_;
  NodeUse node_;
  std::vector<std::optional<double>> watts_;
  std::map<std::string, double> use_;
  std::optional<double> model_idle_;
  std::optional<std::size_t> elsewhere_;  // Reading::elsewhere of this source
  Clock::SteadyTime now_{seconds(1000)};
  bool started_ = false;
};

// The example of docs/energy.md, "Worked example", calculated by the whole account.
class WorkedExample : public AccountTest {
 protected:
  WorkedExample()
      : AccountTest(
            with_idle_watts({{Domain::kPackage, 60}, {Domain::kDram, 10}, {Domain::kOther, 45}})) {}
};

TEST_F(WorkedExample, GivesTheNumbersOfTheDocumentation) {
  add("rapl-package-0", Domain::kPackage);
  add("rapl-dram-0", Domain::kDram);
  add("ipmi", Domain::kNode);
  unit("a", 16);
  unit("b", 32);
  unit("a", 0).stats.memory_total_bytes = 64e9;
  unit("b", 0).stats.memory_total_bytes = 128e9;
  unit("a", 0).stats.memory_used_bytes = 48'000'000'000;
  unit("a", 0).stats.memory_inactive_file_bytes = 16'000'000'000;
  use_["a"] = 15;
  node_.busy_cpus = 20;
  watts_ = {{160}, {30}, {250}};
  step();
  // package: 60 J idle, 100 J active
  EXPECT_DOUBLE_EQ(joules("a", Domain::kPackage), 60 * 0.25 + 100 * 15.0 / 20);
  EXPECT_DOUBLE_EQ(joules("b", Domain::kPackage), 60 * 0.5);
  EXPECT_DOUBLE_EQ(account_.unallocated_joules(Domain::kPackage), 15);
  EXPECT_DOUBLE_EQ(account_.system_joules(Domain::kPackage), 25);
  // dram: 10 J idle, 20 J active, of which a has the part that it has of the CPUs' use
  EXPECT_DOUBLE_EQ(joules("a", Domain::kDram), 2.5 + 15);
  EXPECT_DOUBLE_EQ(joules("b", Domain::kDram), 5);
  EXPECT_DOUBLE_EQ(account_.unallocated_joules(Domain::kDram), 2.5);
  EXPECT_DOUBLE_EQ(account_.system_joules(Domain::kDram), 5);
  // other: 45 J idle, 15 J in the proportion of the known active 120 J
  EXPECT_NEAR(joules("a", Domain::kOther), 45 * 0.25 + 15 * 90.0 / 120, 1e-9);
  EXPECT_NEAR(joules("b", Domain::kOther), 45 * 0.5, 1e-9);
  EXPECT_NEAR(account_.unallocated_joules(Domain::kOther), 45 * 0.25, 1e-9);
  EXPECT_NEAR(account_.system_joules(Domain::kOther), 15 * 30.0 / 120, 1e-9);
  // node
  EXPECT_NEAR(joules("a", Domain::kNode), 130, 1e-9);
  EXPECT_NEAR(joules("b", Domain::kNode), 57.5, 1e-9);
  EXPECT_NEAR(account_.unallocated_joules(Domain::kNode), 28.75, 1e-9);
  EXPECT_NEAR(account_.system_joules(Domain::kNode), 33.75, 1e-9);
  EXPECT_NEAR(account_.node_joules(Domain::kNode), 250, 1e-9);
  EXPECT_DOUBLE_EQ(source_joules("ipmi"), 250);
  // Of these, idle
  EXPECT_DOUBLE_EQ(idle_joules("a", Domain::kPackage), 60 * 0.25);
  EXPECT_DOUBLE_EQ(idle_joules("b", Domain::kPackage), joules("b", Domain::kPackage));
  EXPECT_DOUBLE_EQ(idle_joules("a", Domain::kDram), 2.5);
  EXPECT_NEAR(idle_joules("a", Domain::kOther), 45 * 0.25, 1e-9);
  EXPECT_NEAR(idle_joules("a", Domain::kNode), 15 + 2.5 + 11.25, 1e-9);
  EXPECT_NEAR(idle_joules("b", Domain::kNode), 57.5, 1e-9);
}

/// A unit with 81 % of its CPUs busy has 19 % of their idle power unused, whatever it costs.
TEST_F(WorkedExample, CountsIdleEnergyOfWhatWasNotUsed) {
  add("rapl-package-0", Domain::kPackage);
  add("rapl-dram-0", Domain::kDram);
  add("ipmi", Domain::kNode);
  unit("a", 16);
  unit("b", 32);
  unit("a", 0).stats.memory_total_bytes = 64e9;
  unit("a", 0).stats.memory_used_bytes = 48'000'000'000;
  unit("b", 0).stats.memory_total_bytes = 128e9;  // its memory is not counted
  use_["a"] = 0.81 * 16;
  node_.busy_cpus = 20;
  watts_ = {{160}, {30}, {250}};
  step();
  EXPECT_NEAR(unused_joules("a", Domain::kPackage), 0.19 * 15, 1e-9);
  EXPECT_NEAR(unused_joules("a", Domain::kDram), 0.25 * 2.5, 1e-9);
  EXPECT_NEAR(unused_joules("a", Domain::kOther), 0.19 * 11.25, 1e-9);
  EXPECT_NEAR(unused_joules("a", Domain::kNode), 0.19 * 26.25 + 0.625, 1e-9);
  // It slept, so all of its CPUs' part was unused.
  EXPECT_NEAR(unused_joules("b", Domain::kPackage), 30, 1e-9);
  EXPECT_EQ(unused_joules("b", Domain::kDram), 0);
  // What was touched once counts as used; more CPU time than reserved leaves nothing.
  unit("a", 0).stats.memory_used_bytes = 1'000'000'000;
  unit("a", 0).stats.memory_held_bytes = 64'000'000'000;
  use_["a"] = 17;
  step();
  EXPECT_NEAR(unused_joules("a", Domain::kPackage), 0.19 * 15, 1e-9);
  EXPECT_NEAR(unused_joules("a", Domain::kDram), 0.25 * 2.5, 1e-9);
  EXPECT_NEAR(idle_joules("a", Domain::kPackage), 30, 1e-9);
}

TEST_F(AccountTest, CountsIdleEnergyWhereOnlyTheNodeIsKnown) {
  AccountOptions options = with_idle_watts({{Domain::kNode, 80}});
  account_ = Account(options);
  add("ipmi", Domain::kNode);
  unit("a", 16);
  use_["a"] = 10;
  node_.busy_cpus = 20;
  watts_ = {{200}};
  step();
  // 80 J idle, of which a has a quarter; 120 J active, of which it has a half
  EXPECT_NEAR(joules("a", Domain::kOther), 20 + 60, 1e-9);
  EXPECT_NEAR(idle_joules("a", Domain::kOther), 20, 1e-9);
  EXPECT_NEAR(idle_joules("a", Domain::kNode), 20, 1e-9);
  EXPECT_EQ(idle_joules("a", Domain::kPackage), 0);
  EXPECT_NEAR(unused_joules("a", Domain::kOther), 20 * (1 - 10.0 / 16), 1e-9);
}

TEST_F(AccountTest, ChargesAOneCoreJobOnAnIdleLargeNodeLittle) {
  add("rapl-package-0", Domain::kPackage);
  node_.cpus_online = 128;
  unit("job", 1);
  use_["job"] = 1;
  node_.busy_cpus = 1.02;
  watts_ = {{100}};  // an idle node: one busy core hardly changes its power
  step(3600);
  const double node = account_.node_joules(Domain::kPackage);
  EXPECT_GT(joules("job", Domain::kPackage), 0);
  EXPECT_LT(joules("job", Domain::kPackage), 0.1 * node);
  EXPECT_GT(account_.unallocated_joules(Domain::kPackage), 0.9 * node);
}

TEST_F(AccountTest, ChargesAnIdleAllocation) {
  add("rapl-package-0", Domain::kPackage);
  unit("idle", 32);
  watts_ = {{80}};
  step(10);
  EXPECT_NEAR(joules("idle", Domain::kPackage), 0.5 * account_.node_joules(Domain::kPackage), 1e-6);
}

TEST_F(AccountTest, TakesTheSumOfKnownDomainsAsNodeWithoutAWallMeter) {
  add("rapl-package-0", Domain::kPackage);
  add("rapl-dram-0", Domain::kDram);
  add_model();
  watts_ = {{50}, {10}, {999}};
  step(10);
  EXPECT_DOUBLE_EQ(source_joules("sum"), 600);
  EXPECT_DOUBLE_EQ(source_joules("power-model"), 0);  // the model never counts beside a meter
  EXPECT_DOUBLE_EQ(account_.node_joules(Domain::kNode), 600);
  EXPECT_FALSE(account_.known(Domain::kOther));
}

TEST_F(AccountTest, APackageThatCountsElsewhereIsNoReasonForTheModel) {
  add("rapl-package-0", Domain::kPackage);
  add("rapl-dram-0", Domain::kDram);
  add_model();
  watts_ = {{50}, {10}, {999}};
  elsewhere_ = 0;
  step(10);
  EXPECT_DOUBLE_EQ(source_joules("rapl-package-0"), 0);
  EXPECT_DOUBLE_EQ(source_joules("power-model"), 0);
  EXPECT_DOUBLE_EQ(account_.node_joules(Domain::kNode), 100);
}

TEST_F(AccountTest, TakesTheModelWhereNothingDelivers) {
  add("rapl-package-0", Domain::kPackage);
  add_model();
  model_idle_ = 40;
  unit("a", 16);
  unit("b", 16);
  use_["a"] = 16;
  node_.busy_cpus = 16;
  watts_ = {{0}, {100}};  // a counter that never moves, as on some hypervisors
  step(11);
  EXPECT_DOUBLE_EQ(account_.node_joules(Domain::kNode), 1100);
  EXPECT_DOUBLE_EQ(source_joules("power-model"), 1100);
  EXPECT_EQ(account_.idle_watts(Domain::kNode), 40);
  // One of two units with the same reservation is busy: it also gets the active energy.
  EXPECT_GT(joules("a", Domain::kNode), 2 * joules("b", Domain::kNode));
  EXPECT_GT(joules("b", Domain::kNode), 0);
}

TEST_F(AccountTest, SplitsAWallMeterAloneByIdleAndActivePower) {
  add("ipmi", Domain::kNode);
  unit("a", 32);
  unit("b", 32);
  watts_ = {{100}};
  step(20);  // idle: learned
  const double a = joules("a", Domain::kNode);
  EXPECT_NEAR(a, joules("b", Domain::kNode), 1e-9);
  use_["a"] = 32;
  node_.busy_cpus = 32;
  watts_ = {{300}};
  step(10);
  EXPECT_NEAR(joules("a", Domain::kNode) - a, 10 * (50 + 200), 0.05);
  EXPECT_NEAR(joules("b", Domain::kNode) - a, 10 * 50, 0.05);
}

TEST_F(AccountTest, SplitsOtherByAllocationWhereKnownDomainsAreSilent) {
  add("rapl-package-0", Domain::kPackage);
  add("ipmi", Domain::kNode);
  unit("a", 16);
  watts_ = {{100}, {100}};
  step();
  watts_ = {{0}, {100}};
  step();
  EXPECT_DOUBLE_EQ(joules("a", Domain::kOther), 25);
  EXPECT_DOUBLE_EQ(account_.unallocated_joules(Domain::kOther), 75);
}

TEST_F(AccountTest, CatchesUpWithALateWallMeter) {
  add("rapl-package-0", Domain::kPackage);
  add("ipmi", Domain::kNode);
  watts_ = {{100}, {150}};
  step(60);
  EXPECT_NEAR(account_.node_joules(Domain::kOther), 60 * 50, 1e-6);
  watts_ = {{400}, {150}};  // the load starts, the wall meter shows it a minute later
  step(60);
  EXPECT_NEAR(account_.node_joules(Domain::kOther), 60 * 50, 1e-6);
  EXPECT_NEAR(account_.node_joules(Domain::kNode), 60 * 150 + 60 * 400, 1e-6);
  watts_ = {{400}, {450}};
  step(60);
  watts_ = {{100}, {450}};  // the load ends, the wall meter shows it a minute later
  step(60);
  watts_ = {{100}, {150}};
  step(60);
  EXPECT_NEAR(account_.node_joules(Domain::kNode), 60.0 * (150 + 150 + 450 + 450 + 150), 1e-6);
}

TEST_F(AccountTest, FreezesTheCounterOfASourceThatVanishes) {
  add("rapl-package-0", Domain::kPackage);
  add("ipmi", Domain::kNode);
  watts_ = {{100}, {150}};
  step(10);
  watts_ = {{100}, {}};  // the wall meter is gone: the node is the sum of the known domains
  step(10);
  EXPECT_DOUBLE_EQ(source_joules("ipmi"), 1500);
  EXPECT_DOUBLE_EQ(source_joules("sum"), 1000);
  EXPECT_EQ(account_.sources()[1].fresh, now_ - seconds(10));
  watts_ = {{}, {150}};  // it is back, the packages are gone
  step(10);
  EXPECT_DOUBLE_EQ(source_joules("rapl-package-0"), 2000);
  EXPECT_DOUBLE_EQ(source_joules("ipmi"), 3000);
  EXPECT_DOUBLE_EQ(account_.node_joules(Domain::kNode), 4000);
}

TEST_F(AccountTest, CountsOnlyTheBestWallMeter) {
  add("psys", Domain::kNode, 30);
  add("ipmi", Domain::kNode, 10);
  watts_ = {{120}, {150}};
  step(10);
  watts_ = {{120}, {}};
  step(10);
  EXPECT_DOUBLE_EQ(source_joules("ipmi"), 1500);
  EXPECT_DOUBLE_EQ(source_joules("psys"), 1200);
  EXPECT_DOUBLE_EQ(account_.node_joules(Domain::kNode), 2700);
}

TEST_F(AccountTest, GivesEnergyToTheSystemWhenCpuTimesAreUnknown) {
  add("rapl-package-0", Domain::kPackage);
  node_ = {};
  unit("a", 4);
  watts_ = {{100}};
  step(10);
  EXPECT_DOUBLE_EQ(joules("a", Domain::kPackage), 0);
  EXPECT_DOUBLE_EQ(
      account_.unallocated_joules(Domain::kPackage) + account_.system_joules(Domain::kPackage),
      1000);
}

TEST_F(AccountTest, KeepsTheSumWhenAUnitIsDropped) {
  add("rapl-package-0", Domain::kPackage);
  unit("a", 64);
  watts_ = {{100}};
  step(10);
  snapshot_.units.clear();
  step(700);
  EXPECT_EQ(account_.units().size(), 0U);
  EXPECT_NEAR(account_.ended_joules(Domain::kPackage), 1000, 101);
  EXPECT_NEAR(account_.ended_joules(Domain::kNode) + account_.unallocated_joules(Domain::kNode) +
                  account_.system_joules(Domain::kNode),
              account_.node_joules(Domain::kNode), 1e-6);
}

class ConfiguredNodeIdle : public AccountTest {
 protected:
  ConfiguredNodeIdle() : AccountTest(with_idle_watts({{Domain::kNode, 60}})) {}
};

TEST_F(ConfiguredNodeIdle, BoundsTheIdlePowerOfTheParts) {
  add("rapl-package-0", Domain::kPackage);
  add("rapl-dram-0", Domain::kDram);
  watts_ = {{90}, {30}};
  step(20);
  EXPECT_DOUBLE_EQ(account_.idle_watts(Domain::kPackage).value_or(-1), 45);
  EXPECT_DOUBLE_EQ(account_.idle_watts(Domain::kDram).value_or(-1), 15);
  EXPECT_DOUBLE_EQ(account_.idle_watts(Domain::kNode).value_or(-1), 60);
}

/// Two sockets of four CPUs without SMT.
class SocketTest : public AccountTest {
 protected:
  SocketTest() {
    for (std::size_t i = 0; i < cpus_.size(); ++i) {
      cpus_[i].socket = i < 4 ? 0 : 1;
    }
    for (int socket = 0; socket < 2; ++socket) {
      watts_.emplace_back();
      account_.add_source({.name = "package-" + std::to_string(socket),
                           .domain = Domain::kPackage,
                           .socket = socket});
    }
    node_.cpus_online = 8;
    node_.cpus = cpus_;
    node_.sockets = sockets_;
  }

  void use_cpus(std::array<double, 8> busy) {
    sockets_.fill({.cpus = 4, .cores_max = 4});
    node_.busy_cpus = 0;
    for (std::size_t i = 0; i < cpus_.size(); ++i) {
      cpus_[i].busy = cpus_[i].cores = busy[i];
      sockets_[i / 4].busy += busy[i];
      sockets_[i / 4].cores += busy[i];
      *node_.busy_cpus += busy[i];
    }
  }

  std::array<CpuUse, 8> cpus_{};
  std::array<SocketUse, 2> sockets_{};
};

// A unit on the first socket does not pay for what one on the second does there.
TEST_F(SocketTest, ChargesEachSocketToItsOwnUnits) {
  unit("a", 4).stats.cpu_set = std::make_shared<const std::vector<int>>(std::vector{0, 1, 2, 3});
  unit("b", 2).stats.cpu_set = std::make_shared<const std::vector<int>>(std::vector{4, 5});
  use_cpus({});
  watts_ = {{40}, {50}};
  step();
  for (int i = 0; i < 30; ++i) {
    step();
  }
  EXPECT_NEAR(account_.idle_watts(Domain::kPackage).value_or(0), 90, 1e-9);
  const double a = joules("a", Domain::kPackage);
  const double b = joules("b", Domain::kPackage);
  EXPECT_NEAR(a, 30 * 40, 40);
  EXPECT_NEAR(b, 30 * 25, 25);
  use_["a"] = 4;
  use_["b"] = 2;
  use_cpus({1, 1, 1, 1, 1, 1, 0, 0});
  watts_ = {{140}, {70}};
  step();
  EXPECT_NEAR(joules("a", Domain::kPackage) - a, 40 + 100, 0.01);
  EXPECT_NEAR(joules("b", Domain::kPackage) - b, 25 + 20, 0.01);
}

// The idle power that the site gives for all packages is divided by their CPUs.
TEST_F(SocketTest, DividesAConfiguredIdlePower) {
  account_ = Account(with_idle_watts({{Domain::kPackage, 60}}));
  for (int socket = 0; socket < 2; ++socket) {
    account_.add_source({.name = "package-" + std::to_string(socket),
                         .domain = Domain::kPackage,
                         .socket = socket});
  }
  unit("a", 4).stats.cpu_set = std::make_shared<const std::vector<int>>(std::vector{0, 1, 2, 3});
  use_cpus({});
  watts_ = {{100}, {100}};
  step();
  EXPECT_NEAR(joules("a", Domain::kPackage), 30, 1e-9);
  EXPECT_NEAR(account_.unallocated_joules(Domain::kPackage), 30, 1e-9);
  EXPECT_NEAR(account_.system_joules(Domain::kPackage), 140, 1e-9);
  EXPECT_EQ(account_.idle_watts(Domain::kPackage), 60);
}

// Without the number of its socket, a source is a meter of all sockets.
TEST_F(SocketTest, PoolsPackagesIfOneIsOfNoSocket) {
  account_.add_source({.name = "package-x", .domain = Domain::kPackage});
  watts_ = {{80}, {80}, {80}};
  unit("a", 4).stats.cpu_set = std::make_shared<const std::vector<int>>(std::vector{0, 1, 2, 3});
  use_cpus({});
  step();
  EXPECT_NEAR(joules("a", Domain::kPackage), 120, 1e-9);
}

}  // namespace
}  // namespace ceems::exporter::energy
