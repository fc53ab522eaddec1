#include "exporter/gpu/claim/slurm_claims.h"

#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/fake_runner.h"
#include "testing/temp_dir.h"

namespace ceems::exporter::gpu {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using namespace std::string_literals;  // NOLINT(google-build-using-namespace): texts with NUL

TEST(JobEnvironment, ReadsTheEntriesOfTheJobByTheirExactNames) {
  const auto found = parse_job_environment(
      "MY_SLURM_JOB_GPUS=7\0SLURM_JOB_ID=12\0SLURM_JOB_GPUS=0, 2,,2\0SLURM_STEP_GPUS=1\0"
      "SLURM_SHARDS_ON_NODE=8\0CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=25\0SLURM_JOB_GPUS\0"s,
      "12");
  ASSERT_TRUE(found);
  EXPECT_THAT(found->job_gpus, IsEmpty());  // the last entry counts
  EXPECT_THAT(found->step_gpus, ElementsAre("1"));
  EXPECT_EQ(found->shares, 25U);
  EXPECT_THAT(parse_job_environment("SLURM_JOB_ID=1\0SLURM_JOB_GPUS=0, 2,,2\0"s, "1")->job_gpus,
              ElementsAre("0", "2"));
}

TEST(JobEnvironment, IsForItsJobOnly) {
  EXPECT_FALSE(parse_job_environment("SLURM_JOB_ID=123\0SLURM_JOB_GPUS=0\0"s, "12"));
  EXPECT_FALSE(parse_job_environment("SLURM_JOB_GPUS=0\0"s, "12"));
  EXPECT_FALSE(parse_job_environment("", "12"));
  EXPECT_FALSE(parse_job_environment("SLURM_JOB_ID=12", "12"));  // cut off
}

TEST(JobEnvironment, TreatsInvalidSharesAsNone) {
  EXPECT_EQ(parse_job_environment("SLURM_JOB_ID=1\0CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=33.3\0"s, "1")
                ->shares,
            0U);
  EXPECT_EQ(parse_job_environment("SLURM_JOB_ID=1\0"s, "1")->shares, std::nullopt);
}

TEST(JobEnvironment, IsBoundedInOrdinals) {
  std::string text = "SLURM_JOB_ID=1\0SLURM_JOB_GPUS="s;
  for (int i = 0; i < 100'000; ++i) {
    text += std::to_string(i) + ",";
  }
  text += '\0';
  EXPECT_THAT(parse_job_environment(text, "1")->job_gpus, SizeIs(1024));
}

TEST(GpuMapFile, HoldsIndexesAndShares) {
  const auto file = parse_gpu_map_file(" 0,1\n3 shares=250\n");
  ASSERT_TRUE(file);
  EXPECT_THAT(file->ordinals, ElementsAre("0", "1", "3"));
  EXPECT_EQ(file->shares, 250U);
  EXPECT_THAT(parse_gpu_map_file("")->ordinals, IsEmpty());  // a job without GPUs
  for (const char* text : {"GPU-1", "0 shares=x", "shares=1 shares=2", "-1", "0,1.5"}) {
    EXPECT_FALSE(parse_gpu_map_file(text)) << text;
  }
}

TEST(DevicesList, ReportsWhatIsAllowed) {
  EXPECT_TRUE(parse_devices_list("a *:* rwm\n").everything);
  const auto allowed =
      parse_devices_list("c *:* m\nb 8:0 rwm\nc 195:1 rw\nc 136:* rwm\nc x:1 rw\n");
  EXPECT_FALSE(allowed.everything);
  EXPECT_TRUE(allowed.allows(195, 1));
  EXPECT_FALSE(allowed.allows(195, 0));
  EXPECT_TRUE(allowed.allows(136, 9));
  EXPECT_FALSE(allowed.allows(8, 0));
  EXPECT_FALSE(parse_devices_list("").allows(195, 0));
}

TEST(DeviceMajor, IsThatOfTheCharacterDevice) {
  const std::string text =
      "Character devices:\n  1 mem\n235 nvidia-caps\n236 nvidia-caps-imex\n\nBlock devices:\n"
      "  8 sd\n";
  EXPECT_EQ(parse_device_major(text, "nvidia-caps"), 235U);
  EXPECT_EQ(parse_device_major(text, "sd"), std::nullopt);
  EXPECT_EQ(parse_device_major("", "mem"), std::nullopt);
}

constexpr std::string_view kSlurmQuery =
    "<nvidia_smi_log><gpu id=\"0:7:0.0\"><uuid>GPU-a</uuid><minor_number>0</minor_number></gpu>"
    "<gpu id=\"0:8:0.0\"><uuid>GPU-b</uuid><minor_number>1</minor_number></gpu>"
    "<gpu id=\"0:9:0.0\"><uuid>GPU-c</uuid><minor_number>2</minor_number>"
    "<mig_mode><current_mig>Enabled</current_mig></mig_mode><mig_devices>"
    "<mig_device><index>0</index><gpu_instance_id>3</gpu_instance_id>"
    "<compute_instance_id>0</compute_instance_id></mig_device>"
    "<mig_device><index>1</index><gpu_instance_id>5</gpu_instance_id>"
    "<compute_instance_id>0</compute_instance_id></mig_device></mig_devices></gpu>"
    "</nvidia_smi_log>";

class SlurmClaimsTest : public ::testing::Test {
 protected:
  SlurmClaimsTest() {
    options_.paths = {dir_.path() / "proc", dir_.path() / "sys", dir_.path() / "cgroup"};
    options_.map_directory = (dir_.path() / "map").string();
    options_.trusted_uid = ::geteuid();
    snapshot_.manager = "slurm";
  }

