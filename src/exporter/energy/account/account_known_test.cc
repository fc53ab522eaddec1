// The figures of the rest of a node while the known domains change.
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "exporter/energy/account/account.h"

namespace ceems::exporter::energy {
namespace {

/// Idle: packages of 160 W, memory of 28 W, four GPUs of 75 W, and 139 W more at the wall.
class IdleGpuNode {
 public:
  IdleGpuNode() {
    account.add_source({.name = "rapl-package-0", .domain = Domain::kPackage});
    account.add_source({.name = "rapl-dram-0", .domain = Domain::kDram});
    account.add_source({.name = "hwmon", .domain = Domain::kNode, .rank = kIpmiRank});
  }
  /// `gpus`: how many answer; `busy`: how many of them draw 500 W more.
  void run(int times, std::size_t gpus, std::size_t busy = 0) {
    const double wall = 627 + 500 * static_cast<double>(busy);
    for (int i = 0; i < times; ++i) {
      now_ += std::chrono::seconds(1);
      const std::vector<std::optional<Reading>> readings{
          Reading{.joules = 160, .fresh = now_, .idle_watts = {}},
          has_dram ? std::optional(Reading{.joules = 28, .fresh = now_, .idle_watts = {}})
                   : std::nullopt,
          Reading{.joules = wall, .fresh = now_, .idle_watts = {}, .watts = wall}};
      std::vector<DeviceSample> devices;
      for (std::size_t gpu = 0; gpu < gpus; ++gpu) {
        const bool works = gpu < busy;
        devices.push_back({.source = {.name = "GPU-" + std::to_string(gpu), .domain = Domain::kGpu},
                           .joules = works ? 575.0 : 75.0,
                           .seconds = 1,
                           .fresh = now_,
                           .utilisation = works ? 1.0 : 0.0});
      }
      account.advance({.time = now_,
                       .readings = readings,
                       .node = {.busy_cpus = 0.0, .cpus_online = 64, .memory_total_bytes = 256e9},
                       .managers = {},
                       .devices = devices});
    }
  }
  double other() { return account.idle_watts(Domain::kOther).value_or(-1); }
  double idle(Domain domain) { return account.idle_watts(domain).value_or(-1); }
  Account account{{}};
  bool has_dram = true;

 private:
  Clock::SteadyTime now_{std::chrono::seconds(1000)};
};

TEST(AccountKnownSet, LearnsTheRestAnewWhenGpusAppear) {
  IdleGpuNode node;
  node.run(300, 0);
  EXPECT_NEAR(node.other(), 439, 5);
  node.run(1, 4);
  EXPECT_NEAR(node.other(), 139, 5);
  node.run(300, 4);
  EXPECT_NEAR(node.other(), 139, 5);
  node.run(300, 0);  // bridged
  EXPECT_NEAR(node.other(), 139, 5);
  node.run(300, 4);
  EXPECT_NEAR(node.other(), 139, 5);
}

TEST(AccountKnownSet, TakesAMemoryMeterThatAppearsOutOfTheRest) {
  IdleGpuNode node;
  node.has_dram = false;
  node.run(301, 4);
  EXPECT_FALSE(node.account.known(Domain::kDram));
  EXPECT_NEAR(node.other(), 167, 5);
  const double node_before = node.account.node_joules(Domain::kNode);
  const double other_before = node.account.node_joules(Domain::kOther);
  EXPECT_NEAR(node_before, 627 * 300, 627);
  EXPECT_NEAR(other_before, 167 * 300, 627);
  node.has_dram = true;
  node.run(1, 4);
  EXPECT_TRUE(node.account.known(Domain::kDram));
  EXPECT_NEAR(node.other(), 139, 5) << "at once";
  node.run(299, 4);
  EXPECT_NEAR(node.other(), 139, 5);
  EXPECT_NEAR(node.idle(Domain::kNode), 627, 5) << "the wall shows the same";
  EXPECT_DOUBLE_EQ(node.account.node_joules(Domain::kDram), 28 * 300);
  EXPECT_NEAR(node.account.node_joules(Domain::kNode) - node_before, 627 * 300, 1);
  EXPECT_NEAR(node.account.node_joules(Domain::kOther) - other_before, 139 * 300, 30);
  node.has_dram = false;
  node.run(30, 4);
  EXPECT_NEAR(node.other(), 167, 5) << "what was known without it is still true";
  node.has_dram = true;
  node.run(30, 4);
  EXPECT_NEAR(node.other(), 139, 5);
}

TEST(AccountKnownSet, KnowsAGpuThatIsBusyWhenTheExporterStarts) {
  IdleGpuNode node;
  node.run(60, 4, 2);
  EXPECT_NEAR(node.idle(Domain::kGpu), 2 * 75 + 2 * 575 * Account::kDeviceFullLoadIdle, 1e-6)
      << "assumed of those that were never seen idle";
  EXPECT_EQ(node.account.idle_basis(Domain::kGpu), IdleBasis::kAssumed);
  EXPECT_NEAR(node.account.node_joules(Domain::kOther), 139 * 59, 139) << "the rest is the same";
  node.run(600, 4, 0);
  EXPECT_NEAR(node.idle(Domain::kGpu), 4 * 75, 4);
  EXPECT_EQ(node.account.idle_basis(Domain::kGpu), IdleBasis::kLearned);
  EXPECT_NEAR(node.other(), 139, 5);
}

/// The library answers late, and what its GPUs drew before is not known.
TEST(AccountKnownSet, LearnsTheRestAnewWhenBusyGpusAppear) {
  IdleGpuNode node;
  node.run(300, 0, 2);
  EXPECT_NEAR(node.other(), 1439, 5) << "for all that is known";
  node.run(60, 4, 2);
  EXPECT_NEAR(node.other(), 139, 5);
  const double before = node.account.node_joules(Domain::kOther);
  node.run(600, 4, 0);
  EXPECT_NEAR(node.account.node_joules(Domain::kOther) - before, 139 * 600, 139 * 6);
  EXPECT_NEAR(node.other(), 139, 5);
  EXPECT_NEAR(node.idle(Domain::kNode), 627, 10);
}

}  // namespace
}  // namespace ceems::exporter::energy
