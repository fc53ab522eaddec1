#include "exporter/gpu/inventory/lost.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/temp_dir.h"

namespace ceems::exporter::gpu {
namespace {

using ::testing::ElementsAre;

class LostTest : public ::testing::Test {
 protected:
  void on_bus(const std::string& address) {
    dir_.write("sys/bus/pci/devices/" + address + "/class", "0x030200\n");
    dir_.write("sys/bus/pci/devices/" + address + "/vendor", "0x10de\n");
  }
  void of_driver(const std::string& address, const std::string& uuid, int minor) {
    dir_.write("proc/driver/nvidia/gpus/" + address + "/information",
               "Model: \t\t NVIDIA H100\nGPU UUID: \t " + uuid + "\nBus Location: \t " + address +
                   "\nDevice Minor: \t " + std::to_string(minor) + "\n");
  }
  [[nodiscard]] host::Paths paths() const {
    host::Paths paths;
    paths.proc = dir_.path() / "proc";
    paths.sys = dir_.path() / "sys";
    return paths;
  }
  static DeviceState gpu(const std::string& uuid, const std::string& address) {
    DeviceState state;
    state.uuid = uuid;
    state.name = "NVIDIA H100";
    state.address = parse_pci_address(address);
    state.energy_joules = 7;
    state.power_watts = 70;
    state.xids = {{79, 1}};
    return state;
  }
  static DeviceState without_name(int number) {
    DeviceState state;
    state.uuid = "nvidia" + std::to_string(number);
    state.lost = "gone";
    return state;
  }
  static std::vector<std::string> uuids(const std::vector<DeviceState>& devices) {
    std::vector<std::string> list;
    for (const DeviceState& device : devices) {
      list.push_back(device.lost.empty() ? device.uuid : "-" + device.uuid);
    }
    return list;
  }

  testing::TempDir dir_;
};

TEST_F(LostTest, ANumberWithoutANameIsTheGpuThatNoOtherIs) {
  on_bus("0000:18:00.0");
  on_bus("0000:19:00.0");
  on_bus("0000:1a:00.0");
  std::vector<DeviceState> devices{gpu("a", "0000:18:00.0"), without_name(1),
                                   gpu("c", "0000:1a:00.0")};
  identify_lost(paths(), devices);
  EXPECT_THAT(uuids(devices), ElementsAre("a", "-nvidia1", "c"));
  EXPECT_EQ(to_string(devices[1].address.value_or(PciAddress{})), "0000:19:00.0");
}

TEST_F(LostTest, AddsWhatTheDriverKnowsAndTheLibraryDoesNotList) {
  of_driver("0000:18:00.0", "GPU-\?\?\?-\?", 3);
  of_driver("0000:19:00.0", "b", 2);
  of_driver("0000:1a:00.0", "c", 1);
  std::vector<DeviceState> devices{gpu("b", "0000:19:00.0")};
  identify_lost(paths(), devices);
  EXPECT_THAT(uuids(devices), ElementsAre("-0000:18:00.0", "b", "-c"));
  EXPECT_EQ(devices[0].driver_minor, 3U);
  EXPECT_EQ(devices[2].name, "NVIDIA H100");
  std::vector<Device> list(1);
  list[0].uuid = "b";
  list[0].address = parse_pci_address("0000:19:00.0");
  identify_lost(paths(), list);
  ASSERT_EQ(list.size(), 3U);
  EXPECT_TRUE(list[0].lost);
  EXPECT_FALSE(list[1].lost);
  EXPECT_EQ(list[2].path_name, "0000:1a:00.0");
}

TEST_F(LostTest, AGpuOnTheBusAloneIsNotMissed) {
  on_bus("0000:18:00.0");  // passed through to a virtual machine
  on_bus("0000:19:00.0");
  std::vector<DeviceState> devices{gpu("b", "0000:19:00.0")};
  identify_lost(paths(), devices);
  EXPECT_THAT(uuids(devices), ElementsAre("b"));
}

TEST_F(LostTest, RecallsEachAtItsPlaceWithItsCounters) {
  const std::vector<DeviceState> before{gpu("a", ""), gpu("b", ""), gpu("c", ""), gpu("d", "")};
  std::vector<DeviceState> now{gpu("a", ""), without_name(1), gpu("d", "")};
  recall(before, now);
  EXPECT_THAT(uuids(now), ElementsAre("a", "-b", "-c", "d"));
  EXPECT_EQ(now[1].lost, "gone");
  EXPECT_EQ(now[1].energy_joules, 7);
  EXPECT_FALSE(now[1].power_watts);
  EXPECT_THAT(now[2].xids, ElementsAre(::testing::Pair(79, 1)));
  std::vector<DeviceState> back{gpu("a", ""), gpu("b", ""), gpu("d", "")};
  recall(now, back);
  EXPECT_THAT(uuids(back), ElementsAre("a", "b", "-c", "d"));
}

TEST_F(LostTest, OneThatHasNoNameYetIsForgottenWhenItGetsOne) {
  const std::vector<DeviceState> before{gpu("a", ""), without_name(1)};
  std::vector<DeviceState> now{gpu("a", ""), gpu("b", "")};
  recall(before, now);
  EXPECT_THAT(uuids(now), ElementsAre("a", "b"));
}

}  // namespace
}  // namespace ceems::exporter::gpu
