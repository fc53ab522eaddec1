#include "exporter/gpu/inventory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/fake_runner.h"
#include "testing/temp_dir.h"

namespace ceems::exporter::gpu {
namespace {

using ::testing::ElementsAre;
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
    options.first_retry = std::chrono::milliseconds(5);
    return options;
  }
  /// Waits for the worker, at most a few seconds.
  static bool eventually(const std::function<bool()>& done) {
    for (int i = 0; i < 1000 && !done(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return done();
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

TEST_F(InventoryTest, RunsNothingWhereThereIsNoGpu) {
  pci("0000:00:02.0", "0x1a03");
  const auto inventory = Inventory::create(options(), runner_);
  inventory->start();
  EXPECT_TRUE(inventory->nothing_here());
  EXPECT_THAT(*inventory->devices(), IsEmpty());
  EXPECT_THAT(runner_.calls(), IsEmpty());
}

TEST_F(InventoryTest, ListsNvidiaGpusAndAsksForMigUuidsOnlyWhereNeeded) {
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
  // One that is there but fails is no reason for the other.
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
  EXPECT_FALSE(inventory->nothing_here());
}

TEST_F(InventoryTest, ObeysTheTypeFlag) {
  pci("0000:07:00.0", "0x10de");
  answer_nvidia("Disabled");
  auto none = options();
  none.type = "nogpu";
  EXPECT_TRUE(Inventory::create(none, runner_)->nothing_here());
  auto amd = options();
  amd.type = "amd";
  runner_.reply("amd-smi", {.output = R"([{"gpu":0,"board":{"product_serial":"A"}}])"});
  EXPECT_EQ(Inventory::create(amd, runner_)->devices()->at(0).uuid, "A");
}

TEST_F(InventoryTest, LooksForToolsOnThePath) {
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

TEST_F(InventoryTest, TriesAgainWhenAToolFailed) {
  pci("0000:07:00.0", "0x10de");
  for (const os::CommandResult& failure :
       {os::CommandResult{.output = "rubbish"}, os::CommandResult{.exit_status = 9},
        os::CommandResult{.output = "<nvidia_smi_log/>"}}) {
    runner_.reply("nvidia-smi", failure);
    const auto inventory = Inventory::create(options(), runner_);
    EXPECT_THAT(*inventory->devices(), IsEmpty());
    EXPECT_FALSE(inventory->nothing_here());
    inventory->start();
    answer_nvidia("Disabled");
    EXPECT_TRUE(eventually([&] { return inventory->devices()->size() == 1; }));
  }
}

TEST_F(InventoryTest, SaysOnceThatAToolPrintsTooMuch) {
  pci("0000:07:00.0", "0x10de");
  runner_.reply("nvidia-smi", {.output = std::string((16U << 20U) + 1, 'x')});
  ::testing::internal::CaptureStderr();
  {
    const auto inventory = Inventory::create(options(), runner_);
    inventory->start();
    EXPECT_TRUE(eventually([&] { return runner_.calls().size() > 3; }));
  }
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("more than"), std::string::npos);
  EXPECT_EQ(log.find("cannot be listed"), log.rfind("cannot be listed"));
}

TEST_F(InventoryTest, ReadsVgpusOnlyForThoseWhoWantThem) {
  pci("0000:07:00.0", "0x10de");
  answer_nvidia("Disabled");
  const auto inventory = Inventory::create(options(), runner_);
  EXPECT_TRUE(inventory->has_vgpus());
  EXPECT_THAT(inventory->devices()->at(0).mdevs, IsEmpty());
  inventory->refresh_mdevs();  // not started: nothing
  EXPECT_THAT(inventory->devices()->at(0).mdevs, IsEmpty());

  inventory->want_mdevs();
  EXPECT_THAT(inventory->devices()->at(0).mdevs, ElementsAre("m-1"));
  inventory->start();
  mdev_ = "m-2";
  inventory->refresh_mdevs(std::chrono::seconds(5));
  EXPECT_THAT(inventory->devices()->at(0).mdevs, ElementsAre("m-2"));
}

TEST_F(InventoryTest, KeepsKnownVgpusWhenTheyCannotBeListed) {
  pci("0000:07:00.0", "0x10de");
  answer_nvidia("Disabled");
  const auto inventory = Inventory::create(options(), runner_);
  inventory->want_mdevs();
  inventory->start();
  runner_.refuse("nvidia-smi", {ErrorCode::kTimeout, "timed out"});
  inventory->refresh_mdevs(std::chrono::seconds(5));
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

TEST_F(InventoryTest, HasOneHelpText) {
  const auto inventory = Inventory::create(options(), runner_);
  EXPECT_EQ(inventory->shared_help("first"), "first");
  EXPECT_EQ(inventory->shared_help("second"), "first");
}

}  // namespace
}  // namespace ceems::exporter::gpu
