// The figures of the rest of a node while the known domains change.
#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
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
      for (std::size_t gpu = 0; gpu < std::max(gpus, silent); ++gpu) {
        DeviceSample& device = devices.emplace_back();
        device.source = {.name = "GPU-" + std::to_string(gpu), .domain = Domain::kGpu};
        device.silent = gpu >= gpus;
        if (gpu < holders.size()) {
          device.holders = {{.manager = "slurm",
                             .cgrouphostname = "",
                             .uuid = holders[gpu],
                             .alloc = 1,
                             .use = device.silent ? 0.0 : 1.0}};
          device.total_use = 1;  // by a process of before, while it is silent
        }
        if (!device.silent) {
          const bool works = gpu < busy;
          device.joules = works ? 575.0 : 75.0;
          device.seconds = 1;
          device.fresh = now_;
          device.utilisation = works ? 1.0 : 0.0;
        }
      }
      units_.taken = now_;
      const std::vector<ManagerUnits> managers = {{.manager = "slurm", .snapshot = &units_}};
      account.advance({.time = now_,
                       .readings = readings,
                       .node = {.busy_cpus = 0.0, .cpus_online = 64, .memory_total_bytes = 256e9},
                       .managers = managers,
                       .devices = devices});
    }
  }
  /// From now on these run, each on the GPU of its place.
  void start(std::vector<std::string> names) {
    units_.manager = "slurm";
    units_.units.clear();
    for (const std::string& name : names) {
      Unit& unit = units_.units.emplace_back();
      unit.id = unit.uuid = name;
      unit.stats.reserved_cpus = 16;
    }
    holders = std::move(names);
  }
  double unit(const std::string& name, Domain domain) {
    for (const auto& entry : account.units()) {
      if (entry->uuid == name) {
        return entry->joules(domain);
      }
    }
    return -1;
  }
  double other() { return account.idle_watts(Domain::kOther).value_or(-1); }
  double idle(Domain domain) { return account.idle_watts(domain).value_or(-1); }
  Account account{{}};
  bool has_dram = true;
  std::size_t silent = 0;  ///< the account gets so many GPUs, whether they answer or not
  std::vector<std::string> holders;

 private:
  UnitSnapshot units_;
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

/// What the wall shows of them while their library hangs is that of the units that hold them then.
TEST(AccountKnownSet, AUnitThatStartsOnASilentGpuIsChargedForIt) {
  IdleGpuNode node;
  node.run(300, 4);
  node.start({"a"});
  node.run(300, 4, 1);
  node.silent = 4;
  node.run(60, 0, 1);
  const double before = node.unit("a", Domain::kOther);
  node.start({"b", "c"});
  node.run(600, 0, 2);
  const double rest = 0.25 * 139;  // of which each unit has reserved a quarter of the CPUs
  for (const char* unit : {"b", "c"}) {
    EXPECT_NEAR(node.unit(unit, Domain::kOther), (575 + rest) * 600, 0.05 * 575 * 600) << unit;
    EXPECT_EQ(node.unit(unit, Domain::kGpu), 0) << unit;
  }
  EXPECT_EQ(node.unit("a", Domain::kOther), before) << "it has ended";
  const double charged = node.unit("b", Domain::kOther);
  node.run(60, 4, 2);
  EXPECT_NEAR(node.unit("b", Domain::kGpu), 575 * 60, 575);
  EXPECT_NEAR(node.unit("b", Domain::kOther) - charged, rest * 60, 0.4 * rest * 60);
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
