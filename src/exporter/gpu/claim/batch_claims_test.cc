#include "exporter/gpu/claim/batch_claims.h"

#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exporter/gpu/claim/shares.h"
#include "testing/fake_runner.h"
#include "testing/temp_dir.h"

namespace ceems::exporter::gpu {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using namespace std::string_literals;  // NOLINT(google-build-using-namespace): texts with NUL

TEST(VisibleDevices, AreThoseOfTheJob) {
  const auto found =
      parse_visible_devices("PBS_JOBID=12[3].srv\0CUDA_VISIBLE_DEVICES=GPU-a, GPU-b,,\0OTHER=1\0"s,
                            "PBS_JOBID", "12[3].srv");
  ASSERT_TRUE(found);
  EXPECT_THAT(*found, ElementsAre("GPU-a", "GPU-b"));
  for (const auto& environ :
       {"PBS_JOBID=12.srv\0CUDA_VISIBLE_DEVICES=GPU-a\0"s,  // of another job
        "PBS_JOBID=12[3].srv\0"s, "PBS_JOBID=12[3].srv\0CUDA_VISIBLE_DEVICES=\0"s, ""s,
        "XPBS_JOBID=12[3].srv\0CUDA_VISIBLE_DEVICES=0\0"s,
        "CUDA_VISIBLE_DEVICES=0\0PBS_JOBID=12[3].srv"s}) {  // cut off
    EXPECT_FALSE(parse_visible_devices(environ, "PBS_JOBID", "12[3].srv")) << environ;
  }
}

TEST(VisibleDevices, AreBounded) {
  std::string text = "PBS_JOBID=1\0CUDA_VISIBLE_DEVICES="s;
  for (int i = 0; i < 100'000; ++i) {
    text += std::to_string(i) + ",";
  }
  text += '\0';
  EXPECT_THAT(*parse_visible_devices(text, "PBS_JOBID", "1"), SizeIs(1024));
}

constexpr std::string_view kBatchQuery =
    "<nvidia_smi_log><gpu id=\"0:7:0.0\"><uuid>GPU-a</uuid><minor_number>1</minor_number></gpu>"
    "<gpu id=\"0:8:0.0\"><uuid>GPU-b</uuid><minor_number>0</minor_number></gpu>"
    "<gpu id=\"0:9:0.0\"><uuid>GPU-c</uuid><minor_number>2</minor_number>"
    "<mig_mode><current_mig>Enabled</current_mig></mig_mode><mig_devices>"
    "<mig_device><index>0</index><gpu_instance_id>3</gpu_instance_id>"
    "<compute_instance_id>0</compute_instance_id></mig_device>"
    "<mig_device><index>1</index><gpu_instance_id>5</gpu_instance_id>"
    "<compute_instance_id>0</compute_instance_id></mig_device></mig_devices></gpu>"
    "</nvidia_smi_log>";
constexpr std::string_view kList =
    "GPU 0: x (UUID: GPU-a)\nGPU 1: x (UUID: GPU-b)\nGPU 2: x (UUID: GPU-c)\n"
    "  MIG 3g.40gb     Device  0: (UUID: MIG-m0)\n"
    "  MIG 3g.40gb     Device  1: (UUID: MIG-m1)\n";

class BatchClaimsTest : public ::testing::Test {
 protected:
  BatchClaimsTest() {
    options_.collector = "openpbs";
    options_.paths = {dir_.path() / "proc", dir_.path() / "sys", dir_.path() / "cgroup"};
    options_.job_variable = "PBS_JOBID";
    snapshot_.manager = "openpbs";
  }

  void process(int pid, const std::string& job, const std::string& gpus, int start = 100) const {
    const std::string base = "proc/" + std::to_string(pid) + "/";
    dir_.write(base + "environ", "PBS_JOBID=" + job + "\0CUDA_VISIBLE_DEVICES="s + gpus + "\0"s);
    dir_.write(base + "stat", std::to_string(pid) +
                                  " (x) S 1 1 1 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 " +
                                  std::to_string(start) + " 0 0\n");
  }
  void group(const std::string& job, const std::string& devices) const {
    dir_.write("cgroup/devices/pbs_jobs.service/jobid/" + job + "/devices.list", devices);
  }
  Unit& job(const std::string& uuid, std::vector<int> pids = {}) {
    Unit unit;
    unit.uuid = uuid;
    unit.path = "/pbs_jobs.service/jobid/" + uuid;
    unit.pids = std::move(pids);
    return snapshot_.units.emplace_back(std::move(unit));
  }
  std::shared_ptr<Inventory> inventory() {
    if (inventory_ == nullptr) {
      runner_.answer("nvidia-smi", [](const os::Command& command) {
        return os::CommandResult{
            .output = std::string(command.arguments.front() == "-L" ? kList : kBatchQuery)};
      });
      InventoryOptions inventory;
      inventory.paths = options_.paths;
      inventory.type = "nvidia";
      inventory.nvidia_smi = "/fake/nvidia-smi";
      inventory_ = Inventory::create(inventory, runner_);
    }
    return inventory_;
  }
  std::vector<Claim> raw_claims() {
    if (source_ == nullptr) {
      source_ = make_batch_claims(options_, inventory());
    }
    return source_->claims(snapshot_).value();
  }
  /// "job:evidence:indexes" for each claim.
  std::string claims() {
    std::string text;
    for (const Claim& claim : raw_claims()) {
      constexpr std::array kNames = {"file", "manager", "group", "process", "env"};
      text += (text.empty() ? "" : " ") + claim.uuid + ":" +
              kNames.at(static_cast<std::size_t>(claim.evidence)) + ":";
      for (const std::string& ordinal : claim.ordinals) {
        text += ordinal + ",";
      }
    }
    return text;
  }

