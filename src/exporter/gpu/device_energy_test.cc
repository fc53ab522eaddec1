#include "exporter/gpu/device_energy.h"

#include <array>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exporter/gpu/assignment_test_support.h"
#include "exporter/gpu/inventory/device_names.h"
#include "exporter/gpu/library/fake_scenario.h"
#include "testing/eventually.h"
#include "testing/fake_clock.h"

namespace ceems::exporter::gpu {
namespace {

using energy::DeviceSample;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// NOLINTNEXTLINE(readability-identifier-naming): a matcher
MATCHER_P3(Holds, uuid, alloc, use, "") {
  *result_listener << arg.uuid << " alloc " << arg.alloc << " use " << arg.use;
  return arg.uuid == uuid && std::abs(arg.alloc - alloc) < 1e-12 && std::abs(arg.use - use) < 1e-12;
}

DeviceState whole_gpu() {
  DeviceState device;
  device.uuid = "GPU-a";
  device.index = "0";
  device.sm_count = 132;
  return device;
}

/// An H100 with two MIG devices, whose indexes are the ids of their GPU instances.
DeviceState split_gpu(std::optional<double> first = {}, std::optional<double> second = {}) {
  DeviceState device = whole_gpu();
  device.split = true;
  device.index.clear();
  device.instances.resize(2);
  device.instances[0].gpu_instance = 1;
  device.instances[0].index = "1";
  device.instances[0].sm_count = 60;
  device.instances[0].activity.sm_active = first;
  device.instances[1].gpu_instance = 5;
  device.instances[1].index = "5";
  device.instances[1].sm_count = 16;
  device.instances[1].activity.sm_active = second;
  return device;
}

ProcessUse process(int pid,
                   std::optional<double> utilisation,
                   std::optional<std::uint64_t> gi = {}) {
  ProcessUse use;
  use.pid = pid;
  use.utilisation = utilisation;
  use.gpu_instance = gi;
  return use;
}

/// Units "1" with pid 10 and "2" with pid 20.
class FindHolders : public ::testing::Test {
 protected:
  FindHolders() {
    snapshot_.units.resize(2);
    snapshot_.units[0].uuid = "1";
    snapshot_.units[0].pids = {9, 10};
    snapshot_.units[1].uuid = "2";
    snapshot_.units[1].pids = {20};
  }

  DeviceSample find(const DeviceState& device, const Assignments::List& assignments) {
    const std::vector<energy::ManagerUnits> managers = {
        {.manager = "slurm", .snapshot = &snapshot_}};
    const auto processes = unit_processes({device}, managers);
    DeviceSample sample;
    find_holders(device, assignments, processes, sample);
    return sample;
  }

  /// What the units did in 2 s.
  std::vector<energy::DeviceUse> uses(const DeviceState& device,
                                      const Assignments::List& assignments) {
    const std::vector<energy::ManagerUnits> managers = {
        {.manager = "slurm", .snapshot = &snapshot_}};
    std::vector<energy::DeviceUse> uses;
    find_uses(device, assignments, unit_processes({device}, managers), 2, uses);
    return uses;
  }

