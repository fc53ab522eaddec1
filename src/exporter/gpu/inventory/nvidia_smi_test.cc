#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exporter/gpu/inventory/vendor_tools.h"

namespace ceems::exporter::gpu {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string log_of(const std::string& gpus) {
  return "<?xml version=\"1.0\" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM \"nvsmi_device_v12.dtd\">\n"
         "<nvidia_smi_log><driver_version>570.1</driver_version>" +
         gpus + "</nvidia_smi_log>\n";
}

std::string mig(const std::string& index,
                const std::string& gpu_instance,
                const std::string& attributes = "") {
  return "<mig_device><index>" + index + "</index><gpu_instance_id>" + gpu_instance +
         "</gpu_instance_id><compute_instance_id> 0 </compute_instance_id>" + attributes +
         "</mig_device>";
}

std::string sms(const std::string& count) {
  return "<device_attributes><shared><multiprocessor_count>" + count +
         "</multiprocessor_count></shared></device_attributes>";
}

std::string gpu(const std::string& id,
                const std::string& uuid,
                const std::string& migs = "None",
                const std::string& mode = "None") {
  return "<gpu id=\"" + id + "\"><product_name>NVIDIA A100-SXM4-40GB</product_name><uuid>" + uuid +
         "</uuid><minor_number>3</minor_number><mig_mode><current_mig>" +
         (migs == "None" ? "Disabled" : "Enabled") + "</current_mig></mig_mode><mig_devices>" +
         migs + "</mig_devices><gpu_virtualization_mode><virtualization_mode>" + mode +
         "</virtualization_mode></gpu_virtualization_mode></gpu>";
}

TEST(NvidiaQuery, NumbersGpusAndMigDevicesInOneSequence) {
  const auto devices =
      parse_nvidia_query(
          log_of(gpu("00000000:07:00.0", "GPU-a") +
                 gpu("00000000:0F:00.0", "GPU-b",
                     mig("0", "1", sms("42")) + mig("1", "5", sms("N/A")) + mig("2", "6")) +
                 gpu("00000000:47:00.0", "GPU-c", "None", "VGPU")))
          .value();
  ASSERT_EQ(devices.size(), 3U);
  EXPECT_EQ(devices[0].index, "0");
  EXPECT_EQ(devices[0].sm_count, 108U);
  EXPECT_EQ(devices[0].driver_minor, 3U);
  EXPECT_FALSE(devices[0].vgpu);
  EXPECT_EQ(devices[1].index, "");
  EXPECT_TRUE(devices[1].split);
  EXPECT_EQ(devices[1].address, (PciAddress{0, 0x0f, 0, 0}));
  EXPECT_EQ(devices[1].path_name, "00000000:0f:00.0");
  ASSERT_EQ(devices[1].instances.size(), 3U);
  EXPECT_EQ(devices[1].instances[0].index, "1");
  EXPECT_EQ(devices[1].instances[0].sm_count, 42U);
  EXPECT_EQ(devices[1].instances[1].gpu_instance, 5U);
  EXPECT_EQ(devices[1].instances[1].sm_count, 1U);  // present, but not a number
  EXPECT_EQ(devices[1].instances[2].sm_count, 0U);  // absent
  EXPECT_EQ(devices[2].index, "4");
  EXPECT_EQ(devices[2].position, 2U);
  EXPECT_TRUE(devices[2].vgpu);
}

TEST(NvidiaQuery, KeepsAGpuWithAnInvalidAddress) {
  const auto devices = parse_nvidia_query(log_of(gpu("rubbish", "GPU-a"))).value();
  ASSERT_EQ(devices.size(), 1U);
  EXPECT_EQ(devices[0].address, std::nullopt);
  EXPECT_EQ(devices[0].path_name, "");
}

TEST(NvidiaQuery, RefusesOtherTexts) {
  for (const std::string& text :
       {std::string(), std::string("No devices were found\n"), std::string("<nvidia_smi_log>"),
        std::string("<other/>"), std::string(1 << 20, '<'), std::string("<a>\0</a>", 8)}) {
    const auto devices = parse_nvidia_query(text);
    ASSERT_FALSE(devices) << text.substr(0, 40);
    EXPECT_EQ(devices.error().code, ErrorCode::kParse);
  }
}

TEST(NvidiaQuery, RefusesMigDevicesWithoutNumbers) {
  const auto devices = parse_nvidia_query(log_of(gpu("0:7:0.0", "GPU-a", mig("0", "N/A"))));
  ASSERT_FALSE(devices);
  EXPECT_THAT(devices.error().message, HasSubstr("gpu_instance_id"));
}

TEST(NvidiaQuery, ExpandsNoEntities) {
  std::string bomb = "<!DOCTYPE l [<!ENTITY a \"ha\">";
  for (char c = 'b'; c < 'z'; ++c) {
    const std::string before(1, static_cast<char>(c - 1));
    bomb += "<!ENTITY " + std::string(1, c) + " \"&" + before + ";&" + before + ";\">";
  }
  bomb += "]><nvidia_smi_log><gpu id=\"0:7:0.0\"><uuid>&y;</uuid></gpu></nvidia_smi_log>";
  const auto devices = parse_nvidia_query(bomb).value();
  EXPECT_EQ(devices.at(0).uuid, "&y;");
}

TEST(NvidiaQuery, SurvivesDeepNesting) {
  std::string text = "<nvidia_smi_log>";
  for (int i = 0; i < 200'000; ++i) {
    text += "<a>";
  }
  EXPECT_FALSE(parse_nvidia_query(text));
}

TEST(NvidiaQuery, RefusesMoreTagsThanItHasMemoryFor) {
  std::string text = "<nvidia_smi_log>";
  for (int i = 0; i < 600'000; ++i) {
    text += "<a/>";
  }
  const auto devices = parse_nvidia_query(text + "</nvidia_smi_log>");
  ASSERT_FALSE(devices);
  EXPECT_EQ(devices.error().message, "more than 500000 tags");
}

TEST(NvidiaList, SetsTheUuidsOfMigDevices) {
  auto devices = parse_nvidia_query(
                     log_of(gpu("0:7:0.0", "GPU-a", mig("0", "1") + mig("1", "5") + mig("2", "6"))))
                     .value();
  const auto uuids = parse_nvidia_list(
      "GPU 0: NVIDIA A100 (UUID: GPU-a)\n"
      "  MIG 4g.20gb     Device  0: (UUID: MIG-x)\n"
      "  MIG 1g.5gb      Device  1: (UUID: MIG-y)\r\n"
      "  MIG 1g.5gb      Device  n: (UUID: MIG-bad)\n"
      "  MIG 1g.5gb      Device  2 (UUID: MIG-bad)\n"
      "rubbish\n"
      "GPU 1: NVIDIA A100 (UUID: GPU-b)\n"
      "  MIG 1g.5gb      Device  2: (UUID: MIG-other)\n");
  set_mig_uuids(uuids, devices);
  EXPECT_EQ(devices[0].instances[0].uuid, "MIG-x");
  EXPECT_EQ(devices[0].instances[1].uuid, "MIG-y");
  EXPECT_EQ(devices[0].instances[2].uuid, "");
  EXPECT_THAT(parse_nvidia_list("  MIG 1g.5gb Device 0: (UUID: MIG-x)\n"), IsEmpty());
}

constexpr std::string_view kVgpus = R"(
GPU 00000000:07:00.0
    Active vGPUs                      : 2
    vGPU ID                           : 3251634213
        MDEV UUID                     : m-1
        GPU Instance ID               : N/A
    vGPU ID                           : 3251634217
        MDEV UUID                     : m-2
        GPU Instance ID               : N/A

GPU 00000000:0F:00.0
    Active vGPUs                      : 3
    vGPU ID                           : 1
        MDEV UUID                     : m-3
        GPU Instance ID               : 1
    vGPU ID                           : 2
        GPU Instance ID               : 5
    vGPU ID                           : 3
        MDEV UUID                     : m-5
        GPU Instance ID               : 5
    vGPU ID                           : 4
        MDEV UUID                     : m-6
)";

