#include "exporter/gpu/inventory/inventory.h"

#include <filesystem>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exporter/gpu/inventory/library_list.h"
#include "exporter/gpu/inventory/sysfs.h"
#include "testing/eventually.h"
#include "testing/fake_runner.h"
#include "testing/temp_dir.h"

namespace ceems::exporter::gpu {
namespace {

using ::testing::ElementsAre;
using testing::eventually;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::string_view kQuery =
    "<nvidia_smi_log><gpu id=\"00000000:07:00.0\"><uuid>GPU-a</uuid><mig_mode><current_mig>%MIG%"
    "</current_mig></mig_mode><mig_devices><mig_device><index>0</index><gpu_instance_id>1"
    "</gpu_instance_id><compute_instance_id>0</compute_instance_id></mig_device></mig_devices>"
    "<gpu_virtualization_mode><virtualization_mode>VGPU</virtualization_mode>"
    "</gpu_virtualization_mode></gpu></nvidia_smi_log>";

std::string query(const std::string& mig) {
  std::string text(kQuery);
  return text.replace(text.find("%MIG%"), 5, mig);
}

class InventoryTest : public ::testing::Test {
 protected:
  void pci(const std::string& name, const std::string& vendor) const {
    dir_.write("sys/bus/pci/devices/" + name + "/class", "0x030200\n");
    dir_.write("sys/bus/pci/devices/" + name + "/vendor", vendor + "\n");
  }
  [[nodiscard]] InventoryOptions options() const {
    InventoryOptions options;
    options.paths = {dir_.path() / "proc", dir_.path() / "sys", dir_.path() / "cgroup"};
    options.nvidia_smi = "/fake/nvidia-smi";
    options.amd_smi = "/fake/amd-smi";
    options.rocm_smi = "/fake/rocm-smi";
    options.search_path = "/usr/bin";
    options.first_retry_pause = std::chrono::milliseconds(5);
    return options;
  }
  /// Answers --query, -L and vgpu --query.
  void answer_nvidia(const std::string& mig) {
    runner_.answer("nvidia-smi", [this, mig](const os::Command& command) {
      os::CommandResult result;
      if (command.arguments.front() == "vgpu") {
        result.output = "GPU 00000000:07:00.0\n  MDEV UUID : " + mdev_ + "\n";
      } else if (command.arguments.front() == "-L") {
        result.output = "GPU 0: X (UUID: GPU-a)\n  MIG 1g Device 0: (UUID: MIG-a)\n";
      } else {
        result.output = query(mig);
        result.error_text = "a warning\n";
      }
      return result;
    });
  }

