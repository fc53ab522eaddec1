#include "tool/validate/load_process.h"

#include <sched.h>

#include <cerrno>
#include <cmath>
#include <csignal>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/read_file.h"
#include "testing/temp_dir.h"
#include "tool/validate/real_node.h"

namespace ceems::tool::validate {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

TEST(Kernel, OfEachClassWorks) {
  for (const LoadClass load : {LoadClass::kCompute, LoadClass::kScalar, LoadClass::kMemory}) {
    Kernel kernel(load);
    const double first = kernel.block();
    EXPECT_TRUE(std::isfinite(first));
    EXPECT_TRUE(std::isfinite(kernel.block()));
  }
}

TEST(CgroupRoots, AreThoseOfBothVersions) {
  const ::ceems::testing::TempDir dir;
  const std::string root = dir.path().string();
  EXPECT_THAT(cgroup_roots(root).error().message, HasSubstr("no cgroups below"));
  dir.write("cpu,cpuacct/tasks", "");
  dir.write("memory/tasks", "");
  fs::create_symlink("cpu,cpuacct", dir.path() / "cpu");
  fs::create_symlink("cpu,cpuacct", dir.path() / "cpuacct");
  EXPECT_EQ(cgroup_roots(root).value(),
            (std::vector<std::string>{root + "/cpu,cpuacct", root + "/memory"}));
  dir.write("cgroup.controllers", "cpu\n");
  EXPECT_EQ(cgroup_roots(root).value(), std::vector<std::string>{root});
}

/// CPU 0 may be forbidden to this process.
int usable_cpu() {
  return usable_cores({}).front().front();
}

TEST(LoadProcess, RunsInItsCgroupUntilItIsDestroyed) {
  const ::ceems::testing::TempDir dir;
  dir.write("ceems_validate/load-1/cgroup.procs", "");
  pid_t pid = 0;
  {
    const auto load = LoadProcess::start({dir.path().string()}, "load-1",
                                         {.load = LoadClass::kScalar, .cpus = {usable_cpu()}})
                          .value();
    pid = load.pid();
    EXPECT_EQ(host::read_file((dir.path() / "ceems_validate/load-1/cgroup.procs").string()).value(),
              "0\n");
    EXPECT_FALSE(load.ended());
    BusyProcesses processes("/proc", 100);
    static_cast<void>(processes.since_last(1));
    for (int i = 0; i < 50 && processes.since_last(0.1).find(fmt::format("(process {})", pid)) ==
                                  std::string::npos;
         ++i) {
      ASSERT_LT(i, 49) << "it uses no CPU time";
      ::usleep(100'000);
    }
    ::kill(pid, SIGKILL);
    for (int i = 0; i < 500 && !load.ended(); ++i) {
      ::usleep(10'000);
    }
    EXPECT_TRUE(load.ended());
    fs::remove(dir.path() / "ceems_validate/load-1/cgroup.procs");
  }
  EXPECT_EQ(::kill(pid, 0), -1);
  EXPECT_EQ(errno, ESRCH);
  EXPECT_FALSE(fs::exists(dir.path() / "ceems_validate"));
}

TEST(LoadProcess, SaysWhyItCannotRun) {
  const ::ceems::testing::TempDir dir;
  EXPECT_THAT(
      LoadProcess::start({dir.path().string()}, "load-1", {.cpus = {usable_cpu()}}).error().message,
      HasSubstr("a load cannot enter its cgroup"));
  dir.write("ceems_validate/load-2/cgroup.procs", "");
  EXPECT_THAT(
      LoadProcess::start({dir.path().string()}, "load-2", {.cpus = {60'000}}).error().message,
      HasSubstr("a load may not run on one of its CPUs (60000)"));
  dir.write("file", "");
  EXPECT_THAT(
      LoadProcess::start({(dir.path() / "file").string()}, "load-3", {.cpus = {0}}).error().message,
      HasSubstr("cannot make the cgroup"));
}

TEST(BusyProcesses, NamesTheThreeThatUseMost) {
  const ::ceems::testing::TempDir dir;
  const auto write = [&](int pid, std::string_view name, int user, int system) {
    dir.write(fmt::format("{}/stat", pid),
              fmt::format("{} ({}) R 1 1 1 0 -1 0 1 2 3 4 {} {} 0 0", pid, name, user, system));
  };
  write(10, "old (daemon)", 5000, 5000);
  write(11, "idle", 7, 0);
  dir.write("12/stat", "12 odd");
  dir.write("self/stat", "x");
  BusyProcesses processes(dir.path().string(), 100);
  static_cast<void>(processes.since_last(10));
  EXPECT_EQ(processes.since_last(10), "");
  write(10, "old (daemon)", 5400, 5100);  // 5 s in 10 s
  write(13, "make\x1b", 300, 0);
  write(14, "cc1", 200, 0);
  write(15, "ld", 100, 0);
  EXPECT_EQ(
      processes.since_last(10),
      "50 % of a CPU by old (daemon) (process 10), 30 % of a CPU by make\\x1b (process 13), 20 "
      "% of a CPU by cc1 (process 14)");
}

TEST(KindOfNode, NamesNoNode) {
  const ::ceems::testing::TempDir dir;
  dir.write("proc/cpuinfo",
            "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 1\nmodel "
            "name\t: AMD EPYC 7763 64-Core Processor\nphysical id\t: 0\ncore id\t: 0\nflags\t\t: "
            "fpu\n\n");
  dir.write("proc/stat", "cpu  1 2 3 4 5 6 7 8\ncpu0 1 2 3 4 5 6 7 8\n");
  dir.write("proc/meminfo", "MemTotal: 263000000 kB\n");
  const NodeKind node = kind_of_node(
      {.proc = dir.path() / "proc", .sys = dir.path() / "sys", .cgroup = dir.path() / "cgroup"});
  EXPECT_EQ(node.cpu, "AMD EPYC 7763 64-Core Processor");
  EXPECT_EQ(node.cpu_family, "AMD EPYC Milan");
  EXPECT_EQ(node.sockets, 1);
  EXPECT_EQ(node.cpus, 1);
  EXPECT_DOUBLE_EQ(node.memory_gib, 251);
  EXPECT_FALSE(node.virtual_machine);
  EXPECT_THAT(node.kernel, ::testing::ContainsRegex("^[0-9.]+$"));
}

}  // namespace
}  // namespace ceems::tool::validate
