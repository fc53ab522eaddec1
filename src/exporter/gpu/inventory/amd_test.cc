#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exporter/gpu/inventory/sysfs.h"
#include "exporter/gpu/inventory/vendor_tools.h"
#include "testing/temp_dir.h"

namespace ceems::exporter::gpu {
namespace {

std::string entry(const std::string& gpu,
                  const std::string& serial,
                  const std::string& bdf,
                  const std::string& mode,
                  const std::string& partition) {
  return R"({"gpu":)" + gpu + R"(,"asic":{"num_compute_units":304},"bus":{"bdf":")" + bdf +
         R"("},"board":{"product_serial":")" + serial +
         R"(","product_name":"MI300"},"partition":{"compute_partition":")" + mode +
         R"(","partition_id":)" + partition + "}}";
}

TEST(AmdSmi, DistinguishesWholeGpusFromPartitions) {
  const auto devices = parse_amd_smi("[" + entry("2", "S2", "0000:C8:00.0", "CPX", "1") + "," +
                                     entry("0", "S1", "0000:C5:00.0", "SPX", "0") + "," +
                                     entry("1", "S2", "0000:C8:00.0", "CPX", "0") + "]")
                           .value();
  ASSERT_EQ(devices.size(), 2U);
  EXPECT_EQ(devices[0].index, "0");
  EXPECT_EQ(devices[0].uuid, "S1");
  EXPECT_EQ(devices[0].path_name, "0000:c5:00.0");
  EXPECT_FALSE(devices[0].split);
  EXPECT_EQ(devices[1].index, "");
  EXPECT_EQ(devices[1].position, 1U);
  ASSERT_EQ(devices[1].instances.size(), 2U);
  EXPECT_EQ(devices[1].instances[0].index, "1");
  EXPECT_EQ(devices[1].instances[1].index, "2");
  EXPECT_EQ(devices[1].instances[1].gpu_instance, 1U);
}

TEST(AmdSmi, AcceptsAWrappedListAndNumbersAsText) {
  const auto devices =
      parse_amd_smi("WARNING: not in group render\n{\"other\":[1],\"gpu_data\":[" +
                    entry("\"3\"", "S1", "0000:05:00.0", "N/A", "\"N/A\"") + "]}\nbye\n")
          .value();
  ASSERT_EQ(devices.size(), 1U);
  EXPECT_EQ(devices[0].index, "3");
  EXPECT_TRUE(devices[0].instances.empty());
}

TEST(AmdSmi, AcceptsTheNewNameOfThePartitionAndCountsThoseWithoutId) {
  const std::string part = R"(,"bus":{"bdf":"0:5:0.0"},"board":{"product_serial":"S"},)"
                           R"("partition":{"accelerator_partition":"DPX","partition_id":"N/A"}})";
  const auto devices = parse_amd_smi(R"([{"gpu":0)" + part + R"(,{"gpu":1)" + part + "]").value();
  ASSERT_EQ(devices.size(), 1U);
  ASSERT_EQ(devices[0].instances.size(), 2U);
  EXPECT_EQ(devices[0].instances[1].number, 1U);
}

TEST(AmdSmi, DistinguishesGpusWithoutSerialByTheirAddress) {
  const auto devices = parse_amd_smi("[" + entry("0", "N/A", "0000:05:00.0", "SPX", "0") + "," +
                                     entry("1", "N/A", "0000:06:00.0", "SPX", "0") + "," +
                                     entry("2", "N/A", "0000:07:00.0", "CPX", "0") + "," +
                                     entry("3", "N/A", "0000:07:00.1", "CPX", "1") + "]")
                           .value();
  ASSERT_EQ(devices.size(), 3U);
  EXPECT_EQ(devices[1].uuid, "0000:06:00.0");
  EXPECT_EQ(devices[2].instances.size(), 2U);
}

