#include "exporter/gpu/claim/gres_conf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ceems::exporter::gpu {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// GPUs 0 and 1 are whole, GPU 2 has the MIG devices 3/0 and 5/0.
std::vector<Device> machine() {
  std::vector<Device> devices(3);
  for (std::size_t i = 0; i < devices.size(); ++i) {
    devices[i].position = i;
    devices[i].driver_minor = i;
    devices[i].index = std::to_string(i);
  }
  devices[2].index.clear();
  devices[2].split = true;
  devices[2].instances = {{.index = "2", .gpu_instance = 3}, {.index = "3", .gpu_instance = 5}};
  return devices;
}

const std::vector<MigMinor> kMinors = {{.capability = 21, .gpu = 2, .gpu_instance = 3},
                                       {.capability = 30, .gpu = 2, .gpu_instance = 5}};

std::vector<std::uint64_t> shares(const std::string& conf,
                                  const std::vector<Device>& devices,
                                  const std::vector<std::string>& names = {},
                                  bool every_file = false) {
  const auto found = available_shares(parse_gres_conf(conf), kMinors, names, devices, every_file);
  std::vector<std::uint64_t> all;
  for (const auto& device : found.devices) {
    all.push_back(device.device);
    all.insert(all.end(), device.instances.begin(), device.instances.end());
  }
  return all;
}

TEST(GresConf, CountsOnDevicesAndInstances) {
  EXPECT_THAT(shares("Name=shard Count=8 File=/dev/nvidia1", machine()),
              ElementsAre(0, 8, 0, 0, 0));
  EXPECT_THAT(shares("name=MPS\tCOUNT=100  file=/dev/nvidia[0-1]", machine()),
              ElementsAre(100, 100, 0, 0, 0));
  EXPECT_THAT(shares("Name=shard Count=16 File=/dev/nvidia-caps/nvidia-cap[21,30]", machine()),
              ElementsAre(0, 0, 0, 16, 16));
  EXPECT_THAT(shares("Name=shard Count=4 MultipleFiles=/dev/nvidia2,/dev/nvidia-caps/nvidia-cap30",
                     machine()),
              ElementsAre(0, 0, 0, 0, 4));
}

TEST(GresConf, CountsOnTheLastOfSeveralFilesUnlessAllAreRequested) {
  const std::string line = "Name=mps Count=7 MultipleFiles=/dev/nvidia0,/dev/nvidia1";
  EXPECT_THAT(shares(line, machine()), ElementsAre(0, 7, 0, 0, 0));
  EXPECT_THAT(shares(line, machine(), {}, true), ElementsAre(7, 7, 0, 0, 0));
}

TEST(GresConf, CountsEverywhereWithoutFilesAndStopsThere) {
  EXPECT_THAT(shares("Name=shard Count=6\nName=shard Count=9 File=/dev/nvidia0", machine()),
              ElementsAre(6, 6, 0, 6, 6));
}

TEST(GresConf, FindsAmdGpusByTheirRenderNode) {
  std::vector<Device> devices(2);
  for (auto& device : devices) {
    device.vendor = Vendor::kAmd;
  }
  devices[0].render_minor = 128;
  devices[1].split = true;
  devices[1].instances = {{.index = "1", .render_minor = 129}, {.index = "2", .render_minor = 130}};
  EXPECT_THAT(shares("Name=shard Count=3 File=/dev/dri/renderD[128,130]", devices),
              ElementsAre(3, 0, 0, 3));
}

TEST(GresConf, UsesTheDriversNumberIfItDiffersFromThePosition) {
  auto devices = machine();
  devices[0].driver_minor = 1;
  devices[1].driver_minor = 0;
  EXPECT_THAT(shares("Name=shard Count=8 File=/dev/nvidia1", devices), ElementsAre(8, 0, 0, 0, 0));
  devices[0].driver_minor.reset();
  devices[1].driver_minor.reset();
  EXPECT_THAT(shares("Name=shard Count=8 File=/dev/nvidia1", devices), ElementsAre(0, 8, 0, 0, 0));
}