  void process(int pid, const std::string& environ, int start = 100, int uid = 1000) const {
    const std::string base = "proc/" + std::to_string(pid) + "/";
    dir_.write(base + "environ", environ);
    dir_.write(base + "status", "Name:\tx\nUid:\t" + std::to_string(uid) + "\t0\t0\t0\n");
    dir_.write(base + "stat", std::to_string(pid) +
                                  " (x) S 1 1 1 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 " +
                                  std::to_string(start) + " 0 0\n");
  }
  Unit& job(const std::string& uuid, std::vector<int> pids, const std::string& host = "") {
    Unit unit;
    unit.id = uuid;
    unit.uuid = uuid;
    unit.cgrouphostname = host;
    unit.path = "/slurm/uid_1000/job_" + uuid;
    unit.pids = std::move(pids);
    return snapshot_.units.emplace_back(std::move(unit));
  }
  void start() {
    runner_.answer("nvidia-smi",
                   [this](const os::Command&) { return os::CommandResult{.output = query_}; });
    InventoryOptions inventory;
    inventory.paths = options_.paths;
    inventory.type = "nvidia";
    inventory.nvidia_smi = "/fake/nvidia-smi";
    source_ = make_slurm_claims(options_, Inventory::create(inventory, runner_));
  }
  /// "job:evidence:ordinals[:shares]" for each claim.
  std::string claims() {
    if (source_ == nullptr) {
      start();
    }
    const auto claims = source_->claims(snapshot_).value();
    std::string text;
    for (const Claim& claim : claims) {
      constexpr std::array kNames = {"file", "manager", "group", "process", "env"};
      text += (text.empty() ? "" : " ") + claim.uuid + ":" +
              kNames.at(static_cast<std::size_t>(claim.evidence)) + ":";
      for (const std::string& ordinal : claim.ordinals) {
        text += ordinal + ",";
      }
      if (claim.shares > 0) {
        text += ":" + std::to_string(claim.shares);
      }
    }
    return text;
  }
  static std::string env(const std::string& id, const std::string& more) {
    return "SLURM_JOB_ID=" + id + "\0"s + more + "\0"s;
  }