  testing::TempDir dir_;
  testing::FakeRunner runner_;
  BatchClaimOptions options_;
  UnitSnapshot snapshot_;
  std::shared_ptr<Inventory> inventory_;
  std::unique_ptr<ClaimSource> source_;
};

TEST_F(BatchClaimsTest, UnderstandsAllFormsOfNames) {
  const auto devices = inventory()->devices();
  const auto indexes = [&](const std::vector<std::string>& entries) {
    return visible_indexes(entries, *devices);
  };
  EXPECT_THAT(indexes({"GPU-b", "gpu-A", "GPU-b"}), ElementsAre("1", "0"));
  EXPECT_THAT(indexes({"0", "1", "7", "-1"}), ElementsAre("0", "1"));
  EXPECT_THAT(indexes({"GPU-c", "2"}), IsEmpty());  // a split GPU is not assigned
  EXPECT_THAT(indexes({"MIG-m1"}), ElementsAre((*devices)[2].instances[1].index));
  EXPECT_THAT(indexes({"MIG-GPU-c/3/0"}), ElementsAre((*devices)[2].instances[0].index));
  EXPECT_THAT(
      indexes({"MIG-GPU-c/4/0", "MIG-GPU-c/3", "MIG-GPU-c/3/0/1", "MIG-", "", "NoDevFiles"}),
      IsEmpty());
}

TEST_F(BatchClaimsTest, TrustTheDeviceGroupAndNotTheEnvironment) {
  options_.unified = false;
  process(10, "1.srv", "GPU-a");
  process(20, "2.srv", "GPU-b");
  process(30, "3.srv", "GPU-a");
  group("1.srv", "c 195:0 rwm\n");  // GPU-b
  group("2.srv", "c 1:3 rwm\n");    // none
  group("3.srv", "a *:* rwm\n");    // restricts nothing
  job("1.srv", {10});
  job("2.srv", {20});
  job("3.srv", {30});
  EXPECT_EQ(claims(), "1.srv:group:1, 3.srv:env:0,");
}

TEST_F(BatchClaimsTest, PreferWhatTheLibraryListsToTheEnvironment) {
  auto processes = std::make_shared<ProcessList>();
  options_.processes = processes;
  process(10, "1.srv", "GPU-a,GPU-b");
  job("1.srv", {10});
  processes->publish({{.device_uuid = "GPU-b", .index = "1", .gpu_instance = "", .pids = {10}}});
  EXPECT_EQ(claims(), "1.srv:process:1, 1.srv:env:0,");
}

TEST_F(BatchClaimsTest, ReadTheEnvironmentOnceFromTheOldestProcess) {
  process(30, "7.srv", "GPU-a", 500);
  process(20, "7.srv", "GPU-b", 600);
  Unit& unit = job("7.srv", {20, 30});
  EXPECT_EQ(claims(), "7.srv:env:0,");
  process(30, "7.srv", "GPU-a,GPU-b", 500);
  process(5, "7.srv", "GPU-b", 50);
  unit.pids = {5, 20, 30};
  EXPECT_EQ(claims(), "7.srv:env:0,");
}

TEST_F(BatchClaimsTest, NeverReadTheEnvironmentIfItIsNotTrusted) {
  options_.trusted_only = true;
  process(10, "1.srv", "GPU-a");
  job("1.srv", {10});
  EXPECT_EQ(claims(), "");
  EXPECT_THAT(source_->capabilities(), IsEmpty());
}

TEST_F(BatchClaimsTest, TakeWholeGpusFromTheBatchSystemByTheirMinors) {
  options_.manager_gpus = [](const Unit& unit) -> std::optional<ManagerGpus> {
    return unit.uuid == "6[1]" ? std::optional(ManagerGpus{.minors = {0, 9}})
                               : std::optional(ManagerGpus{});
  };
  process(10, "7", "GPU-a");
  job("6[1]");
  job("7", {10});
  EXPECT_EQ(claims(), "6[1]:manager:1,");  // minor 0 is that of the second GPU
}

TEST_F(BatchClaimsTest, UseNoEnvironmentOfJobsThatTheBatchSystemDoesNotKnow) {
  options_.manager_gpus = [](const Unit&) { return std::optional<ManagerGpus>(); };
  process(10, "7", "GPU-a");
  job("7", {10});
  EXPECT_EQ(claims(), "");
}

TEST_F(BatchClaimsTest, FindInstancesThatTheBatchSystemDoesNotName) {
  options_.manager_gpus = [](const Unit&) {
    return std::optional(ManagerGpus{.minors = {1}, .instances = true});
  };
  process(10, "7", "MIG-GPU-c/5/0,GPU-a");
  job("7", {10});
  const std::string index = (*inventory()->devices())[2].instances[1].index;
  EXPECT_EQ(claims(), "7:manager:0, 7:env:" + index + ",");
  EXPECT_THAT(source_->capabilities(), SizeIs(2));
}

TEST_F(BatchClaimsTest, ShareAGpuEvenlyAndHintsGetNoneThatIsHeld) {
  process(10, "1.srv", "GPU-a");
  process(20, "2.srv", "GPU-a");
  job("1.srv", {10});
  job("2.srv", {20});
  auto found = raw_claims();
  const auto flags = [&] {
    std::vector<double> all;
    const Holders holders = attach(*inventory()->devices(), found, {})[0].device;
    for (const Holder& holder : holders.units) {
      all.push_back(holders.flag(holder));
    }
    return all;
  };
  EXPECT_THAT(flags(), ElementsAre(0.5, 0.5));
  found[1].evidence = Evidence::kDeviceGroup;
  EXPECT_THAT(flags(), ElementsAre(1));
}

}  // namespace
}  // namespace ceems::exporter::gpu