  UnitSnapshot snapshot_;
};

TEST_F(FindHolders, AUnitAloneIsChargedWithAllThatHappened) {
  DeviceState device = whole_gpu();
  device.utilisation = 0.75;
  device.activity.sm_active = 0.25;
  const auto whole = uses(device, {assignment("1", 1)});
  ASSERT_THAT(whole, SizeIs(1));
  EXPECT_EQ(whole[0].manager, "slurm");
  EXPECT_EQ(whole[0].uuid, "1");
  EXPECT_EQ(whole[0].device, "GPU-a");
  EXPECT_EQ(whole[0].instance, "");
  EXPECT_EQ(whole[0].index, "0");
  EXPECT_EQ(whole[0].seconds, 2);
  EXPECT_EQ(whole[0].busy, 0.75);
  EXPECT_EQ(whole[0].sms, 0.25);
  EXPECT_EQ(whole[0].memory_bytes, std::nullopt);
  device.busy = 0.5;
  EXPECT_EQ(uses(device, {assignment("1", 1)}).at(0).busy, 0.5) << "a mean counts more";
  device.busy.reset();
  device.processes = {process(10, 0.5)};
  device.processes[0].memory_bytes = 4096;
  const auto seen = uses(device, {assignment("1", 1)});
  ASSERT_THAT(seen, SizeIs(1));
  EXPECT_EQ(seen[0].busy, 0.75) << "processes that came and went are not listed";
  EXPECT_EQ(seen[0].memory_bytes, 4096);
}

TEST_F(FindHolders, UnitsThatShareAGpuHaveTheUseOfTheirProcesses) {
  DeviceState device = whole_gpu();
  device.utilisation = 0.75;
  device.activity.sm_active = 0.4;
  device.processes = {process(9, 0.1), process(10, 0.2), process(20, 0.3)};
  const auto shared = uses(device, {assignment("1", 0.5), assignment("2", 0.5)});
  ASSERT_THAT(shared, SizeIs(2));
  EXPECT_NEAR(shared[0].busy.value_or(-1), 0.3, 1e-12);
  EXPECT_NEAR(shared[1].busy.value_or(-1), 0.3, 1e-12);
  EXPECT_NEAR(shared[0].sms.value_or(-1), 0.2, 1e-12);
  EXPECT_NEAR(shared[1].sms.value_or(-1), 0.2, 1e-12);
  device.processes = {process(10, 0.5), process(99, 0.25)};
  const auto stranger = uses(device, {assignment("1", 1)});
  ASSERT_THAT(stranger, SizeIs(1));
  EXPECT_EQ(stranger[0].busy, 0.5) << "the rest is somebody else's";
}

TEST_F(FindHolders, UnitsThatShareAGpuHaveTheirPartIfNothingIsKnownOfProcesses) {
  DeviceState device = whole_gpu();
  device.utilisation = 0.8;
  const auto shared = uses(device, {assignment("1", 0.25), assignment("2", 0.75)});
  ASSERT_THAT(shared, SizeIs(2));
  EXPECT_NEAR(shared[0].busy.value_or(-1), 0.2, 1e-12);
  EXPECT_NEAR(shared[1].busy.value_or(-1), 0.6, 1e-12);
  EXPECT_EQ(shared[0].sms, std::nullopt) << "the library has no SM activity";
}

TEST_F(FindHolders, InstancesHaveUsesOfTheirOwn) {
  DeviceState device = split_gpu(0.5, std::nullopt);
  device.instances[0].activity.graphics = 0.75;
  device.instances[0].memory_used_bytes = 100;
  device.processes = {process(10, std::nullopt, 1)};
  const auto split = uses(device, {assignment("1", 1, "1"), assignment("2", 1, "5")});
  ASSERT_THAT(split, SizeIs(2));
  EXPECT_EQ(split[0].instance, "1");
  EXPECT_EQ(split[0].index, "1");
  EXPECT_EQ(split[0].busy, 0.75);
  EXPECT_EQ(split[0].sms, 0.5);
  EXPECT_EQ(split[0].memory_bytes, 100) << "its process is listed without memory";
  EXPECT_EQ(split[1].instance, "5");
  EXPECT_EQ(split[1].busy, std::nullopt) << "not known, which is not 0";
  EXPECT_EQ(split[1].memory_bytes, std::nullopt);
}

TEST_F(FindHolders, AnUnassignedGpuIsUsedByNobody) {
  DeviceState device = whole_gpu();
  device.utilisation = 0.8;
  EXPECT_THAT(uses(device, {}), IsEmpty());
}

TEST_F(FindHolders, AnUnassignedDeviceHasNone) {
  const auto sample = find(whole_gpu(), {});
  EXPECT_THAT(sample.holders, IsEmpty());
  EXPECT_EQ(sample.total_use, 1);
}

TEST_F(FindHolders, UseIsTheShareIfNothingIsKnownOfProcesses) {
  const auto sample = find(whole_gpu(), {assignment("1", 0.25), assignment("2", 0.5)});
  EXPECT_THAT(sample.holders, ElementsAre(Holds("1", 0.25, 0.25), Holds("2", 0.5, 0.5)));
  EXPECT_EQ(sample.total_use, 1);
}

TEST_F(FindHolders, UseIsThatOfTheProcesses) {
  DeviceState device = whole_gpu();
  device.processes = {process(10, 0.1), process(20, 0.5), process(99, 0.2)};
  const auto sample = find(device, {assignment("1", 0.5), assignment("2", 0.5)});
  EXPECT_THAT(sample.holders, ElementsAre(Holds("1", 0.5, 0.1), Holds("2", 0.5, 0.5)));
  EXPECT_DOUBLE_EQ(sample.total_use, 0.8) << "a process without a unit counts";
}

TEST_F(FindHolders, AUnitThatUsesWhatAnotherHoldsIsChargedItsUseOnly) {
  DeviceState device = whole_gpu();
  device.processes = {process(20, 0.5)};
  const auto sample = find(device, {assignment("1", 1)});
  EXPECT_THAT(sample.holders, ElementsAre(Holds("1", 1, 0), Holds("2", 0, 0.5)));
}

TEST_F(FindHolders, ProcessesDetermineTheHoldersOfAnUnassignedDevice) {
  DeviceState device = whole_gpu();
  device.processes = {process(9, 0), process(10, 0), process(20, std::nullopt)};
  const auto sample = find(device, {});
  EXPECT_THAT(sample.holders, ElementsAre(Holds("1", 0.5, 0.5), Holds("2", 0.5, 0.5)));
}

TEST_F(FindHolders, InstancesWeighByTheirSms) {
  const auto sample = find(split_gpu(), {assignment("1", 1, "1"), assignment("2", 0.5, "5")});
  EXPECT_THAT(sample.holders,
              ElementsAre(Holds("1", 60.0 / 132, 60.0 / 132), Holds("2", 8.0 / 132, 8.0 / 132)));
  EXPECT_DOUBLE_EQ(sample.total_use, 76.0 / 132);
}

TEST_F(FindHolders, InstancesUseByTheirActivity) {
  const auto sample =
      find(split_gpu(0.5, 0.25), {assignment("1", 1, "1"), assignment("2", 1, "5")});
  EXPECT_THAT(sample.holders,
              ElementsAre(Holds("1", 60.0 / 132, 30.0 / 132), Holds("2", 16.0 / 132, 4.0 / 132)));
  EXPECT_DOUBLE_EQ(sample.total_use, 34.0 / 132);
}

TEST_F(FindHolders, UtilisationIsThatOfTheSmsIfKnown) {
  DeviceState device = whole_gpu();
  EXPECT_FALSE(find(device, {}).utilisation);
  device.utilisation = 1;
  EXPECT_EQ(find(device, {}).utilisation, 1);
  device.busy = 0.5;
  EXPECT_EQ(find(device, {}).utilisation, 0.5);
  device.activity.sm_active = 0.25;
  EXPECT_EQ(find(device, {}).utilisation, 0.25);
  EXPECT_DOUBLE_EQ(find(split_gpu(0.5, 0.25), {}).utilisation.value_or(0), 34.0 / 132);
  EXPECT_FALSE(find(split_gpu(), {}).utilisation);
}

TEST_F(FindHolders, ProcessesDetermineTheHoldersOfAnInstance) {
  DeviceState device = split_gpu();
  device.processes = {process(20, std::nullopt, 5)};
  const auto sample = find(device, {});
  EXPECT_THAT(sample.holders, ElementsAre(Holds("2", 16.0 / 132, 16.0 / 132)));
}

TEST_F(FindHolders, InstancesOfUnknownSizeAreEqual) {
  DeviceState device = split_gpu();
  device.instances[1].sm_count = 0;
  const auto sample = find(device, {assignment("2", 1, "5")});
  EXPECT_THAT(sample.holders, ElementsAre(Holds("2", 0.5, 0.5)));
}

TEST_F(FindHolders, AnEndedUnitHasNoProcesses) {
  snapshot_.units[0].ended = true;
  DeviceState device = whole_gpu();
  device.processes = {process(10, 0.5)};
  EXPECT_THAT(find(device, {}).holders, IsEmpty());
}

TEST_F(FindHolders, AssignmentsOfUnitsThatAreGoneDoNotCount) {
  snapshot_.units[0].ended = true;
  const Assignments::List list = {assignment("1", 1), assignment("2", 1), assignment("77", 1)};
  const std::vector<energy::ManagerUnits> managers = {{.manager = "slurm", .snapshot = &snapshot_}};
  const auto left = live_assignments(list, managers);
  ASSERT_THAT(left, SizeIs(1));
  EXPECT_EQ(left[0].uuid, "2");
  const std::vector<energy::ManagerUnits> failed = {{.manager = "slurm", .snapshot = nullptr}};
  EXPECT_THAT(live_assignments(list, failed), SizeIs(3))
      << "units of a manager that cannot be read are kept";
}

class DeviceCounterTest : public ::testing::Test {
 protected:
  /// Joules and seconds of the reading `after` seconds later.
  std::pair<double, double> step(std::optional<double> joules,
                                 std::optional<double> watts,
                                 int after = 1) {
    now_ += seconds(after);
    DeviceState device;
    device.energy_joules = joules;
    device.power_watts = watts;
    DeviceSample sample;
    EXPECT_TRUE(counter_.advance(device, now_, sample));
    EXPECT_EQ(sample.fresh, now_);
    method_ = sample.source.method;
    return {sample.joules, sample.seconds};
  }

