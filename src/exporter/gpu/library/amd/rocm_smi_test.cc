#include "exporter/gpu/library/amd/rocm_smi.h"

#include <cstring>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exporter/gpu/library/fake_scenario.h"
#include "testing/temp_dir.h"

namespace ceems::exporter::gpu {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

/// The id that rsmi_dev_pci_id_get returns.
std::string rocm_pci_id(std::uint64_t bus,
                        std::uint64_t partition = 0,
                        std::uint64_t function = 0) {
  return std::to_string((partition << 28U) | (bus << 8U) | function);
}

FakeScenario::Values mi250() {
  return {{"count", "1"},
          {"0.pci", rocm_pci_id(0xc1)},
          {"0.serial", "PCB123"},
          {"0.name", "AMD Instinct MI250X"},
          {"0.power", "90000000"},
          {"0.power_cap", "560000000"},
          {"0.energy", "1000000"},
          {"0.busy", "60"},
          {"0.memory_busy", "20"},
          {"0.memory_used", "1024"},
          {"0.memory_total", "68702699520"},
          {"0.temperature0", "35000"},
          {"0.temperature1", "41500"},
          {"0.temperature2", "45000"},
          {"0.ecc1", "5"},
          {"0.ecc4", "2"},
          {"0.processes", "10:2048"},
          {"pids", "10 20"}};
}

std::unique_ptr<GpuLibrary> load() {
  auto library = load_library(Vendor::kAmd, CEEMS_FAKE_ROCM_SMI);
  EXPECT_TRUE(library) << library.error().message;
  return library ? *std::move(library) : nullptr;
}

std::vector<DeviceState> read(GpuLibrary& library) {
  auto devices = library.read(true);
  EXPECT_TRUE(devices) << devices.error().message;
  return devices ? *std::move(devices) : std::vector<DeviceState>{};
}

TEST(RocmSmiLibrary, ReadsADevice) {
  const FakeScenario scenario(mi250());
  const auto library = load();
  ASSERT_TRUE(library->start());
  const auto devices = read(*library);
  ASSERT_THAT(devices, SizeIs(1));
  const DeviceState& gpu = devices[0];
  EXPECT_EQ(gpu.vendor, Vendor::kAmd);
  EXPECT_EQ(gpu.uuid, "PCB123");
  EXPECT_EQ(gpu.name, "AMD Instinct MI250X");
  EXPECT_EQ(to_string(gpu.address.value_or(PciAddress{})), "0000:c1:00.0");
  EXPECT_EQ(gpu.power_watts, 90);
  EXPECT_EQ(gpu.power_limit_watts, 560);
  EXPECT_NEAR(gpu.energy_joules.value_or(0), 15.3, 1e-5);
  EXPECT_EQ(gpu.utilisation, 0.6);
  EXPECT_EQ(gpu.memory_utilisation, 0.2);
  EXPECT_EQ(gpu.memory_used_bytes, 1024);
  EXPECT_EQ(gpu.memory_total_bytes, 68702699520);
  EXPECT_EQ(gpu.temperature_celsius, 41.5) << "of the junction";
  EXPECT_EQ(gpu.memory_temperature_celsius, 45);
  EXPECT_EQ(gpu.ecc_corrected, 7);
  EXPECT_EQ(gpu.ecc_uncorrected, 2);
  EXPECT_FALSE(gpu.split);
  ASSERT_THAT(gpu.processes, SizeIs(1)) << "process 20 is on another";
  EXPECT_EQ(gpu.processes[0].pid, 10);
  EXPECT_EQ(gpu.processes[0].memory_bytes, 2048);
}

TEST(RocmSmiLibrary, UsesTheAveragePowerIfThereIsNoOther) {
  FakeScenario scenario(mi250());
  scenario.erase("0.power");
  scenario.set("0.average_power", "80000000");
  const auto library = load();
  ASSERT_TRUE(library->start());
  EXPECT_EQ(read(*library)[0].power_watts, 80);
}

TEST(RocmSmiLibrary, PartitionsOfOneBoardAreInstances) {
  const FakeScenario scenario({{"count", "3"},
                               {"0.pci", rocm_pci_id(0xc8)},
                               {"0.serial", "S1"},
                               {"0.power", "150000000"},
                               {"0.busy", "10"},
                               {"0.memory_total", "1000"},
                               {"1.pci", rocm_pci_id(0xc8, 1)},
                               {"1.serial", "S1"},
                               {"1.busy", "50"},
                               {"1.memory_total", "2000"},
                               {"1.processes", "10:7"},
                               {"2.pci", rocm_pci_id(0xd1)},
                               {"2.serial", "S1"},
                               {"pids", "10"}});
  const auto library = load();
  ASSERT_TRUE(library->start());
  const auto devices = read(*library);
  ASSERT_THAT(devices, SizeIs(2));
  EXPECT_TRUE(devices[0].split);
  EXPECT_EQ(devices[0].power_watts, 150);
  EXPECT_FALSE(devices[0].memory_total_bytes);
  ASSERT_THAT(devices[0].instances, SizeIs(2));
  EXPECT_EQ(devices[0].instances[0].gpu_instance, 0U);
  EXPECT_EQ(devices[0].instances[1].gpu_instance, 1U);
  EXPECT_EQ(devices[0].instances[1].utilisation, 0.5);
  EXPECT_EQ(devices[0].instances[1].memory_total_bytes, 2000);
  ASSERT_THAT(devices[0].processes, SizeIs(1));
  EXPECT_EQ(devices[0].processes[0].gpu_instance, 1U);
  EXPECT_EQ(devices[1].uuid, "0000:d1:00.0") << "its serial number is taken";
  EXPECT_THAT(devices[1].instances, IsEmpty());
}

TEST(RocmSmiLibrary, APartitionsUseIsItsOwnAndTheGpusIsTheirMean) {
  FakeScenario scenario({{"count", "2"},
                         {"0.pci", rocm_pci_id(0xc8)},
                         {"0.busy", "10"},
                         {"1.pci", rocm_pci_id(0xc8, 1)},
                         {"1.busy", "50"}});
  const auto library = load();
  ASSERT_TRUE(library->start());
  EXPECT_DOUBLE_EQ(read(*library)[0].utilisation.value_or(-1), 0.3);
  // The driver has one file for the whole GPU, which appears as that of the first partition.
  scenario.erase("1.busy");
  const DeviceState whole = read(*library)[0];
  EXPECT_EQ(whole.utilisation, 0.1);
  EXPECT_EQ(whole.instances[0].utilisation, std::nullopt);
  EXPECT_EQ(whole.instances[0].activity.sm_active, std::nullopt);
}

TEST(RocmSmiLibrary, ReadsClocksLinksAndTheUseOfPartitionsFromTheDriver) {
  const testing::TempDir dir;
  std::string table(1664, '\xff');
  const auto put = [&table](std::size_t place, auto value) {
    std::memcpy(table.data() + place, &value, sizeof(value));
  };
  put(0, std::uint16_t{1664});
  put(2, std::uint8_t{1});
  put(3, std::uint8_t{6});
  put(10, std::uint16_t{400});        // W
  put(264, std::uint16_t{2100});      // MHz
  put(128, std::uint64_t{5});         // KiB read
  put(306, std::uint16_t{2});         // partitions
  put(312, std::uint32_t{20});        // %
  put(312 + 168, std::uint32_t{40});  // %
  dir.write("sys/bus/pci/devices/0000:c8:00.0/gpu_metrics", table);
  const FakeScenario scenario({{"count", "2"},
                               {"0.pci", rocm_pci_id(0xc8)},
                               {"0.busy", "99"},
                               {"1.pci", rocm_pci_id(0xc8, 1)}});
  auto library = load_library(Vendor::kAmd, CEEMS_FAKE_ROCM_SMI, dir.path() / "sys");
  ASSERT_TRUE(library);
  ASSERT_TRUE((*library)->start());
  const DeviceState gpu = read(**library)[0];
  EXPECT_EQ(gpu.power_watts, 400);
  ASSERT_THAT(gpu.clocks_hertz, SizeIs(1));
  EXPECT_EQ(gpu.clocks_hertz[0].first, "graphics");
  EXPECT_EQ(gpu.clocks_hertz[0].second, 2.1e9);
  EXPECT_EQ(gpu.link.received_bytes, 5 * 1024);
  EXPECT_EQ(gpu.link.sent_bytes, std::nullopt);
  EXPECT_EQ(gpu.instances.at(0).utilisation, 0.2);
  EXPECT_EQ(gpu.instances.at(1).utilisation, 0.4);
  EXPECT_DOUBLE_EQ(gpu.utilisation.value_or(-1), 0.3);
}

TEST(RocmSmiLibrary, SurvivesGarbage) {
  FakeScenario scenario(mi250());
  scenario.set("0.serial", "!garbage");
  scenario.set("0.temperature1", "-9000000");
  scenario.set("0.temperature0", "9000000000");
  scenario.set("0.power", "18446744073709551615");
  scenario.set("0.energy", "18446744073709551615");
  scenario.set("pids", "4294967295 0");
  scenario.set("pid_count", "4294967295");
  const auto library = load();
  ASSERT_TRUE(library->start());
  const auto devices = read(*library);
  ASSERT_THAT(devices, SizeIs(1));
  EXPECT_FALSE(devices[0].power_watts);
  EXPECT_FALSE(devices[0].energy_joules);
  EXPECT_FALSE(devices[0].temperature_celsius);
  EXPECT_THAT(devices[0].processes, IsEmpty());
}

TEST(RocmSmiLibrary, ReportsWhyItDoesNotStart) {
  FakeScenario scenario(FakeScenario::Values{{"rsmi_init", "8"}});
  const auto library = load();
  const auto failed = library->start();
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message, "rsmi_init returned 8");
  scenario.erase("rsmi_init");
  scenario.set("count", "2147483648");
  EXPECT_FALSE(library->start());
  EXPECT_FALSE(library->read(true));
}

}  // namespace
}  // namespace ceems::exporter::gpu
