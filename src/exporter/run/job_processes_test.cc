#include "exporter/run/job_processes.h"

#include <unistd.h>

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/temp_dir.h"

namespace ceems::exporter::run {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// Process 10 is this one, 11 its child, 12 a grandchild. 20 is in the cgroup of job 7, 21 a child
/// of it elsewhere, 22 has the job's number in its environment, and 30 is none of these. Cgroups
/// are as in both versions, because the version is that of the machine that runs the test.
class JobProcessesTest : public ::testing::Test {
 protected:
  JobProcessesTest() {
    root_.write("cgroup/cgroup.controllers", "cpu memory\n");
    for (const char* hierarchy : {"cgroup", "cgroup/cpu,cpuacct"}) {
      root_.write(hierarchy + std::string("/slurm/job_7/cgroup.procs"), "20\n");
    }
    put(10, 1, "/user.slice", "SLURM_JOB_ID=8");
    put(11, 10, "/user.slice", "A=1");
    put(12, 11, "/user.slice", "");
    put(20, 1, "/slurm/job_7/step_0/task_0", "A=1");
    put(21, 20, "/other", "A=1");
    put(22, 1, "/other", std::string("A=1\0SLURM_JOB_ID=7\0SLURM_JOB_NAME=x=y\0", 38));
    put(30, 1, "/slurm/job_77/step_0", "SLURM_JOB_ID=77");
    root_.write("proc/99/other", "");  // a process that has just ended
  }
  void put(int pid, int parent, const std::string& cgroup, const std::string& environment) {
    const std::string folder = "proc/" + std::to_string(pid) + "/";
    root_.write(folder + "stat", std::to_string(pid) + " (a) S " + std::to_string(parent) +
                                     " 1 1 0 -1 0 0 0 0 0 1 0 0 0 20 0 1 0 5 4096 10 1\n");
    root_.write(folder + "cgroup", "4:cpu,cpuacct:" + cgroup + "\n0::" + cgroup + "\n");
    root_.write(folder + "environ", environment);
  }
  static Job job(const std::string& manager, const std::string& id) {
    Job made;
    set_manager(made, manager, id);
    return made;
  }

  testing::TempDir root_;
  host::Paths paths_{.proc = root_.path() / "proc",
                     .sys = root_.path() / "sys",
                     .cgroup = root_.path() / "cgroup"};
};

TEST_F(JobProcessesTest, FindsAJobByItsCgroupAndItsEnvironment) {
  EXPECT_THAT(find_processes(paths_, job("slurm", "7")).own, ElementsAre(20, 22));
  EXPECT_THAT(find_processes(paths_, job("slurm", "8")).own, ElementsAre(10));
  EXPECT_THAT(find_processes(paths_, job("slurm", "9")).own, IsEmpty());
  EXPECT_FALSE(find_processes(paths_, job("slurm", "7")).others);
}

TEST_F(JobProcessesTest, OtherUsersAreNotOwn) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "needs root to give a file away";
  }
  ASSERT_EQ(::chown((root_.path() / "proc/20").c_str(), 65534, 65534), 0);
  const auto found = find_processes(paths_, job("slurm", "7"));
  EXPECT_THAT(found.own, ElementsAre(22));
  EXPECT_TRUE(found.others);
}

TEST_F(JobProcessesTest, ReadsVariables) {
  const std::string environment = environment_of(paths_, 22);
  EXPECT_EQ(variable_in(environment, "SLURM_JOB_NAME"), "x=y");
  EXPECT_EQ(variable_in(environment, "SLURM_JOB"), "");
  EXPECT_EQ(variable_in(environment_of(paths_, 5), "A"), "");
}

TEST_F(JobProcessesTest, MembersAreDescendants) {
  const Membership members(paths_, job("run", "10"), 10);
  EXPECT_TRUE(members.has(12));
  EXPECT_TRUE(members.has(10));
  EXPECT_FALSE(members.has(20));
  EXPECT_FALSE(members.has(1));
  EXPECT_FALSE(members.has(99));
}

TEST_F(JobProcessesTest, MembersHaveTheNumberOfTheJobOrAncestorsWithIt) {
  const Membership members(paths_, job("slurm", "8"), 11);
  EXPECT_TRUE(members.has(12));
  EXPECT_TRUE(members.has(10));
  EXPECT_FALSE(members.has(22));
}

TEST_F(JobProcessesTest, MembersAreInTheCgroup) {
  const Membership members(paths_, job("slurm", "7"), 20);
  EXPECT_TRUE(members.has(20));
  EXPECT_FALSE(members.has(21));
  EXPECT_FALSE(members.has(22));
  EXPECT_FALSE(members.has(30));
}

TEST_F(JobProcessesTest, CirclesEnd) {
  put(40, 41, "/x", "");
  put(41, 40, "/x", "");
  EXPECT_FALSE(Membership(paths_, job("run", "10"), 10).has(40));
}

}  // namespace
}  // namespace ceems::exporter::run