TEST(NvidiaVgpus, AreSetOnTheirGpuOrInstance) {
  auto devices =
      parse_nvidia_query(log_of(gpu("00000000:07:00.0", "GPU-a") +
                                gpu("00000000:0f:00.0", "GPU-b", mig("0", "1") + mig("1", "5"))))
          .value();
  set_mdevs(parse_vgpu_query(kVgpus), devices);
  EXPECT_THAT(devices[0].mdevs, ElementsAre("m-1", "m-2"));
  EXPECT_THAT(devices[1].mdevs, IsEmpty());
  EXPECT_THAT(devices[1].instances[0].mdevs, ElementsAre("m-3"));
  EXPECT_THAT(devices[1].instances[1].mdevs, ElementsAre("m-5"));  // m-6 is on no instance
}

TEST(NvidiaVgpus, KeepTheListOfAGpuThatIsMissing) {
  auto devices =
      parse_nvidia_query(log_of(gpu("0:7:0.0", "GPU-a") + gpu("0:8:0.0", "GPU-b"))).value();
  devices[0].mdevs = {"old"};
  devices[1].mdevs = {"old"};
  set_mdevs(parse_vgpu_query("GPU 00000000:08:00.0\n  MDEV UUID : new\n  MDEV UUID : new\n"),
            devices);
  EXPECT_THAT(devices[0].mdevs, ElementsAre("old"));
  EXPECT_THAT(devices[1].mdevs, ElementsAre("new"));
}

TEST(NvidiaVgpus, NeedABlockOfAGpu) {
  EXPECT_THAT(parse_vgpu_query("MDEV UUID : a\nGPU zz\nMDEV UUID : b\nGPU\n::::"), IsEmpty());
}

}  // namespace
}  // namespace ceems::exporter::gpu
