#include "exporter/gpu/library/amd/amd_smi_library.h"

#include <cstring>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exporter/gpu/library/fake_scenario.h"
#include "testing/temp_dir.h"

namespace ceems::exporter::gpu {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::string pci_id(std::uint64_t bus, std::uint64_t partition = 0) {
  return std::to_string((partition << 28U) | (bus << 8U));
}

class AmdSmiLibrary : public ::testing::Test {
 protected:
  std::unique_ptr<GpuLibrary> start() {
    auto library = load_library(Vendor::kAmd, CEEMS_FAKE_AMD_SMI, dir_.path() / "sys");
    EXPECT_TRUE(library) << library.error().message;
    if (!library) {
      return nullptr;
    }
    const auto started = (*library)->start();
    EXPECT_TRUE(started) << started.error().message;
    return *std::move(library);
  }
  void file(const std::string& bus, const std::string& name, const std::string& text) const {
    dir_.write("sys/bus/pci/devices/0000:" + bus + ":00.0/" + name, text);
  }

  testing::TempDir dir_;
};

TEST_F(AmdSmiLibrary, ReadsADevice) {
  const FakeScenario scenario({{"count", "2"},
                               {"0.pci", pci_id(0xc1)},
                               {"0.name", "AMD Instinct MI210"},
                               {"0.busy", "60"},
                               {"0.memory_busy", "20"},
                               {"0.energy", "1000000"},
                               {"0.memory_used", "1024"},
                               {"0.memory_total", "4096"},
                               {"0.temperature1", "45"},
                               {"0.temperature2", "51000"},
                               {"0.ecc", "3"},
                               {"1.pci", pci_id(0xc6)}});
  file("c1", "serial_number", "PCB123\n");
  file("c6", "unique_id", "5f3a\n");
  std::string table(120, '\xff');
  const std::uint16_t size = 120;
  const std::uint16_t watts = 93;
  std::memcpy(table.data(), &size, sizeof(size));
  table[2] = 1;
  table[3] = 3;
  std::memcpy(table.data() + 22, &watts, sizeof(watts));
  file("c1", "gpu_metrics", table);
  const auto library = start();
  const auto devices = library->read(true);
  ASSERT_TRUE(devices);
  ASSERT_THAT(*devices, SizeIs(2));
  const DeviceState& gpu = devices->at(0);
  EXPECT_EQ(gpu.vendor, Vendor::kAmd);
  EXPECT_EQ(gpu.uuid, "PCB123");
  EXPECT_EQ(gpu.name, "AMD Instinct MI210");
  EXPECT_EQ(gpu.utilisation, 0.6);
  EXPECT_EQ(gpu.memory_utilisation, 0.2);
  EXPECT_EQ(gpu.power_watts, 93);
  EXPECT_NEAR(gpu.energy_joules.value_or(0), 15.3, 1e-4);
  EXPECT_EQ(gpu.memory_used_bytes, 1024);
  EXPECT_EQ(gpu.memory_total_bytes, 4096);
  EXPECT_EQ(gpu.temperature_celsius, 45);
  EXPECT_EQ(gpu.memory_temperature_celsius, 51) << "early releases return thousandths";
  EXPECT_EQ(gpu.ecc_corrected, 3);
  EXPECT_FALSE(gpu.split);
  EXPECT_EQ(devices->at(1).uuid, "0x5f3a");
  EXPECT_EQ(devices->at(1).utilisation, std::nullopt);
}

TEST_F(AmdSmiLibrary, PartitionsOfOneAddressAreInstances) {
  const FakeScenario scenario({{"count", "3"},
                               {"0.pci", pci_id(0xc8)},
                               {"0.busy", "10"},
                               {"1.pci", pci_id(0xc8, 1)},
                               {"1.busy", "50"},
                               {"1.memory_total", "2000"},
                               {"2.pci", pci_id(0xd1)}});
  const auto library = start();
  const auto devices = library->read(true);
  ASSERT_TRUE(devices);
  ASSERT_THAT(*devices, SizeIs(2));
  EXPECT_TRUE(devices->at(0).split);
  EXPECT_EQ(devices->at(0).uuid, "0000:c8:00.0");
  ASSERT_THAT(devices->at(0).instances, SizeIs(2));
  EXPECT_EQ(devices->at(0).instances[1].gpu_instance, 1U);
  EXPECT_EQ(devices->at(0).instances[1].utilisation, 0.5);
  EXPECT_EQ(devices->at(0).instances[1].memory_total_bytes, 2000);
  EXPECT_DOUBLE_EQ(devices->at(0).utilisation.value_or(-1), 0.3);
  EXPECT_THAT(devices->at(1).instances, IsEmpty());
}

TEST_F(AmdSmiLibrary, ReportsWhyItDoesNotStart) {
  FakeScenario scenario(FakeScenario::Values{{"amdsmi_init", "14"}});
  auto library = load_library(Vendor::kAmd, CEEMS_FAKE_AMD_SMI, dir_.path());
  ASSERT_TRUE(library);
  const auto failed = (*library)->start();
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().message, HasSubstr("amdsmi_init returned 14"));
  EXPECT_FALSE((*library)->read(true));
  scenario.erase("amdsmi_init");
  scenario.set("amdsmi_get_socket_handles", "1");
  EXPECT_FALSE((*library)->start());
}

}  // namespace
}  // namespace ceems::exporter::gpu
