#include "exporter/gpu/claim/shares.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ceems::exporter::gpu {
namespace {

/// GPUs 0 and 1 are whole; the third one has instances 2 and 3.
std::vector<Device> shared_devices() {
  std::vector<Device> devices(3);
  for (std::size_t i = 0; i < devices.size(); ++i) {
    devices[i].position = i;
    devices[i].index = std::to_string(i);
    devices[i].uuid = "GPU-" + std::to_string(i);
    devices[i].address = PciAddress{0, static_cast<std::uint16_t>(i + 1), 0, 0};
  }
  devices[2].index.clear();
  devices[2].split = true;
  devices[2].instances = {{.index = "2", .uuid = "MIG-2", .gpu_instance = 3},
                          {.index = "3", .uuid = "MIG-3", .gpu_instance = 5}};
  return devices;
}

Claim job(const std::string& uuid,
          std::vector<std::string> ordinals,
          std::uint64_t shares = 0,
          Evidence evidence = Evidence::kEnvironment) {
  return {.uuid = uuid,
          .cgrouphostname = {},
          .evidence = evidence,
          .ordinals = std::move(ordinals),
          .shares = shares};
}

AvailableShares none() {
  return {};
}

AvailableShares of(std::uint64_t gpu0, std::uint64_t gpu1, std::uint64_t instance2) {
  return {.sharing = true, .devices = {{gpu0, {}}, {gpu1, {}}, {0, {instance2, 0}}}};
}

/// "claim:shares" for each holder.
std::string holders(const Holders& holders) {
  std::string text;
  for (const Holder& holder : holders.units) {
    text += (text.empty() ? "" : " ") + std::to_string(holder.claim) + ":" +
            std::to_string(holder.shares);
  }
  return text;
}

TEST(Attach, FindsGpusAndInstancesByIndex) {
  const auto found = attach(shared_devices(), {job("a", {"0", "2"}), job("b", {"0"})}, none());
  EXPECT_EQ(holders(found[0].device), "0:0 1:0");
  EXPECT_EQ(holders(found[1].device), "");
  EXPECT_EQ(holders(found[2].device), "");
  EXPECT_EQ(holders(found[2].instances[0]), "0:0");
  EXPECT_EQ(found[0].device.flag(found[0].device.units[0]), 1);
  EXPECT_EQ(found[0].device.part(found[0].device.units[0]), 0.5);
}

TEST(Attach, NeverFindsSplitGpusByAnEmptyIndex) {
  const auto found = attach(shared_devices(), {job("a", {"", " ", "9", "x"})}, none());
  EXPECT_EQ(holders(found[2].device), "");
}

TEST(Attach, DistributesSharesToTheJobsWithFewestGpusFirst) {
  // Job 0 wants 1500 on both GPUs; job 1 gets its 250 first.
  const auto found =
      attach(shared_devices(), {job("b", {"0", "1"}, 1500), job("a", {"1"}, 250)}, of(0, 1000, 0));
  EXPECT_EQ(holders(found[0].device), "0:0");
  EXPECT_EQ(holders(found[1].device), "0:750 1:250");
  EXPECT_EQ(found[0].device.flag(found[0].device.units[0]), 1);
  EXPECT_EQ(found[1].device.flag(found[1].device.units[0]), 0.75);
  EXPECT_EQ(found[1].device.flag(found[1].device.units[1]), 0.25);
}

TEST(Attach, SharesOfAJobContinueOnItsNextGpu) {
  const auto found = attach(shared_devices(), {job("a", {"0", "1", "2"}, 20)}, of(8, 8, 8));
  EXPECT_EQ(holders(found[0].device), "0:8");
  EXPECT_EQ(holders(found[1].device), "0:8");
  EXPECT_EQ(holders(found[2].instances[0]), "0:4");
}

TEST(Attach, CountsNamesWhereUnitsNameDevices) {
  const Claim vm_a{
      .uuid = "a", .cgrouphostname = {}, .addresses = {"0000:01:00.0"}, .mdevs = {"m1", "m2"}};
  const Claim vm_b{.uuid = "b", .cgrouphostname = {}, .mdevs = {"m3", "m4"}};
  auto devices = shared_devices();
  devices[1].mdevs = {"m1", "m2", "m3"};
  devices[2].instances[1].mdevs = {"m4"};
  const auto found = attach(devices, {vm_a, vm_b}, none());
  EXPECT_EQ(holders(found[0].device), "0:1");
  EXPECT_EQ(holders(found[1].device), "0:2 1:1");
  EXPECT_DOUBLE_EQ(found[1].device.flag(found[1].device.units[1]), 1.0 / 3);
  EXPECT_EQ(holders(found[2].instances[1]), "1:1");
}

TEST(Attach, PassesASplitGpuThroughAsOneDevice) {
  auto devices = shared_devices();
  devices.push_back(devices[2]);
  devices[3].address = PciAddress{0, 9, 0, 0};
  const Claim vm{.uuid = "a", .cgrouphostname = {}, .addresses = {"0:9:0.0", "rubbish"}};
  const auto found = attach(devices, {vm}, none());
  EXPECT_EQ(holders(found[2].device), "");
  EXPECT_EQ(holders(found[3].device), "0:1");
}

TEST(Attach, CountsReplicasOfDeviceIds) {
  const Claim pod_a{.uuid = "a", .cgrouphostname = {}, .device_ids = {"mig-2", "mig-2", "mig-2"}};
  const Claim pod_b{.uuid = "b", .cgrouphostname = {}, .device_ids = {"mig-2", "gpu-1"}};
  const auto found = attach(shared_devices(), {pod_a, pod_b}, none());
  EXPECT_EQ(holders(found[2].instances[0]), "0:3 1:1");
  EXPECT_EQ(found[2].instances[0].part(found[2].instances[0].units[0]), 0.75);
  EXPECT_EQ(holders(found[1].device), "1:1");
}

TEST(Attach, AssignsAPartitionedAmdGpuWithItsFirstPartition) {
  Device amd;
  amd.vendor = Vendor::kAmd;
  amd.split = true;
  amd.path_name = "0000:c8:00.0";
  amd.instances = {{.index = "1", .uuid = "0000:c8:00.0"}, {.index = "2", .uuid = "amdgpu_xcp.7"}};
  const Claim pod{.uuid = "a", .cgrouphostname = {}, .device_ids = {"0000:c8:00.0"}};
  const auto found = attach({amd}, {pod}, none());
  EXPECT_EQ(holders(found[0].device), "0:1");
  EXPECT_EQ(holders(found[0].instances[0]), "0:1");
  EXPECT_EQ(holders(found[0].instances[1]), "");
}

TEST(Attach, EnvironmentGetsNothingThatAnotherHoldsWithBetterEvidence) {
  const auto found = attach(
      shared_devices(),
      {job("spoofer", {"0", "1", "2"}), job("owner", {"0", "2"}, 0, Evidence::kRootFile)}, none());
  EXPECT_EQ(holders(found[0].device), "1:0");
  EXPECT_EQ(holders(found[1].device), "0:0");
  EXPECT_EQ(holders(found[2].instances[0]), "1:0");
}

TEST(Attach, LetsHoldersOfAnyEvidenceShareWhatIsShared) {
  const auto found = attach(
      shared_devices(), {job("a", {"1"}, 2), job("b", {"1"}, 6, Evidence::kRootFile)}, of(0, 8, 0));
  EXPECT_EQ(found[1].device.units.size(), 2U);
  EXPECT_EQ(found[1].device.shares, 8U);
}

TEST(Attach, EnvironmentGetsOnlyTheSharesThatTheOthersLeave) {
  // The claim by environment names one GPU, so by the number of GPUs alone it would be served
  // first.
  const auto greedy =
      attach(shared_devices(),
             {job("spoofer", {"1"}, 1000), job("owner", {"0", "1"}, 6, Evidence::kDeviceGroup)},
             of(0, 8, 0));
  EXPECT_EQ(holders(greedy[1].device), "1:6 0:2");
  const auto full = attach(
      shared_devices(), {job("spoofer", {"1"}, 1000), job("owner", {"1"}, 8, Evidence::kRootFile)},
      of(0, 8, 0));
  EXPECT_EQ(holders(full[1].device), "1:8") << "nothing is left";
  const auto without_shares =
      attach(shared_devices(),
             {job("spoofer", {"2"}), job("owner", {"2"}, 1, Evidence::kProcessList)}, of(0, 0, 8));
  EXPECT_EQ(holders(without_shares[2].instances[0]), "1:1") << "a claim without a number of shares";
}

}  // namespace
}  // namespace ceems::exporter::gpu