  DeviceCounter counter_;
  energy::Method method_{};
  Clock::SteadyTime now_{seconds(1000)};
};

using Step = std::pair<double, double>;

TEST_F(DeviceCounterTest, UsesTheCounterIfThereIsOne) {
  EXPECT_EQ(step(1000, 50), Step(0, 0));
  EXPECT_EQ(step(1200, 50), Step(200, 1));
  EXPECT_EQ(step(1200, 50, 0), Step(0, 0)) << "the same reading again";
  EXPECT_EQ(step(1500, 50, 2), Step(300, 2));
  EXPECT_EQ(method_, energy::Method::kMeasured);
}

TEST_F(DeviceCounterTest, IntegratesThePowerWithoutACounter) {
  EXPECT_EQ(step({}, 100), Step(0, 0));
  EXPECT_EQ(step({}, 300, 2), Step(400, 2));
  EXPECT_EQ(method_, energy::Method::kDerived);
}

TEST_F(DeviceCounterTest, RestartsAfterImpossibleSteps) {
  step(1000, {});
  EXPECT_EQ(step(10, {}), Step(0, 0)) << "the driver was reloaded";
  EXPECT_EQ(step(60, {}), Step(50, 1));
  EXPECT_EQ(step(1e15, {}), Step(0, 0));
  EXPECT_EQ(step(1e15 + 100, {}), Step(100, 1));
  EXPECT_EQ(step(1e15 + 2000, {}, 600), Step(0, 0)) << "a gap";
}

TEST_F(DeviceCounterTest, ChargesByPowerWhileTheCounterStandsStill) {
  step(1000, 300);
  double joules = 0;
  double time = 0;
  for (int i = 0; i < 60; ++i) {
    const auto [more, in] = step(1000, 300);
    joules += more;
    time += in;
    EXPECT_EQ(counter_.stands_still(), i >= 4) << i;
  }
  EXPECT_EQ(joules, 60 * 300) << "nothing is lost, from the first second on";
  EXPECT_EQ(time, 60);
  EXPECT_EQ(method_, energy::Method::kDerived);
  // It catches up at once: that has been charged.
  EXPECT_EQ(step(1000 + 61 * 300, 300), Step(300, 1));
  EXPECT_EQ(step(1000 + 62 * 300, 300), Step(300, 1));
  EXPECT_EQ(step(1000 + 63 * 300, 300), Step(300, 1));
  EXPECT_TRUE(counter_.stands_still());
  EXPECT_EQ(step(1000 + 64 * 300, 300), Step(300, 1));
  EXPECT_EQ(step(1000 + 64 * 300 + 290, 300), Step(290, 1));
  EXPECT_FALSE(counter_.stands_still());
  EXPECT_EQ(method_, energy::Method::kMeasured);
}

TEST_F(DeviceCounterTest, WaitsForASlowCounter) {
  step(1000, 300);
  EXPECT_EQ(step(1000, 300), Step(0, 0));
  EXPECT_EQ(step(1000, 300), Step(0, 0));
  EXPECT_EQ(step(1870, 300), Step(870, 3));
  EXPECT_EQ(step(1870, 0.1), Step(0, 0));
  EXPECT_EQ(step(1870, 0.1), Step(0, 2));
  EXPECT_EQ(step(1870, 0.1), Step(0, 1)) << "a GPU without power may stand still";
  EXPECT_FALSE(counter_.stands_still());
}

TEST_F(DeviceCounterTest, ACounterOfJumpsLosesAndAddsNothing) {
  step(0, 300);
  double joules = 0;
  for (int i = 1; i <= 120; ++i) {  // it is written every 20 s
    joules += step(i / 20 * 20 * 300, 300).first;
  }
  EXPECT_EQ(joules, 120 * 300);
}

TEST_F(DeviceCounterTest, ChargesImpossibleStepsByPower) {
  step(1000, 300);
  EXPECT_EQ(step(10, 300), Step(300, 1)) << "the driver was reloaded";
  EXPECT_EQ(step(1e15, 300), Step(300, 1));
  EXPECT_EQ(step(1e15 + 250, 300), Step(250, 1));
  EXPECT_EQ(step({}, 65535), Step(0, 0)) << "no GPU draws that, so the last power holds";
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(step({}, 300), Step(0, 0)) << "the counter may come back";
  }
  EXPECT_EQ(step({}, 300), Step(1500, 5));
  EXPECT_EQ(step({}, 300), Step(300, 1));
}

TEST_F(DeviceCounterTest, AValueThatWasWrongTakesNothingAway) {
  step(1000, 300);
  EXPECT_EQ(step(1e15, 300), Step(300, 1));
  EXPECT_EQ(step(1580, 300), Step(280, 1)) << "less what was charged by power";
  EXPECT_EQ(step(100, {}), Step(300, 1)) << "the last power holds";
  EXPECT_EQ(step(2200, {}), Step(320, 1));
  EXPECT_EQ(step({}, 300), Step(0, 0)) << "it cannot be read once";
  EXPECT_EQ(step(2800, 300), Step(600, 2));
}

TEST_F(DeviceCounterTest, AZeroThatPassesAddsNothing) {
  step(1000, 300);
  step(1300, 300);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(step(0, 300), Step(0, 0)) << "it may come back";
  }
  EXPECT_EQ(step(2500, 300), Step(1200, 4)) << "the old value is not counted again";
  EXPECT_EQ(step(2800, 300), Step(300, 1));
  // For longer: power counts, and what the counter catches up with does not.
  double joules = 0;
  for (int i = 0; i < 20; ++i) {
    joules += step(0, 300).first;
  }
  EXPECT_EQ(joules, 20 * 300);
  EXPECT_EQ(step(2800 + 21 * 300, 300), Step(300, 1));
}