TEST(AmdSmi, KeepsBothGpusOfABoard) {
  const auto devices = parse_amd_smi("[" + entry("0", "S", "0000:05:00.0", "N/A", "0") + "," +
                                     entry("1", "S", "0000:06:00.0", "N/A", "0") + "]")
                           .value();
  ASSERT_EQ(devices.size(), 2U);
  EXPECT_EQ(devices[1].index, "1");
  EXPECT_EQ(devices[1].uuid, "S");
}

TEST(AmdSmi, RefusesOtherTexts) {
  for (const std::string& text :
       {std::string(), std::string("no JSON"), std::string("{}"), std::string("[1]"),
        std::string(R"([{"gpu":"N/A"}])"), std::string(R"([{"gpu":-1}])"), std::string("[{]"),
        "[0" + std::string(600'000, ',') + "]", std::string(100'000, '['),
        std::string(50'000, '[') + std::string(50'000, ']')}) {
    const auto devices = parse_amd_smi(text);
    ASSERT_FALSE(devices) << text.substr(0, 40);
    EXPECT_EQ(devices.error().code, ErrorCode::kParse);
  }
}

TEST(RocmSmi, SortsCardsByTheirNumberAndCountsPartitions) {
  const auto card = [](const std::string& serial, const std::string& bus, const std::string& mode) {
    return R"({"Serial Number":")" + serial + R"(","PCI Bus":")" + bus +
           R"(","Compute Partition":")" + mode + "\"}";
  };
  const auto devices =
      parse_rocm_smi(R"({"system":{"x":1},"card10":)" + card("S3", "0000:DD:00.0", "spx") +
                     R"(,"card2":)" + card("S2", "0000:C8:00.0", "CPX") + R"(,"card4":)" +
                     card("S2", "0000:C8:00.0", "CPX") + R"(,"cardx":{},"card5":7})")
          .value();
  ASSERT_EQ(devices.size(), 2U);
  EXPECT_EQ(devices[0].uuid, "S2");
  ASSERT_EQ(devices[0].instances.size(), 2U);
  EXPECT_EQ(devices[0].instances[0].index, "0");
  EXPECT_EQ(devices[0].instances[1].gpu_instance, 1U);
  EXPECT_EQ(devices[1].index, "2");  // by position, not by number
}

TEST(RocmSmi, AcceptsAListOfObjects) {
  EXPECT_EQ(parse_rocm_smi(R"([{"card0":{"Serial Number":"S"}},{"card1":{}}])").value().size(), 2U);
  EXPECT_FALSE(parse_rocm_smi("[]"));
  EXPECT_FALSE(parse_rocm_smi(R"({"system":{}})"));
  EXPECT_FALSE(parse_rocm_smi("ERROR: no GPU"));
}

std::string properties(int render, const std::string& id, int simds, int per_cu) {
  return "cpu_cores_count 0\nsimd_count " + std::to_string(simds) + "\nsimd_per_cu " +
         std::to_string(per_cu) + "\ndrm_render_minor " + std::to_string(render) + "\nunique_id " +
         id + "\n";
}

TEST(Kfd, ReadsComputeUnits) {
  const auto node = parse_kfd_properties(properties(128, "11735340001112222301", 1216, 4)).value();
  EXPECT_EQ(node.render_minor, 128U);
  EXPECT_EQ(node.unique_id, 11735340001112222301U);
  EXPECT_EQ(node.compute_units, 304U);
}

TEST(Kfd, SkipsProcessorsAndInvalidNodes) {
  EXPECT_EQ(parse_kfd_properties(""), std::nullopt);
  EXPECT_EQ(parse_kfd_properties(properties(0, "1", 0, 0)), std::nullopt);
  EXPECT_EQ(parse_kfd_properties(properties(128, "1", 8, 0)), std::nullopt);
  EXPECT_EQ(parse_kfd_properties(properties(128, "x", 8, 4)), std::nullopt);
}