  testing::TempDir dir_;
  testing::FakeRunner runner_;
  SlurmClaimOptions options_;
  std::string query_{kSlurmQuery};
  UnitSnapshot snapshot_;
  std::unique_ptr<ClaimSource> source_;
};

TEST_F(SlurmClaimsTest, PrefersTheGpusOfTheJobToThoseOfAStep) {
  process(10, env("7", "SLURM_STEP_GPUS=1"), 100);
  process(11, env("8", "SLURM_JOB_GPUS=3"), 100);  // of another job
  process(12, env("7", "SLURM_JOB_GPUS=0,1"), 200);
  job("7", {10, 11, 12, 13});
  EXPECT_EQ(claims(), "7:env:0,1,");
}

TEST_F(SlurmClaimsTest, UsesTheStepsGpusIfTheJobsAreUnknown) {
  process(10, env("7", "SLURM_STEP_GPUS=1"));
  job("7", {10});
  job("8", {10});
  EXPECT_EQ(claims(), "7:env:1,");
}

TEST_F(SlurmClaimsTest, KeepsTheFirstAnswerOfTheOldestProcess) {
  process(30, env("7", "SLURM_JOB_GPUS=0"), 500);
  process(20, env("7", "SLURM_JOB_GPUS=1"), 600);
  Unit& unit = job("7", {20, 30});
  EXPECT_EQ(claims(), "7:env:0,");
  // Its environment changes, and new processes have other ones.
  process(30, env("7", "SLURM_JOB_GPUS=0,1"), 500);
  process(5, env("7", "SLURM_JOB_GPUS=1"), 50);
  unit.pids = {5, 20, 30};
  EXPECT_EQ(claims(), "7:env:0,");
  unit.pids = {5};
  EXPECT_EQ(claims(), "7:env:0,");
}

TEST_F(SlurmClaimsTest, ReadsARequeuedJobAgain) {
  process(10, env("7", "SLURM_JOB_GPUS=0"));
  Unit& unit = job("7", {10});
  EXPECT_EQ(claims(), "7:env:0,");
  process(11, env("7", "SLURM_JOB_GPUS=1"));
  unit.pids = {11};
  unit.started += std::chrono::hours(1);
  EXPECT_EQ(claims(), "7:env:1,");
  unit.ended = true;
  EXPECT_EQ(claims(), "");
}

TEST_F(SlurmClaimsTest, ReadsNewProcessesOfAnUnresolvedJobOnly) {
  process(10, env("7", "A=1"));
  Unit& unit = job("7", {10});
  EXPECT_EQ(claims(), "");
  EXPECT_EQ(claims(), "");
  process(10, env("7", "SLURM_JOB_GPUS=1"));  // seen twice: not read again
  EXPECT_EQ(claims(), "");
  process(11, env("7", "SLURM_JOB_GPUS=0"));
  unit.pids = {10, 11};
  EXPECT_EQ(claims(), "7:env:0,");
}

TEST_F(SlurmClaimsTest, ReadsANewlyForkedProcessAgain) {
  process(10, "A=1\0"s);
  job("7", {10});
  EXPECT_EQ(claims(), "");
  process(10, env("7", "SLURM_JOB_GPUS=1"));
  EXPECT_EQ(claims(), "7:env:1,");
}

TEST_F(SlurmClaimsTest, FindsSharesInAnotherProcessIfGpusAreShared) {
  process(10, env("7", "SLURM_JOB_GPUS=0"));
  process(11, env("7", "SLURM_SHARDS_ON_NODE=6"));
  job("7", {10, 11});
  options_.with_shares = true;
  EXPECT_EQ(claims(), "7:env:0,:6");
}

TEST_F(SlurmClaimsTest, TrustsTheStepDaemonFirst) {
  process(10, env("7", "SLURM_JOB_GPUS=1"), 300);
  process(11, env("7", "SLURM_JOB_GPUS=0"), 200, 0);
  std::filesystem::create_symlink("/usr/sbin/slurmstepd", dir_.path() / "proc/11/exe");
  job("7", {10, 11});
  EXPECT_EQ(claims(), "7:manager:0,");
}

TEST_F(SlurmClaimsTest, TrustsNoOtherProgramOfRootAndNoUsersStepDaemon) {
  process(10, env("7", "SLURM_JOB_GPUS=0"), 200, 0);  // sudo keeps its first environment
  std::filesystem::create_symlink("/usr/bin/sudo", dir_.path() / "proc/10/exe");
  process(11, env("8", "SLURM_JOB_GPUS=1"), 200, 1000);
  std::filesystem::create_symlink("/home/u/slurmstepd", dir_.path() / "proc/11/exe");
  job("7", {10});
  job("8", {11});
  EXPECT_EQ(claims(), "7:env:0, 8:env:1,");
  options_.trusted_only = true;
  source_.reset();
  EXPECT_EQ(claims(), "");
}

TEST_F(SlurmClaimsTest, PrefersFilesOfTheProlog) {
  process(10, env("7", "SLURM_JOB_GPUS=0,1"));
  job("7", {10});
  job("8", {}, "node0");
  dir_.write("map/7", "1 shares=3\n");
  dir_.write("map/8", "0\n");
  dir_.write("map/node0.8", "2,3\n");
  EXPECT_EQ(claims(), "7:file:1,:3 8:file:2,3,");
  std::filesystem::remove(dir_.path() / "map/7");
  EXPECT_EQ(claims(), "7:env:0,1, 8:file:2,3,");
}

TEST_F(SlurmClaimsTest, AssignsNothingToAJobWhoseFileNamesNoGpu) {
  process(10, env("7", "SLURM_JOB_GPUS=0,1"));
  job("7", {10});
  dir_.write("map/7", "\n");
  EXPECT_EQ(claims(), "7:file:");
}

TEST_F(SlurmClaimsTest, IgnoresFilesThatOthersCanWrite) {
  job("7", {});
  const auto file = dir_.write("map/7", "0\n");
  ::chmod(file.c_str(), 0666);
  EXPECT_EQ(claims(), "");
  ::chmod(file.c_str(), 0644);
  EXPECT_EQ(claims(), "7:file:0,");
  ::chmod((dir_.path() / "map").c_str(), 0777);
  EXPECT_EQ(claims(), "");
  ::chmod((dir_.path() / "map").c_str(), 0755);
  std::filesystem::remove(file);
  std::filesystem::create_symlink(dir_.write("elsewhere", "0\n"), file);
  EXPECT_EQ(claims(), "");
  std::filesystem::remove(file);
  ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
  EXPECT_EQ(claims(), "");
}

TEST_F(SlurmClaimsTest, IgnoresFilesOfOtherUsers) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "changes the owner of a file";
  }
  job("7", {});
  const auto file = dir_.write("map/7", "0\n");
  ASSERT_EQ(::chown(file.c_str(), 1000, 1000), 0);
  EXPECT_EQ(claims(), "");
}

