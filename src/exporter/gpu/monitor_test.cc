#include "exporter/gpu/monitor.h"

#include <chrono>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exporter/gpu/library/fake_scenario.h"
#include "testing/eventually.h"
#include "testing/fake_clock.h"
#include "testing/fake_runner.h"
#include "testing/temp_dir.h"

namespace ceems::exporter::gpu {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using testing::eventually;
using testing::kPatience;
using ::testing::SizeIs;

class MonitorTest : public ::testing::Test {
 protected:
  void SetUp() override { start(); }

  void start(std::shared_ptr<Inventory> inventory = nullptr) {
    monitor_.reset();
    auto library = load_library(Vendor::kNvidia, CEEMS_FAKE_NVML);
    ASSERT_TRUE(library) << library.error().message;
    std::vector<std::unique_ptr<GpuLibrary>> libraries;
    libraries.push_back(*std::move(library));
    monitor_ = std::make_unique<Monitor>(
        MonitorOptions{
            .interval = milliseconds(5), .patience = milliseconds(50), .first_wait = kPatience},
        clock_, std::move(libraries), std::move(inventory), processes_);
  }

  void begin() {
    monitor_->start();
    monitor_->wait_first(std::chrono::steady_clock::now() + kPatience);
  }

  FakeScenario scenario_{{{"count", "2"},
                          {"0.uuid", "GPU-a"},
                          {"0.name", "NVIDIA A100"},
                          {"0.power", "50000"},
                          {"0.processes", "10:1 11:1"},
                          {"1.uuid", "GPU-b"},
                          {"1.power", "60000"},
                          {"1.mig", "1"},
                          {"1.mig_places", "7"},
                          {"1.0.uuid", "MIG-1"},
                          {"1.0.gi", "3"},
                          {"1.0.processes", "12:1"}}};
  testing::FakeClock clock_;
  std::shared_ptr<ProcessList> processes_ = std::make_shared<ProcessList>();
  std::unique_ptr<Monitor> monitor_;
};

TEST_F(MonitorTest, ServesTheFirstReadingAfterTheStart) {
  EXPECT_EQ(monitor_->latest(), nullptr);
  begin();
  const auto reading = monitor_->latest();
  ASSERT_NE(reading, nullptr);
  ASSERT_THAT(reading->devices, SizeIs(2));
  EXPECT_EQ(reading->devices[0].index, "0");
  EXPECT_EQ(reading->devices[0].sm_count, 108U);
  EXPECT_EQ(reading->devices[1].index, "") << "split";
  ASSERT_THAT(reading->devices[1].instances, SizeIs(1));
  EXPECT_EQ(reading->devices[1].instances[0].index, "1") << "numbered in one sequence";
}

TEST_F(MonitorTest, ReportsChangedDevicesToTheInventory) {
  const testing::TempDir directory;
  directory.write("sys/bus/pci/devices/0000:07:00.0/class", "0x030200\n");
  directory.write("sys/bus/pci/devices/0000:07:00.0/vendor", "0x10de\n");
  testing::FakeRunner runner;
  InventoryOptions options;
  options.paths.sys = directory.path() / "sys";
  options.search_path = "/nonexistent";
  auto inventory = Inventory::create(options, runner);
  ASSERT_TRUE(inventory->devices()->empty());
  start(inventory);
  begin();
  const auto devices = inventory->devices();
  ASSERT_THAT(*devices, SizeIs(2));
  EXPECT_EQ((*devices)[0].uuid, "GPU-a");
  EXPECT_EQ((*devices)[0].index, "0");
  EXPECT_EQ((*devices)[0].sm_count, 108U);
  EXPECT_TRUE((*devices)[1].split);
  EXPECT_EQ((*devices)[1].position, 1U);
  ASSERT_THAT((*devices)[1].instances, SizeIs(1));
  EXPECT_EQ((*devices)[1].instances[0].index, "1");
  EXPECT_EQ((*devices)[1].instances[0].gpu_instance, 3U);
  scenario_.set("1.1.uuid", "MIG-2");
  scenario_.set("1.1.gi", "5");
  EXPECT_TRUE(eventually([&] { return inventory->devices()->at(1).instances.size() == 2; }));
  const Instance added = inventory->devices()->at(1).instances[1];
  EXPECT_EQ(added.index, "2");
  EXPECT_EQ(added.gpu_instance, 5U);
  EXPECT_EQ(added.number, 1U);
  EXPECT_TRUE(eventually([&] {
    const auto reading = monitor_->latest();
    return reading != nullptr && reading->devices.at(1).instances.size() == 2 &&
           reading->devices[1].instances[1].index == "2";
  }));
}

TEST_F(MonitorTest, PublishesTheProcesses) {
  begin();
  const auto list = processes_->all();
  ASSERT_THAT(*list, SizeIs(2));
  EXPECT_EQ((*list)[0].device_uuid, "GPU-a");
  EXPECT_EQ((*list)[0].gpu_instance, "");
  EXPECT_THAT((*list)[0].pids, ElementsAre(10, 11));
  EXPECT_EQ((*list)[1].index, "1");
  EXPECT_EQ((*list)[1].gpu_instance, "3");
  EXPECT_THAT((*list)[1].pids, ElementsAre(12));
}

TEST_F(MonitorTest, ServesTheLastReadingWhileTheLibraryHangsUntilItIsOld) {
  begin();
  ASSERT_TRUE(scenario_.hang("nvmlDeviceGetPowerUsage"));
  EXPECT_NE(monitor_->latest(), nullptr);
  clock_.advance(std::chrono::seconds(31));
  EXPECT_EQ(monitor_->latest(), nullptr);
  scenario_.erase("hang");
  EXPECT_TRUE(eventually([this] { return monitor_->latest() != nullptr; }));
}

TEST_F(MonitorTest, EndsWhileTheLibraryHangs) {
  begin();
  ASSERT_TRUE(scenario_.hang("nvmlDeviceGetPowerUsage"));
  const auto before = std::chrono::steady_clock::now();
  monitor_.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - before, kPatience);
}

