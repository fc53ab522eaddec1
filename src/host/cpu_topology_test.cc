#include "host/cpu_topology.h"

#include <string>

#include <gtest/gtest.h>

#include "testing/temp_dir.h"

namespace ceems::host {
namespace {

void add_cpu(const testing::TempDir& root, int cpu, const std::string& package, const char* core) {
  const std::string directory = "sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
  root.write(directory + "physical_package_id", package + "\n");
  root.write(directory + "core_cpus_list", std::string(core) + "\n");
}

Paths below(const testing::TempDir& root) {
  return {.proc = root.path() / "proc", .sys = root.path() / "sys"};
}

TEST(CpuTopology, NumbersSocketsAndCoresOfSysfs) {
  const testing::TempDir root;
  // Two sockets with the numbers 0 and 36, two cores each; CPU 3 is offline.
  add_cpu(root, 0, "0", "0,4");
  add_cpu(root, 1, "36", "1,5");
  add_cpu(root, 2, "0", "2,6");
  add_cpu(root, 4, "0", "0,4");
  add_cpu(root, 5, "36", "1,5");
  add_cpu(root, 10, "36", "10");
  root.write("sys/devices/system/cpu/cpu3/online", "0\n");
  root.write("sys/devices/system/cpu/cpufreq/x", "\n");
  const CpuTopology topology = read_cpu_topology(below(root));
  EXPECT_EQ(topology.packages, (std::vector{0, 36}));
  EXPECT_EQ(topology.cores, 4U);
  ASSERT_EQ(topology.cpus.size(), 11U);
  EXPECT_EQ(topology.cpus[0].socket, 0);
  EXPECT_EQ(topology.cpus[1].socket, 1);
  EXPECT_EQ(topology.cpus[3].socket, -1);
  EXPECT_EQ(topology.cpus[4].core, topology.cpus[0].core);
  EXPECT_EQ(topology.cpus[5].core, topology.cpus[1].core);
  EXPECT_NE(topology.cpus[2].core, topology.cpus[0].core);
  EXPECT_EQ(topology.cpus[10].core, 3);
  EXPECT_EQ(topology.socket_of_package(36), 1);
  EXPECT_EQ(topology.socket_of_package(1), -1);
}

TEST(CpuTopology, FallsBackOnCpuinfo) {
  const testing::TempDir root;
  root.write("proc/cpuinfo",
             "processor\t: 0\nphysical id\t: 1\ncore id\t\t: 0\n\n"
             "processor\t: 1\nphysical id\t: 0\ncore id\t\t: 0\n\n"
             "processor\t: 2\nphysical id\t: 1\ncore id\t\t: 0\n");
  const CpuTopology topology = read_cpu_topology(below(root));
  EXPECT_EQ(topology.packages, (std::vector{0, 1}));
  EXPECT_EQ(topology.cores, 2U);
  EXPECT_EQ(topology.cpus[0].socket, 1);
  EXPECT_EQ(topology.cpus[2].core, topology.cpus[0].core);
  EXPECT_NE(topology.cpus[1].core, topology.cpus[0].core);
}

TEST(CpuTopology, KnowsNothingWithoutIds) {
  const testing::TempDir root;
  EXPECT_TRUE(read_cpu_topology(below(root)).packages.empty());
  for (const char* text :
       {"", "processor: x\nphysical id: 0\ncore id: 0\n", "physical id: 0\ncore id: 1\n",
        "processor: 0\n", "processor: -2\nphysical id: 0\ncore id: 0\n",
        "processor: 0\nphysical id: -1\ncore id: 0\n",
        "processor: 99999999\nphysical id: 0\ncore id: 0\n"}) {
    const CpuTopology topology = parse_cpu_topology(text);
    EXPECT_TRUE(topology.cpus.empty()) << text;
    EXPECT_EQ(topology.cores, 0U) << text;
  }
}

}  // namespace
}  // namespace ceems::host