TEST(GresConf, HonoursNodeNames) {
  const std::string line = "NodeName=Gpu[01-03],login Name=shard Count=5 File=/dev/nvidia0";
  EXPECT_THAT(shares(line, machine(), {"gpu02"}), ElementsAre(5, 0, 0, 0, 0));
  EXPECT_THAT(shares(line, machine(), {"gpu2"}), ElementsAre(0, 0, 0, 0, 0));
  EXPECT_THAT(shares(line, machine(), {"x", "login"}), ElementsAre(5, 0, 0, 0, 0));
  EXPECT_FALSE(available_shares(parse_gres_conf(line), {}, {"other"}, machine()).sharing);
}

TEST(GresConf, LeavesOutCommentsAndOtherResources) {
  EXPECT_THAT(parse_gres_conf("# Name=shard Count=8\n"
                              "Name=gpu Type=a100 File=/dev/nvidia0\n"
                              "NodeName=shard1 Name=gpu\n"
                              "AutoDetect=nvml\n\n= == =x\n"),
              IsEmpty());
  const auto lines = parse_gres_conf("Name=shard Count=8K # Count=2\n");
  ASSERT_THAT(lines, SizeIs(1));
  EXPECT_EQ(lines[0].count, 0U);
  EXPECT_TRUE(available_shares(lines, {}, {}, machine()).sharing);
}

TEST(GresConf, IgnoresUnknownFiles) {
  EXPECT_THAT(shares("Name=shard Count=8 File=/dev/nvidia-caps/nvidia-cap99", machine()),
              ElementsAre(0, 0, 0, 0, 0));
  EXPECT_THAT(shares("Name=shard Count=8 File=/dev/nvidiactl", machine()),
              ElementsAre(0, 0, 0, 0, 0));
}

TEST(Nodes, AreExpanded) {
  EXPECT_THAT(expand_nodes("A[1-2,08-10]x,B"),
              ElementsAre("a1x", "a2x", "a08x", "a09x", "a10x", "b"));
  EXPECT_THAT(expand_nodes("n[1-2,x],m]["), ElementsAre("n1", "n2", "n[1-2,x]", "m]["));
  EXPECT_THAT(expand_nodes("n[0-9999999999]"), ElementsAre("n[0-9999999999]"));
  EXPECT_THAT(expand_nodes("n[1-4000000000]"), SizeIs(65536));
  EXPECT_THAT(expand_nodes(""), IsEmpty());
}

TEST(Numbers, AreExpanded) {
  EXPECT_THAT(expand_numbers("0-2,7"), ElementsAre(0, 1, 2, 7));
  EXPECT_THAT(expand_numbers("0-2,x"), IsEmpty());
  EXPECT_THAT(expand_numbers("2-0"), IsEmpty());
  EXPECT_THAT(expand_numbers("0-4000000000"), SizeIs(4096));
  EXPECT_THAT(expand_numbers("18446744073709551615"), IsEmpty());
}

TEST(MigMinors, AreReadFromTheirPaths) {
  const auto minors = parse_mig_minors(
      "config 1\nmonitor 2\ngpu0/gi2/access 21\ngpu1/gi3/ci4/access 99\ngpu1/gi3/access x\n");
  ASSERT_THAT(minors, SizeIs(2));
  EXPECT_EQ(minors[0].capability, 21U);
  EXPECT_EQ(minors[0].gpu, 0U);
  EXPECT_EQ(minors[0].gpu_instance, 2U);
  EXPECT_EQ(minors[0].compute_instance, 0U);
  EXPECT_EQ(minors[1].gpu, 1U);
  EXPECT_EQ(minors[1].compute_instance, 4U);
}

}  // namespace
}  // namespace ceems::exporter::gpu