TEST_F(SlurmClaimsTest, PrefersTheDeviceGroupToTheEnvironment) {
  options_.unified = false;
  options_.mig_minors = {{.capability = 21, .gpu = 2, .gpu_instance = 3},
                         {.capability = 30, .gpu = 2, .gpu_instance = 5}};
  dir_.write("proc/devices", "Character devices:\n235 nvidia-caps\n");
  process(10, env("7", "SLURM_JOB_GPUS=0,1\0SLURM_SHARDS_ON_NODE=4"s));
  job("7", {10});
  dir_.write("cgroup/devices/slurm/uid_1000/job_7/devices.list",
             "c 195:255 rwm\nc 195:1 rwm\nc 195:2 rwm\nc 235:30 r\n");
  EXPECT_EQ(claims(), "7:group:1,3,:4");
}

TEST_F(SlurmClaimsTest, InstancesOfPermutedGpusAreKnownByFilesAndUuids) {
  // The library lists the split GPU c last, and the driver first.
  query_ = kSlurmQuery;
  for (const auto& [from, to] : {std::pair("<minor_number>2", "<minor_number>x"),
                                 std::pair("<minor_number>0", "<minor_number>2"),
                                 std::pair("<minor_number>x", "<minor_number>0")}) {
    query_.replace(query_.find(from), std::string_view(from).size(), to);
  }
  options_.unified = false;
  options_.mig_minors = {{.capability = 21, .gpu = 0, .gpu_instance = 3},
                         {.capability = 30, .gpu = 0, .gpu_instance = 5}};
  dir_.write("proc/devices", "Character devices:\n235 nvidia-caps\n");
  job("7", {});
  dir_.write("cgroup/devices/slurm/uid_1000/job_7/devices.list",
             "c 195:255 rwm\nc 195:0 rwm\nc 235:30 r\n");
  process(11, env("8", "SLURM_JOB_GPUS=2\0CUDA_VISIBLE_DEVICES=MIG-GPU-c/3/0"s));
  job("8", {11});
  job("9", {});
  dir_.write("cgroup/devices/slurm/uid_1000/job_9/devices.list", "c 195:2 rwm\n");
  EXPECT_EQ(claims(), "7:group:3, 8:env:2, 9:group:0,");
}

