#include "exporter/profile/command.h"

#include <sys/stat.h>

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "testing/temp_dir.h"

namespace ceems::exporter::profile {
namespace {

TEST(FindUnit, KnowsTheCgroupsOfManagers) {
  EXPECT_TRUE(names_unit("job_42", "42"));
  EXPECT_TRUE(names_unit("ssh.service", "ssh"));
  EXPECT_TRUE(names_unit("kubepods-besteffort-pod3a61e732_ee99_4ea7_b1f1_fd9c6f4f0b1a.slice",
                         "3a61e732-ee99-4ea7-b1f1-fd9c6f4f0b1a"));
  EXPECT_TRUE(names_unit("pod3a61e732-ee99-4ea7-b1f1-fd9c6f4f0b1a",
                         "3a61e732-ee99-4ea7-b1f1-fd9c6f4f0b1a"));
  EXPECT_TRUE(names_unit("machine-qemu-1-instance-00000001.scope", "instance-00000001"));
  EXPECT_FALSE(names_unit("job_421", "42"));
  EXPECT_FALSE(names_unit("step_42", "42"));
  EXPECT_FALSE(names_unit("anything", ""));
}

TEST(FindUnit, FindsTheUppermostCgroups) {
  const testing::TempDir root;
  root.write("slurm/uid_0/job_42/step_0/job_42/x", "");
  root.write("slurm/uid_0/job_43/x", "");
  root.write("other/job_42/x", "");
  const auto found = find_unit(root.path().string(), "42");
  ASSERT_EQ(found.size(), 2U);
  for (const FoundCgroup& cgroup : found) {
    EXPECT_TRUE(cgroup.path == "/other/job_42" || cgroup.path == "/slurm/uid_0/job_42");
    struct stat info{};
    ASSERT_EQ(::stat((root.path().string() + cgroup.path).c_str(), &info), 0);
    EXPECT_EQ(cgroup.id, info.st_ino);
  }
  EXPECT_TRUE(find_unit(root.path().string(), "44").empty());
  EXPECT_TRUE(find_unit("/does/not/exist", "44").empty());
}

TEST(FindUnit, ListsProcesses) {
  const testing::TempDir root;
  root.write("job_42/cgroup.procs", "");
  root.write("job_42/step_0/cgroup.procs", "12\n13\n");
  root.write("job_42/step_0/task_0/cgroup.procs", "14\nx\n");
  auto pids = processes_in((root.path() / "job_42").string());
  std::ranges::sort(pids);
  EXPECT_EQ(pids, (std::vector<pid_t>{12, 13, 14}));
  EXPECT_TRUE(processes_in("/does/not/exist").empty());
}

}  // namespace
}  // namespace ceems::exporter::profile