TEST_F(DeviceCounterTest, AZeroMayBeANewBeginning) {
  step(9400, 300);
  step(9700, 300);
  EXPECT_EQ(step(0, 300), Step(0, 0));
  EXPECT_EQ(step(290, 300), Step(600, 2)) << "by power";
  EXPECT_EQ(step(580, 300), Step(290, 1));
  EXPECT_EQ(step(880, 300), Step(300, 1));
}

TEST_F(DeviceCounterTest, AZeroThatPassesAddsNothingWithoutPower) {
  step(1000, {});
  step(1300, {});
  EXPECT_EQ(step(0, {}), Step(0, 0));
  EXPECT_EQ(step(0, {}), Step(0, 0));
  EXPECT_EQ(step(2200, {}), Step(900, 3));
  EXPECT_EQ(step(0, {}), Step(0, 0));
  EXPECT_EQ(step(290, {}), Step(0, 0)) << "it begins anew";
  EXPECT_EQ(step(580, {}), Step(290, 1));
}

TEST_F(DeviceCounterTest, ALineStandsForPowerThatIsNotBelieved) {
  // 100 W and 400 W more at full use, of a GPU whose limit is 500 W.
  const auto reading = [&](double use, double watts) {
    now_ += seconds(1);
    DeviceState device;
    device.utilisation = use;
    device.power_watts = watts;
    device.power_limit_watts = 500;
    DeviceSample sample;
    EXPECT_TRUE(counter_.advance(device, now_, sample));
    return sample.joules;
  };
  for (int i = 0; i < 200; ++i) {
    const double use = i / 20 % 2 == 0 ? 0.25 : 0.75;
    reading(use, 100 + 400 * use + 0.01 * (i % 7));
  }
  for (int i = 0; i < 15; ++i) {
    EXPECT_NEAR(reading(0.5, 1'001), 400, 1) << "twice the limit; the last power holds";
  }
  for (const double broken : {1'001.0, 0.0, -1.0, 0.3, 4294.967295}) {
    EXPECT_NEAR(reading(0.5, broken), 300, 5) << broken;
  }
}

TEST(Mirrors, CountersThatShowTheSameAreOne) {
  std::vector<DeviceState> devices(3);
  for (DeviceState& device : devices) {
    device.energy_joules = 12345.678;
  }
  EXPECT_FALSE(mirrors(devices, 0));
  EXPECT_TRUE(mirrors(devices, 1));
  devices[1].energy_joules = 12345.679;
  EXPECT_FALSE(mirrors(devices, 1));
  EXPECT_TRUE(mirrors(devices, 2));
  devices[0].lost = "it has fallen off the bus";
  EXPECT_FALSE(mirrors(devices, 2));
  devices[0].lost.clear();
  devices[0].module = devices[2].module = "serial";
  EXPECT_FALSE(mirrors(devices, 2)) << "dies of one module";
  devices[0].module.clear();
  devices[0].energy_joules = devices[2].energy_joules = 0;
  EXPECT_FALSE(mirrors(devices, 2)) << "both have started again";
}

TEST(Modules, DiesShareTheirMeterByUse) {
  DeviceState one;
  DeviceState two;
  one.utilisation = 1;
  two.utilisation = 0;
  EXPECT_THAT(parts_of_module(std::array<const DeviceState*, 2>{&one, &two}),
              ElementsAre(1.2 / 1.4, 0.2 / 1.4));
  one.utilisation.reset();
  EXPECT_THAT(parts_of_module(std::array<const DeviceState*, 2>{&one, &two}),
              ElementsAre(0.5, 0.5));
  EXPECT_THAT(parts_of_module(std::array<const DeviceState*, 1>{&one}), ElementsAre(1));
}

/// The energy of each die of one MI250X after a second with these values.
class ModuleEnergyTest : public ::testing::Test {
 protected:
  ModuleEnergyTest() {
    auto library = load_library(Vendor::kAmd, CEEMS_FAKE_ROCM_SMI);
    EXPECT_TRUE(library);
    std::vector<std::unique_ptr<GpuLibrary>> libraries;
    libraries.push_back(*std::move(library));
    monitor_ = std::make_shared<Monitor>(
        MonitorOptions{.interval = std::chrono::milliseconds(5), .first_wait = testing::kPatience},
        clock_, std::move(libraries), nullptr, std::make_shared<ProcessList>());
    energy_ = std::make_unique<DeviceEnergy>(monitor_, nullptr);
    monitor_->start();
    monitor_->wait_first(std::chrono::steady_clock::now() + testing::kPatience);
  }

  std::vector<double> after_a_second() {
    static_cast<void>(read());
    clock_.advance(seconds(1));
    EXPECT_TRUE(
        testing::eventually([this] { return monitor_->latest()->taken == clock_.steady_now(); }));
    return read();
  }
  std::vector<double> read() {
    std::vector<DeviceSample> samples;
    energy_->read({}, {}, samples);
    std::vector<double> joules;
    for (const DeviceSample& sample : samples) {
      joules.push_back(sample.joules);
    }
    return joules;
  }

  FakeScenario scenario_{{{"count", "2"},
                          {"0.pci", std::to_string(0xc1U << 8U)},
                          {"1.pci", std::to_string(0xc6U << 8U)},
                          {"0.serial", "PCB1"},
                          {"1.serial", "PCB1"},
                          {"0.power", "420000000"},
                          {"0.busy", "100"},
                          {"1.power", "0"},
                          {"1.busy", "0"}}};
  testing::FakeClock clock_;
  std::shared_ptr<Monitor> monitor_;
  std::unique_ptr<DeviceEnergy> energy_;
};

TEST_F(ModuleEnergyTest, IsThatOfTheDieThatShowsIt) {
  const auto joules = after_a_second();
  ASSERT_THAT(joules, SizeIs(2));
  EXPECT_NEAR(joules[0], 360, 1e-9);
  EXPECT_NEAR(joules[1], 60, 1e-9);
}

TEST_F(ModuleEnergyTest, DiesThatBothShowTheirOwnHaveTheirOwn) {
  scenario_.set("1.power", "90000000");
  clock_.advance(seconds(1));
  EXPECT_TRUE(testing::eventually([this] {
    const auto latest = monitor_->latest();
    return latest->taken == clock_.steady_now() && latest->devices.at(1).power_watts == 90;
  }));
  EXPECT_THAT(after_a_second(), ElementsAre(420, 90));
}

TEST_F(ModuleEnergyTest, OnesThatNoLongerAnswerAreSilent) {
  static_cast<void>(after_a_second());
  ASSERT_TRUE(scenario_.hang("rsmi_dev_power_get"));
  clock_.advance(seconds(31));
  ASSERT_EQ(monitor_->latest(), nullptr);
  std::vector<DeviceSample> samples;
  energy_->read({}, {}, samples);
  ASSERT_THAT(samples, SizeIs(2));
  for (const DeviceSample& sample : samples) {
    EXPECT_TRUE(sample.silent) << sample.source.name;
    EXPECT_EQ(sample.joules, 0);
    EXPECT_EQ(sample.seconds, 0);
  }
  EXPECT_NE(samples[0].source.name, samples[1].source.name);
  scenario_.erase("hang");
}

TEST_F(DeviceCounterTest, HasNoValueWithoutEither) {
  DeviceSample sample;
  EXPECT_FALSE(counter_.advance(DeviceState{}, now_, sample));
}

TEST(DeviceNames, UsesThoseOfTheInventory) {
  Device known;
  known.vendor = Vendor::kAmd;
  known.index = "3";
  known.uuid = "serial";
  known.sm_count = 304;
  known.address = parse_pci_address("0000:c1:00.0");
  std::vector<DeviceState> devices(2);
  devices[0].vendor = Vendor::kAmd;
  devices[0].uuid = "0x1234";
  devices[0].address = known.address;
  devices[1].vendor = Vendor::kAmd;
  devices[1].uuid = "unknown";
  name_devices({known}, devices);
  EXPECT_EQ(devices[0].index, "3");
  EXPECT_EQ(devices[0].uuid, "serial");
  EXPECT_EQ(devices[0].sm_count, 304U);
  EXPECT_EQ(devices[1].index, "") << "a new number could be that of another GPU";
}

TEST(DeviceNames, FindsInstancesByUuidThenByIds) {
  Device known;
  known.uuid = "GPU-a";
  known.split = true;
  known.instances.resize(2);
  known.instances[0].uuid = "MIG-1";
  known.instances[0].gpu_instance = 9;
  known.instances[0].index = "4";
  known.instances[0].sm_count = 14;
  known.instances[1].gpu_instance = 2;
  known.instances[1].index = "5";
  DeviceState state = split_gpu();
  state.instances[0].uuid = "MIG-1";
  state.instances[0].sm_count = 0;
  state.instances[1].gpu_instance = 2;
  std::vector<DeviceState> devices = {state};
  name_devices({known}, devices);
  EXPECT_EQ(devices[0].instances[0].index, "4");
  EXPECT_EQ(devices[0].instances[0].sm_count, 14U);
  EXPECT_EQ(devices[0].instances[1].index, "5");
  EXPECT_EQ(devices[0].instances[1].sm_count, 16U) << "the library's value takes precedence";
}

}  // namespace
}  // namespace ceems::exporter::gpu