class AmdSysfs : public ::testing::Test {
 protected:
  void node(int number, int render, const std::string& id, int simds) const {
    dir_.write("sys/class/kfd/kfd/topology/nodes/" + std::to_string(number) + "/properties",
               properties(render, id, simds, 4));
  }
  void device(const std::string& path, int render) const {
    dir_.write("sys/" + path + "/drm/renderD" + std::to_string(render) + "/dev", "");
  }
  [[nodiscard]] host::Paths paths() const {
    return {dir_.path() / "proc", dir_.path() / "sys", dir_.path() / "cgroup"};
  }

  testing::TempDir dir_;
  std::string pci_ = "module/amdgpu/drivers/pci:amdgpu/";
};

TEST_F(AmdSysfs, SetsUnitsAndIdsOfPartitions) {
  node(1, 128, "7", 1216);
  node(2, 136, "8", 152);
  node(3, 137, "8", 152);
  device(pci_ + "0000:c5:00.0", 128);
  device(pci_ + "0000:c8:00.0", 136);
  device("devices/platform/amdgpu_xcp.7", 137);
  auto devices = parse_amd_smi("[" + entry("0", "S1", "0000:C5:00.0", "SPX", "0") + "," +
                               entry("1", "S2", "0000:C8:00.0", "CPX", "0") + "," +
                               entry("2", "S2", "0000:C8:00.0", "CPX", "1") + "]")
                     .value();
  add_amd_sysfs(paths(), devices);
  EXPECT_EQ(devices[0].sm_count, 304U);
  EXPECT_EQ(devices[0].render_minor, 128U);
  EXPECT_EQ(devices[1].sm_count, 0U);
  EXPECT_EQ(devices[1].instances[0].uuid, "0000:c8:00.0");
  EXPECT_EQ(devices[1].instances[1].uuid, "amdgpu_xcp.7");
  EXPECT_EQ(devices[1].instances[1].sm_count, 38U);
  EXPECT_EQ(devices[1].instances[1].render_minor, 137U);
}

TEST_F(AmdSysfs, LeavesAGpuUnchangedIfItsPartitionsDoNotMatch) {
  node(2, 136, "8", 152);
  device(pci_ + "0000:c8:00.0", 136);
  auto devices = parse_amd_smi("[" + entry("1", "S2", "0000:C8:00.0", "CPX", "0") + "," +
                               entry("2", "S2", "0000:C8:00.0", "CPX", "1") + "]")
                     .value();
  add_amd_sysfs(paths(), devices);
  EXPECT_EQ(devices[0].instances[0].uuid, "");
  EXPECT_EQ(devices[0].instances[0].sm_count, 0U);
}

TEST_F(AmdSysfs, WorksWithoutSysfs) {
  auto devices = parse_amd_smi("[" + entry("0", "S", "0000:C5:00.0", "SPX", "0") + "]").value();
  add_amd_sysfs(paths(), devices);
  EXPECT_EQ(devices[0].sm_count, 0U);
}

TEST(IntelSysfs, FindsCardsButNotTheProcessorsGraphics) {
  const testing::TempDir dir;
  for (const char* name : {"0000:00:02.0", "0000:4d:00.0", "0000:3a:00.0", "0000:5e:00.0"}) {
    const std::string device = std::string("sys/bus/pci/devices/") + name + "/";
    dir.write(device + "class", "0x038000\n");
    dir.write(device + "vendor", "0x8086\n");
    if (std::string_view(name) != "0000:5e:00.0") {  // no driver
      dir.write(device + "drm/renderD130/dev", "");
    }
  }
  const auto devices =
      intel_devices({dir.path() / "proc", dir.path() / "sys", dir.path() / "cgroup"});
  ASSERT_EQ(devices.size(), 2U);
  EXPECT_EQ(devices[0].uuid, "0000:3a:00.0");
  EXPECT_EQ(devices[0].index, "0");
  EXPECT_EQ(devices[0].render_minor, 130U);
  EXPECT_EQ(devices[1].index, "1");
}

}  // namespace
}  // namespace ceems::exporter::gpu
