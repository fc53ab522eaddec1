// A GPU that is split while it is accounted for, and put together again.
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "exporter/energy/account/account.h"
#include "exporter/gpu/assignment_test_support.h"
#include "exporter/gpu/device_energy.h"

namespace ceems::exporter::gpu {
namespace {

using energy::Account;
using energy::AccountOptions;
using energy::Domain;

/// 60 W idle, and a counter that the reset of a reconfiguration sets to 0.
class MigReconfiguration : public ::testing::Test {
 protected:
  MigReconfiguration() {
    snapshot_.manager = "slurm";
    for (const char* const uuid : {"whole", "large", "small"}) {
      snapshot_.units.emplace_back().uuid = uuid;
    }
    device_.uuid = "GPU-a";
    device_.sm_count = 100;
    device_.energy_joules = 5'000;
    second(0);
  }

  void split() {
    device_.split = true;
    device_.instances.resize(2);
    device_.instances[0] = {.index = "1", .uuid = "MIG-1", .gpu_instance = 1, .sm_count = 60};
    device_.instances[1] = {.index = "2", .uuid = "MIG-2", .gpu_instance = 2, .sm_count = 20};
  }

  void second(double watts) {
    now_ += std::chrono::seconds(1);
    device_.power_watts = watts > 0 ? std::optional(watts) : std::nullopt;
    device_.energy_joules = device_.energy_joules.value_or(0) + watts;
    snapshot_.taken = now_;
    const std::vector<energy::ManagerUnits> managers = {
        {.manager = "slurm", .snapshot = &snapshot_}};
    energy::DeviceSample sample;
    sample.source = {.name = device_.uuid, .domain = Domain::kGpu};
    ASSERT_TRUE(counter_.advance(device_, now_, sample));
    find_holders(device_, assignments_, {}, sample);
    account_.advance({.time = now_,
                      .readings = {},
                      .node = {.busy_cpus = 0.0, .cpus_online = 64, .memory_total_bytes = 256e9},
                      .managers = managers,
                      .devices = {&sample, 1}});
  }

  double joules(const std::string& uuid) {
    for (const auto& entry : account_.units()) {
      if (entry->uuid == uuid) {
        return entry->joules(Domain::kGpu);
      }
    }
    return -1;
  }

  static AccountOptions options() {
    AccountOptions options;
    options.idle_watts.at(index(Domain::kGpu)) = 60;
    return options;
  }
  Account account_{options()};
  UnitSnapshot snapshot_;
  DeviceState device_;
  DeviceCounter counter_{"GPU-a"};
  Assignments::List assignments_;
  Clock::SteadyTime now_{std::chrono::seconds(1'000)};
};

TEST_F(MigReconfiguration, ChargesWhatHoldsThePartsOfTheTime) {
  assignments_ = {assignment("whole", 1)};
  for (int i = 0; i < 10; ++i) {
    second(360);
  }
  EXPECT_DOUBLE_EQ(joules("whole"), 3'600);

  // The job ended, and the GPU is split. The reset counts from 0, so its second counts by power.
  assignments_.clear();
  split();
  device_.energy_joules = 0;
  second(60);
  EXPECT_DOUBLE_EQ(account_.node_joules(Domain::kGpu), 3'600 + (360.0 + 60) / 2);
  EXPECT_DOUBLE_EQ(account_.unallocated_joules(Domain::kGpu), 60);
  const double system = account_.system_joules(Domain::kGpu);

  // Of 300 J, 60 are idle: 60 and 20 of 100 SMs. The rest goes by active SMs: 48 to 4.
  assignments_ = {assignment("large", 1, "1"), assignment("small", 1, "2")};
  device_.instances[0].activity.sm_active = 0.8;
  device_.instances[1].activity.sm_active = 0.2;
  second(300);
  EXPECT_DOUBLE_EQ(joules("large"), 36 + 240.0 * 48 / 52);
  EXPECT_DOUBLE_EQ(joules("small"), 12 + 240.0 * 4 / 52);
  EXPECT_DOUBLE_EQ(account_.unallocated_joules(Domain::kGpu), 60 + 12) << "SMs of no instance";

  // An instance is destroyed under its job, whose assignment is updated with the next scrape.
  device_.instances.pop_back();
  const double small = joules("small");
  const double large = joules("large");
  second(300);
  EXPECT_DOUBLE_EQ(joules("small"), small);
  EXPECT_DOUBLE_EQ(joules("large"), large + 36 + 240);
  EXPECT_DOUBLE_EQ(account_.system_joules(Domain::kGpu), system);

  // And together again: assignments of instances that are gone hold nothing.
  device_.split = false;
  device_.instances.clear();
  device_.energy_joules = 0;
  second(60);
  EXPECT_DOUBLE_EQ(joules("large"), large + 36 + 240);
  assignments_ = {assignment("whole", 1)};
  second(360);
  EXPECT_DOUBLE_EQ(joules("whole"), 3'600 + 360);
  EXPECT_DOUBLE_EQ(account_.node_joules(Domain::kGpu),
                   3'600 + 210 + 300 + 300 + (300.0 + 60) / 2 + 360);
  EXPECT_EQ(account_.device_sources().size(), 1U) << "one meter throughout";
}

}  // namespace
}  // namespace ceems::exporter::gpu