TEST_F(SlurmClaimsTest, EnvironmentGetsNothingThatTheDeviceGroupDenies) {
  options_.unified = false;
  process(10, env("7", "SLURM_JOB_GPUS=0,1,3"));
  process(11, env("8", "SLURM_JOB_GPUS=0"));
  process(12, env("9", "SLURM_JOB_GPUS=0,1,3"));
  job("7", {10});
  job("8", {11});
  job("9", {12});
  const std::string groups = "cgroup/devices/slurm/uid_1000/";
  dir_.write(groups + "job_7/devices.list", "c 1:3 rwm\n");
  dir_.write(groups + "job_8/devices.list", "a *:* rwm\n");
  dir_.write(groups + "job_9/devices.list", "c 195:255 rwm\nc 195:2 rwm\n");
  // Job 9 is not denied GPU 2, and it is not known which of its instances it may use.
  EXPECT_EQ(claims(), "8:env:0, 9:env:3,");
}

TEST_F(SlurmClaimsTest, UsesTheOrderOfSlurmInTheDeviceGroup) {
  options_.unified = false;
  options_.order = parse_order_map("0:1,1:0");
  job("7", {});
  dir_.write("cgroup/devices/slurm/uid_1000/job_7/devices.list", "c 195:1 rwm\n");
  EXPECT_EQ(claims(), "7:group:0,");
}

TEST_F(SlurmClaimsTest, KeepsGpusOnWhichItsProcessesWereSeen) {
  const auto list = std::make_shared<ProcessList>();
  options_.processes = list;
  options_.order = parse_order_map("4:0");
  process(10, env("7", "SLURM_JOB_GPUS=1,4"));
  job("7", {10, 11});
  job("8", {12});
  EXPECT_EQ(claims(), "7:env:1,4,");
  list->publish({{.vendor = Vendor::kNvidia,
                  .device_uuid = "GPU-a",
                  .index = "0",
                  .gpu_instance = {},
                  .pids = {9, 11}},
                 {.vendor = Vendor::kNvidia,
                  .device_uuid = "GPU-c",
                  .index = "3",
                  .gpu_instance = "5",
                  .pids = {12}},
                 {.vendor = Vendor::kNvidia,
                  .device_uuid = "GPU-x",
                  .index = "9",
                  .gpu_instance = {},
                  .pids = {12}}});
  EXPECT_EQ(claims(), "7:process:4, 7:env:1, 8:process:3,");
  list->publish({});
  EXPECT_EQ(claims(), "7:process:4, 7:env:1, 8:process:3,");
  options_.trusted_only = true;
  list->publish({{.vendor = Vendor::kNvidia,
                  .device_uuid = "GPU-a",
                  .index = "0",
                  .gpu_instance = {},
                  .pids = {11}}});
  source_.reset();
  EXPECT_EQ(claims(), "7:process:4,");
}

std::vector<Device> gpus_with_minors(const std::vector<std::optional<std::uint64_t>>& minors) {
  std::vector<Device> devices(minors.size());
  for (std::size_t i = 0; i < minors.size(); ++i) {
    devices[i].position = i;
    devices[i].index = std::to_string(i);
    devices[i].uuid = "GPU-" + std::to_string(i);
    devices[i].driver_minor = minors[i];
    devices[i].lost = !minors[i];
  }
  return devices;
}