  testing::TempDir dir_;
  testing::FakeRunner runner_;
  std::string mdev_ = "m-1";
};

TEST_F(InventoryTest, RunsNothingWithoutAGpu) {
  pci("0000:00:02.0", "0x1a03");
  const auto inventory = Inventory::create(options(), runner_);
  inventory->start();
  EXPECT_TRUE(inventory->has_no_gpus());
  EXPECT_THAT(*inventory->devices(), IsEmpty());
  EXPECT_THAT(runner_.calls(), IsEmpty());
}

TEST_F(InventoryTest, ListsNvidiaGpusAndReadsMigUuidsOnlyIfNeeded) {
  pci("0000:07:00.0", "0x10de");
  answer_nvidia("Disabled");
  EXPECT_THAT(*Inventory::create(options(), runner_)->devices(), SizeIs(1));
  ASSERT_THAT(runner_.calls(), SizeIs(1));
  EXPECT_THAT(runner_.calls()[0].arguments, ElementsAre("--query", "--xml-format"));
  EXPECT_EQ(runner_.calls()[0].environment.at("PATH"), "/usr/bin");

  answer_nvidia("Enabled");
  const auto devices = Inventory::create(options(), runner_)->devices();
  ASSERT_THAT(*devices, SizeIs(1));
  EXPECT_EQ(devices->front().instances.at(0).uuid, "MIG-a");
}

TEST_F(InventoryTest, PrefersAmdSmiAndFallsBackToRocmSmi) {
  pci("0000:05:00.0", "0x1002");
  runner_.reply("rocm-smi", {.output = R"({"card0":{"Serial Number":"R"}})"});
  EXPECT_EQ(Inventory::create(options(), runner_)->devices()->at(0).uuid, "R");
  runner_.reply("amd-smi", {.output = R"([{"gpu":0,"board":{"product_serial":"A"}}])"});
  EXPECT_EQ(Inventory::create(options(), runner_)->devices()->at(0).uuid, "A");
  // If it exists but fails, the other one is not used.
  runner_.reply("amd-smi", {.exit_status = 1, .output = "no access"});
  EXPECT_THAT(*Inventory::create(options(), runner_)->devices(), IsEmpty());
}

TEST_F(InventoryTest, KeepsTheGpusOfOneVendorWhenTheOtherFails) {
  pci("0000:07:00.0", "0x10de");
  pci("0000:05:00.0", "0x1002");
  answer_nvidia("Disabled");
  const auto inventory = Inventory::create(options(), runner_);
  ASSERT_THAT(*inventory->devices(), SizeIs(1));
  EXPECT_EQ(inventory->devices()->front().vendor, Vendor::kNvidia);
  EXPECT_FALSE(inventory->has_no_gpus());
}

TEST_F(InventoryTest, ObeysTheTypeFlag) {
  pci("0000:07:00.0", "0x10de");
  answer_nvidia("Disabled");
  auto none = options();
  none.type = "nogpu";
  EXPECT_TRUE(Inventory::create(none, runner_)->has_no_gpus());
  auto amd = options();
  amd.type = "amd";
  runner_.reply("amd-smi", {.output = R"([{"gpu":0,"board":{"product_serial":"A"}}])"});
  EXPECT_EQ(Inventory::create(amd, runner_)->devices()->at(0).uuid, "A");
}

TEST_F(InventoryTest, SearchesToolsOnThePath) {
  pci("0000:07:00.0", "0x10de");
  auto here = options();
  here.nvidia_smi.clear();
  here.search_path = (dir_.path() / "bin").string();
  answer_nvidia("Disabled");
  EXPECT_THAT(*Inventory::create(here, runner_)->devices(), IsEmpty());
  const auto tool = dir_.write("bin/nvidia-smi", "#!/bin/sh\n");
  std::filesystem::permissions(tool, std::filesystem::perms::owner_all);
  EXPECT_THAT(*Inventory::create(here, runner_)->devices(), SizeIs(1));
}

TEST_F(InventoryTest, RetriesWhenAToolFailed) {
  pci("0000:07:00.0", "0x10de");
  for (const os::CommandResult& failure :
       {os::CommandResult{.output = "rubbish"}, os::CommandResult{.exit_status = 9},
        os::CommandResult{.output = "<nvidia_smi_log/>"}}) {
    runner_.reply("nvidia-smi", failure);
    const auto inventory = Inventory::create(options(), runner_);
    EXPECT_THAT(*inventory->devices(), IsEmpty());
    EXPECT_FALSE(inventory->has_no_gpus());
    inventory->start();
    answer_nvidia("Disabled");
    EXPECT_TRUE(eventually([&] { return inventory->devices()->size() == 1; }));
  }
}

TEST_F(InventoryTest, LogsOnceThatAToolPrintsTooMuch) {
  pci("0000:07:00.0", "0x10de");
  runner_.reply("nvidia-smi", {.output = std::string((16U << 20U) + 1, 'x')});
  ::testing::internal::CaptureStderr();
  {
    const auto inventory = Inventory::create(options(), runner_);
    inventory->start();
    EXPECT_TRUE(eventually([&] { return runner_.calls().size() > 3; }));
  }
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("output exceeds"), std::string::npos);
  EXPECT_EQ(log.find("cannot be listed"), log.rfind("cannot be listed"));
}

TEST_F(InventoryTest, ReadsVgpusOnlyOnRequest) {
  pci("0000:07:00.0", "0x10de");
  answer_nvidia("Disabled");
  const auto inventory = Inventory::create(options(), runner_);
  EXPECT_TRUE(inventory->has_vgpus());
  EXPECT_THAT(inventory->devices()->at(0).mdevs, IsEmpty());
  inventory->refresh_mdevs();  // not started, so nothing happens
  EXPECT_THAT(inventory->devices()->at(0).mdevs, IsEmpty());

  inventory->want_mdevs();
  EXPECT_THAT(inventory->devices()->at(0).mdevs, ElementsAre("m-1"));
  inventory->start();
  mdev_ = "m-2";
  inventory->refresh_mdevs(testing::kPatience);
  EXPECT_THAT(inventory->devices()->at(0).mdevs, ElementsAre("m-2"));
}

TEST_F(InventoryTest, KeepsKnownVgpusWhenTheyCannotBeListed) {
  pci("0000:07:00.0", "0x10de");
  answer_nvidia("Disabled");
  const auto inventory = Inventory::create(options(), runner_);
  inventory->want_mdevs();
  inventory->start();
  runner_.refuse("nvidia-smi", {ErrorCode::kTimeout, "timed out"});
  inventory->refresh_mdevs(testing::kPatience);
  EXPECT_THAT(inventory->devices()->at(0).mdevs, ElementsAre("m-1"));
}

TEST_F(InventoryTest, CountsGraphicsOfIntelOnlyWithoutOtherGpus) {
  pci("0000:4d:00.0", "0x8086");
  dir_.write("sys/bus/pci/devices/0000:4d:00.0/drm/renderD128/dev", "");
  EXPECT_THAT(*Inventory::create(options(), runner_)->devices(), SizeIs(1));
  pci("0000:07:00.0", "0x10de");
  answer_nvidia("Disabled");
  const auto devices = Inventory::create(options(), runner_)->devices();
  ASSERT_THAT(*devices, SizeIs(1));
  EXPECT_EQ(devices->front().vendor, Vendor::kNvidia);
}

/// Output of this program when it is run with "list-gpus".
std::string listed(const std::vector<std::string>& addresses, bool split = false) {
  std::vector<Device> devices;
  for (const std::string& address : addresses) {
    Device& device = devices.emplace_back();
    device.uuid = "GPU-" + address;
    device.address = parse_pci_address(address);
    device.index = std::to_string(devices.size() - 1);
    if (split) {
      device.split = true;
      device.index.clear();
      device.instances.push_back({.index = std::to_string(devices.size() - 1),
                                  .number = 0,
                                  .uuid = "MIG-" + address,
                                  .gpu_instance = 7});
    }
  }
  return device_list_text(devices);
}

class LibraryFirst : public InventoryTest {
 protected:
  LibraryFirst() {
    pci("0000:07:00.0", "0x10de");
    answer_nvidia("Disabled");
    options_ = options();
    options_.own_program = "/proc/self/exe";
    options_.own_environment = {{"LD_LIBRARY_PATH", "/opt/driver"}};
    options_.watch_period = std::chrono::milliseconds(5);
  }
  void library_lists(const std::string& text) { runner_.reply("exe", {.output = text}); }

