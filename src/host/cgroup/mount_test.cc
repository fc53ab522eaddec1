#include "host/cgroup/mount.h"

#include <gtest/gtest.h>

#include "testing/temp_dir.h"

namespace ceems::host {
namespace {

TEST(CgroupMount, ForcedVersionsDecideForPlainFiles) {
  const testing::TempDir root;
  EXPECT_EQ(detect_cgroup(root.path(), "v2").mode, CgroupMode::kUnified);
  EXPECT_EQ(detect_cgroup(root.path(), "v1").mode, CgroupMode::kLegacy);
  EXPECT_FALSE(detect_cgroup(root.path(), "v2").live);
  EXPECT_FALSE(detect_cgroup(root.path(), "v1").live);
}

TEST(CgroupMount, FileSystemOfTheMachineIsLive) {
  if (!std::filesystem::exists("/sys/fs/cgroup/memory/memory.stat") &&
      !std::filesystem::exists("/sys/fs/cgroup/cgroup.controllers")) {
    GTEST_SKIP() << "no cgroup file system at /sys/fs/cgroup";
  }
  const CgroupMount mount = detect_cgroup("/sys/fs/cgroup");
  EXPECT_TRUE(mount.live);
  EXPECT_EQ(mount.mode == CgroupMode::kUnified,
            std::filesystem::exists("/sys/fs/cgroup/cgroup.controllers"));
}

TEST(V1Hierarchy, PrefersTheJointDirectoryOnlyIfAsked) {
  const testing::TempDir root;
  root.write("cpu,cpuacct/x", "");
  root.write("cpuacct/x", "");
  EXPECT_EQ(find_v1_hierarchy(root.path(), "cpuacct", true), "cpu,cpuacct");
  EXPECT_EQ(find_v1_hierarchy(root.path(), "cpuacct", false), "cpuacct");
  EXPECT_EQ(find_v1_hierarchy(root.path(), "cpu", false), "cpu,cpuacct");
}

TEST(V1Hierarchy, FallsBackToSeparateAndReversedMounts) {
  const testing::TempDir apart;
  apart.write("cpu/x", "");
  apart.write("cpuacct/x", "");
  EXPECT_EQ(find_v1_hierarchy(apart.path(), "cpuacct", true), "cpuacct");
  EXPECT_EQ(find_v1_hierarchy(apart.path(), "cpu", true), "cpu");
  EXPECT_EQ(find_v1_hierarchy(apart.path(), "memory", true), std::nullopt);

  const testing::TempDir reversed;
  reversed.write("cpuacct,cpu/x", "");
  EXPECT_EQ(find_v1_hierarchy(reversed.path(), "cpuacct", true), "cpuacct,cpu");
}

TEST(SlurmRoots, AreMatchedByTheirWholeName) {
  EXPECT_EQ(slurm_scope_node("slurmstepd.scope"), "");
  EXPECT_EQ(slurm_scope_node("my_node0_slurmstepd.scope"), "my_node0");
  EXPECT_FALSE(slurm_scope_node("xslurmstepd.scope"));
  EXPECT_FALSE(slurm_scope_node("slurmd.service"));
  EXPECT_EQ(slurm_v1_node("slurm"), "");
  EXPECT_EQ(slurm_v1_node("slurm_my_host"), "my_host");
  EXPECT_FALSE(slurm_v1_node("slurmd.service"));
}

TEST(ResourceManager, IsDetectedByItsCgroups) {
  const CgroupMount v2{CgroupMode::kUnified, false};
  const auto present = [&](const std::string& file) {
    const testing::TempDir root;
    root.write(file, "");
    const Paths paths{.cgroup = root.path()};
    return resource_manager_present(paths, v2, "cpuacct");
  };
  EXPECT_TRUE(present("system.slice/n1_slurmstepd.scope/cgroup.procs"));
  EXPECT_TRUE(present("kubepods.slice/cgroup.procs"));
  EXPECT_TRUE(present("machine.slice/machine-qemu\\x2d1\\x2dvm.scope/cgroup.procs"));
  EXPECT_TRUE(present("lsf/hpc1/job.6[1].7.8/cgroup.procs"));
  EXPECT_TRUE(present("pbs_jobs.service/jobs/12[3].srv/cgroup.procs"));
  EXPECT_FALSE(present("system.slice/ssh.service/cgroup.procs"));
  EXPECT_FALSE(present("machine.slice/libpod-1.scope/cgroup.procs"));
}

}  // namespace
}  // namespace ceems::host