TEST(FileNumbers, AreTheMinorsOfTheDriver) {
  EXPECT_THAT(indexes_by_file(gpus_with_minors({0, 1, 2})), IsEmpty()) << "nothing to translate";
  EXPECT_EQ(indexes_by_file(gpus_with_minors({2, 3, 0, 1})),
            (FileNumbers{{"0", "2"}, {"1", "3"}, {"2", "0"}, {"3", "1"}}));
  // Its minor is not known any more, and it is the only one left.
  EXPECT_EQ(indexes_by_file(gpus_with_minors({2, {}, 0, 1})),
            (FileNumbers{{"0", "2"}, {"1", "3"}, {"2", "0"}, {"3", "1"}}));
}

TEST(FileNumbers, AreUnknownWhereTheyWouldBeGuesses) {
  auto devices = gpus_with_minors({1, {}});
  devices[1].lost = false;
  EXPECT_THAT(indexes_by_file(devices), IsEmpty()) << "a tool that lists no minors";
  EXPECT_THAT(indexes_by_file(gpus_with_minors({1, 1})), IsEmpty());
  devices = gpus_with_minors({1, 0});
  devices[0].split = true;
  EXPECT_THAT(indexes_by_file(devices), IsEmpty());
}

TEST(FileNumbers, OfAmdAreTheOrderOfRenderNodes) {
  auto devices = gpus_with_minors({{}, {}, {}});
  for (std::size_t i = 0; i < devices.size(); ++i) {
    devices[i].vendor = Vendor::kAmd;
    devices[i].render_minor = i == 0 ? 131 : 128 + static_cast<unsigned>(i);
  }
  EXPECT_EQ(indexes_by_file(devices), (FileNumbers{{"0", "1"}, {"1", "2"}, {"2", "0"}}));
}

TEST_F(SlurmClaimsTest, AsManyUuidsAsNumbersSayWhichGpusTheyAre) {
  process(10, env("7", "SLURM_JOB_GPUS=0,2\0CUDA_VISIBLE_DEVICES=GPU-b,MIG-GPU-c/5/0"s));
  process(11, env("8", "SLURM_JOB_GPUS=0,1\0CUDA_VISIBLE_DEVICES=GPU-b"s));
  process(12, env("9", "SLURM_JOB_GPUS=0\0CUDA_VISIBLE_DEVICES=GPU-unknown"s));
  process(13, env("10", "SLURM_JOB_GPUS=0\0CUDA_VISIBLE_DEVICES=1"s));
  job("7", {10});
  job("8", {11});
  job("9", {12});
  job("10", {13});
  EXPECT_EQ(claims(), "7:env:1,3, 8:env:0,1, 9:env:0, 10:env:0,");
}

TEST_F(SlurmClaimsTest, ProcessesOnOtherGpusOnlyRefuteTheNumbers) {
  const auto list = std::make_shared<ProcessList>();
  options_.processes = list;
  process(10, env("7", "SLURM_JOB_GPUS=1"));
  job("7", {10});
  list->publish({{.vendor = Vendor::kNvidia,
                  .device_uuid = "GPU-a",
                  .index = "0",
                  .gpu_instance = {},
                  .pids = {10}}});
  EXPECT_EQ(claims(), "7:process:0,");
}

TEST_F(SlurmClaimsTest, SurvivesHostileProcesses) {
  process(10, std::string(3 << 20, 'A'));
  process(11, "SLURM_JOB_ID\0=\0==\0SLURM_JOB_GPUS\0"s);
  process(12, "");
  dir_.write("proc/12/stat", ")))) (((\n");
  std::vector<int> many = {10, 11, 12};
  for (int pid = 1000; pid < 101'000; ++pid) {
    many.push_back(pid);
  }
  job("7", many);
  EXPECT_EQ(claims(), "");
  EXPECT_EQ(claims(), "");
}

}  // namespace
}  // namespace ceems::exporter::gpu
