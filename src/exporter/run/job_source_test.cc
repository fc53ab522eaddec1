#include "exporter/run/job_source.h"

#include <chrono>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/fake_clock.h"
#include "testing/temp_dir.h"

namespace ceems::exporter::run {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// A node of plain files with a job in a cgroup (v2) and the processes 10 (this one), 11 (its
/// child) and 12 (of the job, but started by its manager).
class JobSourceTest : public ::testing::Test {
 protected:
  JobSourceTest() {
    root_.write("cgroup/cgroup.controllers", "cpuset cpu io memory pids\n");
    set_cgroup(5'000'000, 1'000'000, 3000);
    root_.write("cgroup/slurm/job_7/step_0/cgroup.procs", "12\n");
    root_.write("cgroup/slurm/job_7/cgroup.procs", "10\n11\n");
    put_process(11, 10, 200);
    put_process(12, 1, 400);
    root_.write("proc/11/environ", "A=1");
    root_.write("proc/12/environ", std::string("A=1\0SLURM_JOB_ID=7\0B=2\0", 23));
    root_.write("proc/meminfo", "MemTotal: 1000000 kB\n");
    root_.write("proc/stat", "cpu  0 0 0 0 0 0 0 0 0 0\ncpu0 0 0 0 0 0 0 0 0 0 0\n");
  }

  void set_cgroup(long user, long system, long anonymous) {
    const std::string path = "cgroup/slurm/job_7/";
    root_.write(path + "cpu.stat", "usage_usec " + std::to_string(user + system) + "\nuser_usec " +
                                       std::to_string(user) + "\nsystem_usec " +
                                       std::to_string(system) + "\n");
    root_.write(path + "memory.stat", "anon " + std::to_string(anonymous) + "\nfile 500\n");
    root_.write(path + "memory.current", std::to_string(anonymous + 500) + "\n");
    root_.write(path + "memory.max", "max\n");
    root_.write(path + "cgroup.events", "populated 1\n");
  }
  void put_process(int pid, int parent, int ticks) {
    root_.write("proc/" + std::to_string(pid) + "/stat",
                std::to_string(pid) + " (a) S " + std::to_string(parent) + " 1 1 0 -1 0 0 0 0 0 " +
                    std::to_string(ticks) + " 0 0 0 20 0 1 0 5 4096 10 1\n");
    root_.write("proc/" + std::to_string(pid) + "/statm", "20 10 4 1 0 3 0\n");
  }
  JobSource source(const std::string& manager, const std::string& cgroups) {
    Job job;
    set_manager(job, manager, "7");
    return JobSource({.paths = {.proc = root_.path() / "proc",
                                .sys = root_.path() / "sys",
                                .cgroup = root_.path() / "cgroup"},
                      .job = job,
                      .self_cgroups = cgroups,
                      .allowed_cpus = {0, 2, 3},
                      .cgroup_version = "v2",
                      .self = 10},
                     clock_);
  }

  testing::TempDir root_;
  testing::FakeClock clock_;
};

TEST_F(JobSourceTest, ReadsTheCgroupOfTheJobFromNowOn) {
  JobSource job = source("slurm", "0::/slurm/job_7/step_0/task_0\n");
  EXPECT_TRUE(job.has_cgroup());
  job.want_processes();
  auto snapshot = job.snapshot(milliseconds(0)).value();
  ASSERT_EQ(snapshot->units.size(), 1U);
  EXPECT_EQ(snapshot->manager, "slurm");
  EXPECT_EQ(snapshot->units[0].uuid, "7");
  EXPECT_EQ(snapshot->units[0].stats.cpu_seconds(), 0);
  EXPECT_THAT(snapshot->units[0].pids, ElementsAre(10, 11, 12));
  clock_.advance(milliseconds(1000));
  set_cgroup(6'500'000, 1'250'000, 4000);
  snapshot = job.snapshot(milliseconds(0)).value();
  EXPECT_DOUBLE_EQ(snapshot->units[0].stats.cpu_seconds(), 1.75);
  EXPECT_DOUBLE_EQ(job.last().cpu_user_seconds, 1.5);
  EXPECT_EQ(snapshot->units[0].stats.memory_held_bytes, 4000U);
  EXPECT_EQ(snapshot->units[0].stats.reserved_cpus, 3);
  EXPECT_THAT(*snapshot->units[0].stats.cpu_set, ElementsAre(0, 2, 3));
}

TEST_F(JobSourceTest, ReadsProcessesWhereItHasNoCgroup) {
  for (const char* cgroups : {"0::/\n", "0::/slurm/job_8/step_0\n", ""}) {
    JobSource job = source("slurm", cgroups);
    EXPECT_FALSE(job.has_cgroup());
    const auto snapshot = job.snapshot(milliseconds(0)).value();
    const auto tick = 1.0 / static_cast<double>(::sysconf(_SC_CLK_TCK));
    EXPECT_DOUBLE_EQ(job.last().cpu_user_seconds, 200 * tick);  // of the child alone: 12 is older
    EXPECT_THAT(snapshot->units[0].pids, IsEmpty());            // not wanted
    EXPECT_EQ(snapshot->units[0].stats.memory_held_bytes,
              2U * 6U * static_cast<unsigned long>(::sysconf(_SC_PAGESIZE)));
    EXPECT_EQ(snapshot->units[0].stats.reserved_cpus, 3);
  }
}

TEST_F(JobSourceTest, ReservesNothingWithoutAManager) {
  JobSource job = source("run", "0::/slurm/job_7\n");
  EXPECT_FALSE(job.has_cgroup());
  job.want_processes();
  const auto snapshot = job.snapshot(milliseconds(0)).value();
  EXPECT_EQ(snapshot->units[0].stats.reserved_cpus, 0);
  EXPECT_THAT(snapshot->units[0].pids, ElementsAre(11));
  EXPECT_EQ(job.cpus(), 3);
}

TEST_F(JobSourceTest, WatchesAProcessOfOthers) {
  put_process(13, 12, 50);
  Job job;
  set_manager(job, "run", "12");
  job.watched = 12;
  JobSource source({.paths = {.proc = root_.path() / "proc",
                              .sys = root_.path() / "sys",
                              .cgroup = root_.path() / "cgroup"},
                    .job = job,
                    .allowed_cpus = {0},
                    .self = 10},
                   clock_);
  source.want_processes();
  // Children of this process are helpers then, but there are none.
  EXPECT_THAT(source.snapshot(milliseconds(0)).value()->units[0].pids, ElementsAre(11, 12, 13));
  const auto tick = 1.0 / static_cast<double>(::sysconf(_SC_CLK_TCK));
  EXPECT_DOUBLE_EQ(source.last().cpu_user_seconds, 200 * tick);  // of 11
  put_process(12, 1, 430);
  clock_.advance(milliseconds(1000));
  ASSERT_TRUE(source.snapshot(milliseconds(0)));
  EXPECT_DOUBLE_EQ(source.last().cpu_user_seconds, 230 * tick);
}

TEST_F(JobSourceTest, SharesAYoungSnapshot) {
  JobSource job = source("run", "");
  const auto first = job.snapshot(milliseconds(0)).value();
  clock_.advance(milliseconds(100));
  EXPECT_EQ(job.snapshot(milliseconds(100)).value(), first);
  EXPECT_NE(job.snapshot(milliseconds(99)).value(), first);
}

}  // namespace
}  // namespace ceems::exporter::run
