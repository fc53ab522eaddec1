// Devices in the account: energy of a GPU goes to the units that hold it.
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "exporter/energy/account/account.h"

namespace ceems::exporter::energy {
namespace {

using std::chrono::seconds;

AccountOptions idle_gpu(double watts) {
  AccountOptions options;
  options.idle_watts.at(index(Domain::kGpu)) = watts;
  return options;
}

class AccountDeviceTest : public ::testing::Test {
 protected:
  explicit AccountDeviceTest(const AccountOptions& options = idle_gpu(100)) : account_(options) {
    snapshot_.manager = "slurm";
    for (const char* uuid : {"1", "2"}) {
      Unit& unit = snapshot_.units.emplace_back();
      unit.uuid = uuid;
      unit.stats.reserved_cpus = 8;
    }
    sample();  // of length 0
  }

  DeviceSample& device(const std::string& name) {
    for (DeviceSample& known : devices_) {
      if (known.source.name == name) {
        return known;
      }
    }
    DeviceSample& added = devices_.emplace_back();
    added.source = {.name = name, .domain = Domain::kGpu};
    added.seconds = 1;
    return added;
  }

  void sample() {
    now_ += seconds(1);
    snapshot_.taken = now_;
    const std::vector<ManagerUnits> managers = {{.manager = "slurm", .snapshot = &snapshot_}};
    account_.advance({.time = now_,
                      .readings = {},
                      .node = {.busy_cpus = 0.0, .cpus_online = 64, .memory_total_bytes = 256e9},
                      .managers = managers,
                      .devices = devices_});
  }

  double unit(const std::string& uuid) {
    for (const auto& entry : account_.units()) {
      if (entry->uuid == uuid) {
        return entry->joules(Domain::kGpu);
      }
    }
    return -1;
  }

  double unused(const std::string& uuid) {
    for (const auto& entry : account_.units()) {
      if (entry->uuid == uuid) {
        return entry->unused_idle_joules(Domain::kGpu);
      }
    }
    return -1;
  }

