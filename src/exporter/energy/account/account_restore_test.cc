// What an account learned continues in the account of the next run.
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "exporter/energy/account/account.h"

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
      account.advance({.time = now_,
                       .readings = readings,
                       .node = {.busy_cpus = 64 * use,
                                .cpus_online = 64,
                                .memory_total_bytes = 256e9,
                                .memory_used_bytes = 64e9},
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
  EXPECT_NEAR(forgetful.idle(Domain::kPackage), 205, 1);
}

TEST(AccountRestore, LetsANodeThatIsNeverIdleExtrapolate) {
  Node before;
  for (int round = 0; round < 20; ++round) {
    for (const double use : {0.3, 0.5, 0.7, 0.9}) {
      before.run(use, 30);
    }
  }
  EXPECT_NEAR(before.idle(Domain::kPackage), 160, 0.05 * 160);
  Node after;
  after.account.restore(before.account.learned());
  after.run(0.9, 2);
  EXPECT_NEAR(after.idle(Domain::kPackage), before.idle(Domain::kPackage), 0.01);
  for (const double use : {0.9, 0.4, 0.6}) {
    after.run(use, 600);
  }
  EXPECT_NEAR(after.idle(Domain::kPackage), 160, 0.05 * 160);
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

}  // namespace
}  // namespace ceems::exporter::energy