TEST_F(MonitorTest, RestartsALibraryAfterAPause) {
  scenario_.set("nvmlInit_v2", "9");
  begin();
  EXPECT_EQ(monitor_->latest(), nullptr);
  EXPECT_THAT(monitor_->last_error(), ::testing::StartsWith("nvmlInit_v2: the driver is not"));
  scenario_.erase("nvmlInit_v2");
  clock_.advance(std::chrono::seconds(6));
  EXPECT_TRUE(eventually([this] { return monitor_->latest() != nullptr; }));
}

TEST_F(MonitorTest, ALostGpuKeepsItsNumberAndTheLibraryIsOpenedAgain) {
  begin();
  const auto lost = [this](bool expected) {
    return eventually([&, this] {
      const auto reading = monitor_->latest();
      return reading != nullptr && reading->devices.at(0).lost.empty() != expected &&
             reading->devices.at(1).lost.empty();
    });
  };
  scenario_.set("0.nvmlDeviceGetHandleByIndex_v2", "15");
  scenario_.set("0.nvmlDeviceGetPowerUsage", "15");
  EXPECT_TRUE(lost(true));
  clock_.advance(std::chrono::seconds(6));  // it is opened again
  EXPECT_TRUE(lost(true));
  const auto reading = monitor_->latest();
  EXPECT_EQ(reading->devices.at(0).uuid, "GPU-a");
  EXPECT_EQ(reading->devices.at(0).index, "0");
  EXPECT_EQ(reading->devices.at(1).instances.at(0).index, "1");
  scenario_.erase("0.nvmlDeviceGetHandleByIndex_v2");
  scenario_.erase("0.nvmlDeviceGetPowerUsage");
  clock_.advance(std::chrono::minutes(6));
  EXPECT_TRUE(lost(false));
}

TEST(AmdMonitor, AGpuWithoutAnyValueIsLost) {
  FakeScenario scenario(FakeScenario::Values{{"count", "2"},
                                             {"0.serial", "one"},
                                             {"0.pci", std::to_string(0xc1U << 8U)},
                                             {"0.power", "90000000"},
                                             {"0.energy", "1000000"},
                                             {"1.serial", "two"},
                                             {"1.pci", std::to_string(0xc6U << 8U)},
                                             {"1.power", "80000000"}});
  auto library = load_library(Vendor::kAmd, CEEMS_FAKE_ROCM_SMI);
  ASSERT_TRUE(library);
  std::vector<std::unique_ptr<GpuLibrary>> libraries;
  libraries.push_back(*std::move(library));
  testing::FakeClock clock;
  Monitor monitor({.interval = milliseconds(5), .first_wait = kPatience}, clock,
                  std::move(libraries), nullptr, std::make_shared<ProcessList>());
  monitor.start();
  monitor.wait_first(std::chrono::steady_clock::now() + kPatience);
  const auto lost = [&](bool expected) {
    return eventually([&] {
      const auto reading = monitor.latest();
      return reading != nullptr && reading->devices.at(0).lost.empty() != expected;
    });
  };
  EXPECT_TRUE(lost(false));
  scenario.set("0.rsmi_dev_power_get", "2");
  scenario.set("0.rsmi_dev_energy_count_get", "2");  // last, so that the last value is its counter
  EXPECT_TRUE(lost(true));
  EXPECT_TRUE(monitor.latest()->devices.at(0).energy_joules) << "it keeps its counter";
  EXPECT_EQ(monitor.latest()->devices.at(1).power_watts, 80);
  scenario.erase("0.rsmi_dev_power_get");
  EXPECT_TRUE(lost(false));
}

TEST_F(MonitorTest, CountersStayWhileTheLibraryFails) {
  scenario_.set("0.energy", "5000");
  begin();
  scenario_.set("nvmlDeviceGetPowerUsage", "1");  // uninitialised
  scenario_.set("nvmlInit_v2", "18");
  const auto all_lost = [this](const std::string& why) {
    return eventually([&, this] {
      const auto reading = monitor_->latest();
      return reading != nullptr && std::ranges::all_of(reading->devices, [&](const auto& device) {
               return device.lost.find(why) != std::string::npos;
             });
    });
  };
  EXPECT_TRUE(all_lost("NVML is not open (1)"));
  clock_.advance(std::chrono::seconds(6));
  EXPECT_TRUE(all_lost("different versions (18)"));
  EXPECT_EQ(monitor_->latest()->devices.at(0).energy_joules, 5);
  EXPECT_THAT(monitor_->latest()->error, ::testing::HasSubstr("(18)"));
  scenario_.erase("nvmlDeviceGetPowerUsage");
  scenario_.erase("nvmlInit_v2");
  clock_.advance(std::chrono::minutes(6));
  EXPECT_TRUE(eventually([this] {
    const auto reading = monitor_->latest();
    return reading != nullptr && reading->error.empty() && reading->devices.at(0).power_watts == 50;
  }));
}

}  // namespace
}  // namespace ceems::exporter::gpu