  InventoryOptions options_;
};

TEST_F(LibraryFirst, UsesTheLibraryInASeparateProcessAndNoTool) {
  library_lists(listed({"0000:07:00.0"}));
  options_.libraries[0] = "/lib/nvml";
  const auto inventory = Inventory::create(options_, runner_);
  ASSERT_THAT(*inventory->devices(), SizeIs(1));
  EXPECT_EQ(inventory->devices()->at(0).uuid, "GPU-0000:07:00.0");
  ASSERT_THAT(runner_.calls(), SizeIs(1));
  const os::Command call = runner_.calls()[0];
  EXPECT_EQ(call.path, "/proc/self/exe");
  EXPECT_THAT(call.arguments, ElementsAre("list-gpus", "nvidia", "/lib/nvml"));
  EXPECT_EQ(call.environment.at("LD_LIBRARY_PATH"), "/opt/driver");
  EXPECT_EQ(call.timeout, std::chrono::seconds(5));
}

TEST_F(LibraryFirst, RunsTheToolIfTheLibraryIsMissingHangsOrListsNothing) {
  for (const Result<os::CommandResult>& answer :
       {Result<os::CommandResult>(os::CommandResult{.exit_status = 1, .error_text = "no library"}),
        Result<os::CommandResult>(os::CommandResult{.output = "[]"}),
        Result<os::CommandResult>(os::CommandResult{.output = "a driver's warning"}),
        Result<os::CommandResult>(os::CommandResult{.exit_status = 139}),
        Result<os::CommandResult>(fail(ErrorCode::kTimeout, "timed out"))}) {
    runner_.answer("exe", [answer](const os::Command&) { return answer; });
    const auto inventory = Inventory::create(options_, runner_);
    ASSERT_THAT(*inventory->devices(), SizeIs(1));
    EXPECT_EQ(inventory->devices()->at(0).uuid, "GPU-a");
  }
}

TEST_F(LibraryFirst, ListsAgainOnlyWhenAGpuIsSplit) {
  const auto mig = dir_.path() / "proc/driver/nvidia/capabilities/gpu0/mig";
  std::filesystem::create_directories(mig);
  dir_.write("draft/gi7/ci0/access", "");
  library_lists(listed({"0000:07:00.0"}));
  const auto inventory = Inventory::create(options_, runner_);
  inventory->start();
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  EXPECT_THAT(runner_.calls(), SizeIs(1)) << "nothing has changed";
  library_lists(listed({"0000:07:00.0"}, true));
  std::filesystem::rename(dir_.path() / "draft/gi7", mig / "gi7");  // all at once
  EXPECT_TRUE(eventually([&] { return inventory->devices()->at(0).split; }));
  const auto calls = runner_.calls().size();
  EXPECT_EQ(inventory->devices()->at(0).instances.at(0).uuid, "MIG-0000:07:00.0");
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  EXPECT_THAT(runner_.calls(), SizeIs(calls));
}

TEST_F(LibraryFirst, KeepsTheListWhileListingFails) {
  library_lists(listed({"0000:07:00.0"}));
  const auto inventory = Inventory::create(options_, runner_);
  inventory->start();
  runner_.refuse("exe", {ErrorCode::kTimeout, "timed out"});
  runner_.refuse("nvidia-smi", {ErrorCode::kTimeout, "timed out"});
  dir_.write("proc/driver/nvidia/capabilities/gpu0/mig/gi7/ci0/access", "");
  EXPECT_TRUE(eventually([&] { return runner_.calls().size() > 4; })) << "tried again";
  EXPECT_THAT(*inventory->devices(), SizeIs(1));
  library_lists(listed({"0000:07:00.0"}, true));
  EXPECT_TRUE(eventually([&] { return inventory->devices()->at(0).split; }));
}

TEST_F(LibraryFirst, ALostGpuKeepsItsPlaceAndTheOthersTheirNumbers) {
  pci("0000:08:00.0", "0x10de");
  pci("0000:09:00.0", "0x10de");
  library_lists(listed({"0000:07:00.0", "0000:08:00.0", "0000:09:00.0"}));
  const auto inventory = Inventory::create(options_, runner_);
  ASSERT_THAT(*inventory->devices(), SizeIs(3));
  const auto seen = [](const std::string& text) { return *parse_device_list(text); };
  inventory->observe(Vendor::kNvidia, seen(listed({"0000:07:00.0", "0000:09:00.0"})));
  ASSERT_THAT(*inventory->devices(), SizeIs(3));
  EXPECT_EQ(inventory->devices()->at(1).uuid, "GPU-0000:08:00.0");
  EXPECT_EQ(inventory->devices()->at(2).uuid, "GPU-0000:09:00.0");
  EXPECT_EQ(inventory->devices()->at(2).index, "2");

  std::filesystem::remove_all(dir_.path() / "sys/bus/pci/devices/0000:08:00.0");
  inventory->observe(Vendor::kNvidia, seen(listed({"0000:07:00.0", "0000:09:00.0"}, true)));
  EXPECT_THAT(*inventory->devices(), SizeIs(2)) << "removed from the machine";
}

TEST_F(LibraryFirst, ObservedDevicesTakePrecedence) {
  library_lists(listed({"0000:07:00.0"}));
  const auto inventory = Inventory::create(options_, runner_);
  inventory->observe(Vendor::kNvidia, *parse_device_list(listed({"0000:07:00.0"}, true)));
  const auto devices = inventory->devices();
  EXPECT_TRUE(devices->at(0).split);
  inventory->start();
  dir_.write("proc/driver/nvidia/capabilities/gpu0/mig/gi7/ci0/access", "");
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  EXPECT_THAT(runner_.calls(), SizeIs(1)) << "nothing else is run";
  inventory->observe(Vendor::kNvidia, *parse_device_list(listed({"0000:07:00.0"}, true)));
  EXPECT_EQ(inventory->devices(), devices);
  inventory->observe(Vendor::kAmd, *parse_device_list(listed({"0000:07:00.0"})));
  inventory->observe(Vendor::kNvidia, {});
  EXPECT_EQ(inventory->devices(), devices) << "AMD is not present, and an empty list is ignored";
}

TEST_F(LibraryFirst, TheThreadRetriesTimeoutsOfTheStartAtOnce) {
  runner_.refuse("exe", {ErrorCode::kTimeout, "timed out"});
  runner_.refuse("nvidia-smi", {ErrorCode::kTimeout, "timed out"});
  options_.start_until = std::chrono::steady_clock::now();
  options_.first_retry_pause = std::chrono::minutes(1);
  const auto inventory = Inventory::create(options_, runner_);
  ASSERT_THAT(runner_.calls(), SizeIs(2));
  EXPECT_LE(runner_.calls()[0].timeout, std::chrono::milliseconds(150));
  EXPECT_LE(runner_.calls()[1].timeout, std::chrono::milliseconds(300));
  EXPECT_FALSE(inventory->has_no_gpus());
  library_lists(listed({"0000:07:00.0"}));
  inventory->start();
  inventory->wait_first(std::chrono::steady_clock::now() + testing::kPatience);
  EXPECT_THAT(*inventory->devices(), SizeIs(1));
  EXPECT_EQ(runner_.calls().back().timeout, std::chrono::seconds(5));
}

TEST(DeviceList, ReadsWhatItPrints) {
  Device device;
  device.vendor = Vendor::kAmd;
  device.position = 3;
  device.driver_minor = 0;
  device.index = "4";
  device.uuid = "a \"quoted\" one";
  device.name = "MI300X";
  device.address = PciAddress{.domain = 1, .bus = 0xc5, .device = 2, .function = 3};
  device.path_name = "0001:c5:02.3";
  device.sm_count = 304;
  device.split = true;
  device.vgpu = true;
  device.instances.push_back({.index = "5",
                              .number = 1,
                              .uuid = "u",
                              .gpu_instance = 9,
                              .compute_instance = 2,
                              .sm_count = 38});
  const auto read = parse_device_list(device_list_text({device, device}));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_THAT(*read, ElementsAre(device, device));
}

TEST(DeviceList, RefusesInvalidLists) {
  std::string many = "[";
  for (int i = 0; i < 300; ++i) {
    many += R"({"vendor":"amd","uuid":"x"},)";
  }
  many.back() = ']';
  std::string parts = R"([{"vendor":"amd","uuid":"x","instances":[{})";
  for (int i = 0; i < 70; ++i) {
    parts += ",{}";
  }
  for (const std::string& text :
       {std::string(), std::string("{}"), std::string("[{}]"), std::string("[7]"),
        std::string(R"([{"vendor":"nvidia"}])"), std::string(R"([{"vendor":"x","uuid":"u"}])"),
        std::string("[[[[[[[[[["), many, parts + "]}]", std::string(std::size_t{5} << 20U, ' ')}) {
    EXPECT_FALSE(parse_device_list(text)) << text.substr(0, 60);
  }
  const auto odd = parse_device_list(
      R"([{"vendor":"amd","uuid":"x","position":-1,"sm_count":1.5,"split":"yes","instances":7}])");
  ASSERT_TRUE(odd);
  EXPECT_EQ(odd->at(0).sm_count, 0U);
  EXPECT_FALSE(odd->at(0).split);
}

TEST(GpuLayout, ChangesWithPartitionsOfAmd) {
  const testing::TempDir dir;
  const host::Paths paths{dir.path() / "proc", dir.path() / "sys", dir.path() / "cgroup"};
  const std::string empty = gpu_layout(paths);
  const auto mode = "sys/module/amdgpu/drivers/pci:amdgpu/0000:c5:00.0/current_compute_partition";
  dir.write(mode, "SPX\n");
  const std::string whole = gpu_layout(paths);
  EXPECT_NE(whole, empty);
  EXPECT_EQ(whole, gpu_layout(paths));
  dir.write(mode, "CPX\n");
  const std::string split = gpu_layout(paths);
  EXPECT_NE(split, whole);
  dir.write("sys/devices/platform/amdgpu_xcp.0/x", "");
  EXPECT_NE(gpu_layout(paths), split);
}

TEST_F(InventoryTest, HasOneHelpText) {
  const auto inventory = Inventory::create(options(), runner_);
  EXPECT_EQ(inventory->shared_help("first"), "first");
  EXPECT_EQ(inventory->shared_help("second"), "first");
}

}  // namespace
}  // namespace ceems::exporter::gpu