  Account account_;
  UnitSnapshot snapshot_;
  std::vector<DeviceSample> devices_;
  Clock::SteadyTime now_{seconds(1000)};
};

DeviceHolder holder(const std::string& uuid, double alloc, double use) {
  return {.manager = "slurm", .cgrouphostname = "", .uuid = uuid, .alloc = alloc, .use = use};
}

TEST_F(AccountDeviceTest, GivesAllOfADeviceToItsOnlyHolder) {
  device("a").joules = 400;
  device("a").total_use = 1;
  device("a").holders = {holder("1", 1, 1)};
  sample();
  EXPECT_DOUBLE_EQ(unit("1"), 400);
  EXPECT_DOUBLE_EQ(unit("2"), 0);
  EXPECT_DOUBLE_EQ(account_.node_joules(Domain::kGpu), 400);
  EXPECT_TRUE(account_.known(Domain::kGpu));
}

TEST_F(AccountDeviceTest, SplitsASharedDeviceByShareWhenIdleAndByUseWhenActive) {
  device("a").joules = 400;  // 100 idle, 300 active
  device("a").total_use = 1;
  device("a").holders = {holder("1", 0.25, 0.2), holder("2", 0.75, 0.6)};
  sample();
  EXPECT_DOUBLE_EQ(unit("1"), 25 + 60);
  EXPECT_DOUBLE_EQ(unit("2"), 75 + 180);
  EXPECT_DOUBLE_EQ(account_.system_joules(Domain::kGpu), 60);
  EXPECT_DOUBLE_EQ(account_.unallocated_joules(Domain::kGpu), 0);
}

/// By the time in which the device was busy for the unit; where that is not known, nothing is
/// unused.
TEST_F(AccountDeviceTest, CountsIdlePowerOfTheTimeInWhichItWasNotBusy) {
  device("a").joules = 400;  // 100 idle
  device("a").total_use = 1;
  device("a").utilisation = 0.3;
  device("a").holders = {holder("1", 1, 1)};
  sample();
  EXPECT_NEAR(unused("1"), 70, 1e-9);
  // Shared in halves: one was busy for 0.9 * 0.8 of the time, more than its half; the other for
  // 0.18.
  device("a").utilisation = 0.9;
  device("a").holders = {holder("1", 0.5, 0.8), holder("2", 0.5, 0.2)};
  sample();
  EXPECT_NEAR(unused("1"), 70, 1e-9);
  EXPECT_NEAR(unused("2"), 50 * (1 - 0.18 / 0.5), 1e-9);
  device("a").utilisation.reset();
  device("a").holders = {holder("1", 1, 1)};
  sample();
  EXPECT_NEAR(unused("1"), 70, 1e-9);
  device("a").utilisation = 0.0;
  device("a").total_use = 0;
  sample();
  EXPECT_NEAR(unused("1"), 170, 1e-9);
}

TEST_F(AccountDeviceTest, ADeviceWithoutHoldersIsUnallocatedAndSystem) {
  device("a").joules = 130;
  device("a").total_use = 1;
  sample();
  EXPECT_DOUBLE_EQ(account_.unallocated_joules(Domain::kGpu), 100);
  EXPECT_DOUBLE_EQ(account_.system_joules(Domain::kGpu), 30);
}

TEST_F(AccountDeviceTest, KeepsDevicesApart) {
  device("a").joules = 150;
  device("a").total_use = 1;
  device("a").holders = {holder("1", 1, 1)};
  device("b").joules = 50;  // 100 W idle power is configured for both, so it is idle
  device("b").total_use = 1;
  device("b").holders = {holder("2", 1, 1)};
  sample();
  EXPECT_DOUBLE_EQ(unit("1"), 150);
  EXPECT_DOUBLE_EQ(unit("2"), 50);
  ASSERT_EQ(account_.device_sources().size(), 2U);
  EXPECT_EQ(account_.device_sources()[1].info.name, "b");
  EXPECT_DOUBLE_EQ(account_.device_sources()[1].joules.value(), 50);
}

TEST_F(AccountDeviceTest, ADeviceThatIsGoneKeepsItsEnergy) {
  device("a").joules = 100;
  sample();
  devices_.clear();
  sample();
  device("b").joules = 7;
  sample();
  EXPECT_DOUBLE_EQ(account_.node_joules(Domain::kGpu), 107);
  EXPECT_EQ(account_.device_sources().size(), 2U);
}

TEST_F(AccountDeviceTest, AHolderThatIsNotAUnitGetsNothing) {
  device("a").joules = 130;
  device("a").total_use = 1;
  device("a").holders = {holder("77", 1, 1)};
  sample();
  EXPECT_DOUBLE_EQ(account_.unallocated_joules(Domain::kGpu), 100);
  EXPECT_DOUBLE_EQ(account_.system_joules(Domain::kGpu), 30);
}

TEST_F(AccountDeviceTest, EnergyOfSeveralSecondsIncludesTheirIdleEnergy) {
  device("a").joules = 450;
  device("a").seconds = 2.5;  // 250 J idle
  device("a").total_use = 1;
  device("a").holders = {holder("1", 0.5, 0)};
  sample();
  EXPECT_DOUBLE_EQ(unit("1"), 125);
  EXPECT_DOUBLE_EQ(account_.unallocated_joules(Domain::kGpu), 125);
  EXPECT_DOUBLE_EQ(account_.system_joules(Domain::kGpu), 200);
}

TEST_F(AccountDeviceTest, IgnoresInvalidEnergy) {
  device("a").joules = -5;
  device("a").holders = {holder("1", -1, -1)};
  device("b").joules = std::numeric_limits<double>::quiet_NaN();
  device("c").joules = std::numeric_limits<double>::infinity();
  sample();
  EXPECT_DOUBLE_EQ(account_.node_joules(Domain::kGpu), 0);
  EXPECT_DOUBLE_EQ(unit("1"), 0);
}

AccountOptions idle_gpu_and_node(double gpu_watts, double node_watts) {
  AccountOptions options = idle_gpu(gpu_watts);
  options.idle_watts.at(index(Domain::kNode)) = node_watts;
  return options;
}

class NodeIdleDeviceTest : public AccountDeviceTest {
 protected:
  NodeIdleDeviceTest() : AccountDeviceTest(idle_gpu_and_node(100, 50)) {}
};

TEST_F(NodeIdleDeviceTest, TheIdlePowerOfTheNodeLimitsThatOfDevices) {
  device("a").joules = 400;
  device("a").total_use = 1;
  sample();
  EXPECT_DOUBLE_EQ(account_.unallocated_joules(Domain::kGpu), 50);
  EXPECT_DOUBLE_EQ(account_.system_joules(Domain::kGpu), 350);
}

class LearningDeviceTest : public AccountDeviceTest {
 protected:
  LearningDeviceTest() : AccountDeviceTest(AccountOptions{}) {}
};

TEST_F(LearningDeviceTest, LearnsTheIdlePowerOfEachDevice) {
  for (int i = 0; i < 30; ++i) {
    device("a").joules = 70;
    device("a").utilisation = 0;
    device("b").joules = 600;
    device("b").utilisation = 1;  // never seen idle
    sample();
  }
  EXPECT_NEAR(account_.idle_watts(Domain::kGpu).value_or(0),
              70 + 600 * Account::kDeviceFullLoadIdle, 1e-6);
}

// The packages are in what the wall meter shows beyond the GPUs.
TEST(AccountWithGpusAndAWallMeter, SplitsTheRestByCpuTime) {
  AccountOptions options = idle_gpu(100);
  options.idle_watts.at(index(Domain::kOther)) = 100;
  Account account(options);
  account.add_source({.name = "ipmi", .domain = Domain::kNode, .rank = kIpmiRank});
  UnitSnapshot units;
  units.manager = "slurm";
  for (const char* uuid : {"gpu", "cpu"}) {
    units.units.emplace_back().uuid = uuid;
    units.units.back().stats.reserved_cpus = 32;
  }
  DeviceSample device;
  device.source = {.name = "a", .domain = Domain::kGpu};
  device.seconds = 1;
  device.total_use = 1;
  device.holders = {holder("gpu", 1, 1)};
  for (const double on : {0.0, 1.0}) {
    units.taken = Clock::SteadyTime(seconds(1000 + static_cast<int>(on)));
    units.units[1].stats.cpu_user_seconds = 16 * on;
    device.joules = 300 * on;
    const std::vector<std::optional<Reading>> readings = {
        Reading{.joules = 500 * on, .fresh = units.taken, .idle_watts = {}}};
    const ManagerUnits manager{.manager = "slurm", .snapshot = &units};
    account.advance({.time = units.taken,
                     .readings = readings,
                     .node = {.busy_cpus = 16 * on, .cpus_online = 64},
                     .managers = {&manager, 1},
                     .devices = {&device, 1}});
  }
  // Of the 200 J, the supply loses 30 J for the GPU, 10 J of them at rest.
  EXPECT_DOUBLE_EQ(account.units()[0]->joules(Domain::kNode), 300 + 30 + 45);
  EXPECT_DOUBLE_EQ(account.units()[1]->joules(Domain::kNode), 45 + 80);
  EXPECT_DOUBLE_EQ(account.node_joules(Domain::kNode), 500);
}

}  // namespace
}  // namespace ceems::exporter::energy
