// The figures of the rest of a node while the known domains change.
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
  void run(int times, std::size_t gpus) {
    for (int i = 0; i < times; ++i) {
      now_ += std::chrono::seconds(1);
      const std::vector<std::optional<Reading>> readings{
          Reading{.joules = 160, .fresh = now_, .idle_watts = {}},
          Reading{.joules = 28, .fresh = now_, .idle_watts = {}},
          Reading{.joules = 627, .fresh = now_, .idle_watts = {}, .watts = 627}};
      std::vector<DeviceSample> devices;
      for (std::size_t gpu = 0; gpu < gpus; ++gpu) {
        devices.push_back({.source = {.name = "GPU-" + std::to_string(gpu), .domain = Domain::kGpu},
                           .joules = 75,
                           .seconds = 1,
                           .fresh = now_,
                           .utilisation = 0.0});
      }
      account.advance({.time = now_,
                       .readings = readings,
                       .node = {.busy_cpus = 0.0, .cpus_online = 64, .memory_total_bytes = 256e9},
                       .managers = {},
                       .devices = devices});
    }
  }
  double other() { return account.idle_watts(Domain::kOther).value_or(-1); }
  Account account{{}};

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

}  // namespace
}  // namespace ceems::exporter::energy
