#include "exporter/gpu/device.h"

#include <gtest/gtest.h>

#include "exporter/gpu/claim/slurm_claims.h"
#include "exporter/gpu/inventory/device_names.h"
#include "exporter/gpu/inventory/sysfs.h"

namespace ceems::exporter::gpu {
namespace {

TEST(PciAddress, IsComparedByItsNumbers) {
  EXPECT_EQ(parse_pci_address("00000000:AD:00.0"), (PciAddress{0, 0xad, 0, 0}));
  EXPECT_EQ(parse_pci_address("0:ad:0.0"), parse_pci_address("0000:AD:00.0"));
  EXPECT_EQ(parse_pci_address("GPU 00000000:10:1f.7"), (PciAddress{0, 0x10, 0x1f, 7}));
  EXPECT_EQ(to_string(PciAddress{0x10001 & 0xffff, 0x3b, 0, 1}), "0001:3b:00.1");
}

TEST(PciAddress, IsFoundAfterTextThatLooksSimilar) {
  EXPECT_EQ(parse_pci_address("ab:cd 1:2:3.4"), (PciAddress{1, 2, 3, 4}));
  EXPECT_EQ(parse_pci_address("1:2:3:4.5"), (PciAddress{2, 3, 4, 5}));
}

TEST(PciAddress, RefusesOtherTexts) {
  for (const char* text : {"", "0000", "0000:00:00", "0000:00:00.", ":00:00.0", "N/A",
                           "10000:0:0.0", "0:10000:0.0", "0:0:10000.0", "0:0:0.10000"}) {
    EXPECT_EQ(parse_pci_address(text), std::nullopt) << text;
  }
}

TEST(SmTable, FindsTheModelAmongTheWordsOfTheName) {
  EXPECT_EQ(sm_count_of("NVIDIA A100-PCIE-40GB"), 108U);
  EXPECT_EQ(sm_count_of("NVIDIA H100 80GB HBM3"), 132U);
  EXPECT_EQ(sm_count_of("Tesla V100-SXM2-32GB"), 80U);
  EXPECT_EQ(sm_count_of("NVIDIA A1000"), 0U);
  EXPECT_EQ(sm_count_of(""), 0U);
}

TEST(PciGpus, AreDisplaysAndAcceleratorsOfKnownVendors) {
  EXPECT_EQ(gpu_vendor("0x030200\n", "0x10de\n"), Vendor::kNvidia);
  EXPECT_EQ(gpu_vendor("0x120000\n", "0x1002\n"), Vendor::kAmd);
  EXPECT_EQ(gpu_vendor("0x030000\n", "32902\n"), Vendor::kIntel);
  EXPECT_EQ(gpu_vendor("0x020000\n", "0x10de\n"), std::nullopt);
  EXPECT_EQ(gpu_vendor("0x030000\n", "0x1a03\n"), std::nullopt);
  EXPECT_EQ(gpu_vendor("0x030000\n", "rubbish"), std::nullopt);
}

std::vector<Device> two_devices() {
  Device whole;
  whole.position = 0;
  whole.index = "0";
  Device split;
  split.position = 1;
  split.split = true;
  split.instances = {{.index = "1", .gpu_instance = 3}, {.index = "2", .gpu_instance = 5}};
  return {whole, split};
}

TEST(OrderMap, SetsTheIndexesOfSlurm) {
  auto devices = two_devices();
  apply_order_map(parse_order_map(" 7 : 0 ,0:1.5, 1:1.3"), devices);
  EXPECT_EQ(devices[0].index, "7");
  EXPECT_EQ(devices[1].instances[0].index, "1");
  EXPECT_EQ(devices[1].instances[1].index, "0");
}

TEST(OrderMap, TreatsATargetWithTwoDotsAsTheDevice) {
  auto devices = two_devices();
  apply_order_map(parse_order_map("4:1.3.0"), devices);
  EXPECT_EQ(devices[1].index, "4");
  EXPECT_EQ(devices[1].instances[0].index, "1");
}

TEST(OrderMap, SkipsInvalidEntriesAndUnknownTargets) {
  EXPECT_TRUE(parse_order_map("").empty());
  EXPECT_TRUE(parse_order_map("0,1;2,,:,3:,:4,5:x,6:1.y,7:-1").empty());
  auto devices = two_devices();
  apply_order_map(parse_order_map("9:12,8:1.9"), devices);
  EXPECT_EQ(devices[0].index, "0");
  EXPECT_EQ(devices[1].instances[1].index, "2");
}

}  // namespace
}  // namespace ceems::exporter::gpu
