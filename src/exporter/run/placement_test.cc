#include "exporter/run/placement.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/temp_dir.h"

namespace ceems::exporter::run {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class PlacementTest : public ::testing::Test {
 protected:
  void put(int pid, int ticks, const std::string& variables, const std::string& cpus) {
    const std::string folder = "proc/" + std::to_string(pid) + "/";
    root_.write(folder + "stat", std::to_string(pid) + " (a) S 1 1 1 0 -1 0 0 0 0 0 " +
                                     std::to_string(ticks) + " 0 0 0 20 0 1 0 5 4096 10 1\n");
    root_.write(folder + "status",
                "Name:\ta\nCpus_allowed:\tff\nCpus_allowed_list:\t" + cpus + "\n");
    std::string environment = variables + " ";
    for (char& c : environment) {
      c = c == ' ' ? '\0' : c;
    }
    root_.write(folder + "environ", environment);
  }
  void put_siblings(int cpu, const std::string& list) {
    root_.write(
        "sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list",
        list + "\n");
  }

  testing::TempDir root_;
  host::Paths paths_{.proc = root_.path() / "proc",
                     .sys = root_.path() / "sys",
                     .cgroup = root_.path() / "cgroup"};
};

TEST_F(PlacementTest, FindsRanksByTheirEnvironment) {
  put(10, 1, "SLURM_PROCID=0", "0-7");  // the batch script, not a rank
  put(11, 5, "SLURM_PROCID=1 SLURM_STEP_ID=0", "0-7");
  put(12, 900, "A=1 SLURM_PROCID=1 SLURM_STEP_ID=0", "4,6");  // its busiest process
  put(13, 1, "SLURM_PROCID=0 SLURM_STEP_ID=0 PMIX_RANK=0", "0-3");
  put(14, 1, "OMPI_COMM_WORLD_RANK=2", "");
  put(15, 1, "PMI_RANK=x", "0");
  const auto ranks = read_ranks(paths_, {10, 11, 12, 13, 14, 15, 99});
  ASSERT_EQ(ranks.size(), 2U);
  EXPECT_EQ(ranks[0].number, 0U);
  EXPECT_THAT(ranks[0].cpus, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(ranks[1].cpus, ElementsAre(4, 6));
}

TEST_F(PlacementTest, DescribesRanksAndDevices) {
  for (int cpu = 0; cpu < 4; ++cpu) {
    put_siblings(cpu, cpu % 2 == 0 ? "0,2" : "1,3");
  }
  EXPECT_EQ(placement_text(paths_, {}), "");
  EXPECT_EQ(placement_text(paths_, {{.number = 0, .cpus = {1}}}), "1 rank on 1 CPU (1 a core)");
  EXPECT_EQ(placement_text(paths_, {{.number = 0, .cpus = {0, 2}}, {.number = 1, .cpus = {1, 3}}}),
            "2 ranks, each on 2 CPUs (2 a core)");
  root_.write("sys/bus/pci/devices/0000:10:00.0/class", "0x030200\n");
  root_.write("sys/bus/pci/devices/0000:10:00.0/vendor", "0x10de\n");
  root_.write("sys/bus/pci/devices/0000:10:00.0/numa_node", "1\n");
  root_.write("sys/class/infiniband/mlx5_0/device/numa_node", "0\n");
  root_.write("sys/class/infiniband/mlx5_1/device/numa_node", "-1\n");
  EXPECT_EQ(
      placement_text(paths_, {{.number = 0, .cpus = {0, 1}}, {.number = 1, .cpus = {1, 2, 3}}}),
      "2 ranks, each on 2 to 3 CPUs (1 to 2 a core); GPUs on NUMA node 1; mlx5_0 on NUMA node 0");
}

TEST_F(PlacementTest, NamesRanksThatShareTooFewCpus) {
  EXPECT_THAT(placement_faults({{.number = 0, .cpus = {0, 1}}, {.number = 1, .cpus = {0, 1}}}),
              IsEmpty());
  std::vector<Rank> ranks{{.number = 7, .cpus = {9}}};
  for (std::uint64_t number = 0; number < 3; ++number) {
    ranks.push_back({.number = number, .cpus = {0, 1}});
  }
  EXPECT_THAT(placement_faults(ranks), ElementsAre("3 ranks share 2 CPUs (0-1): 0, 1, 2"));
  for (std::uint64_t number = 10; number < 19; ++number) {
    ranks.push_back({.number = number, .cpus = {0, 2, 3, 4}});
  }
  EXPECT_THAT(placement_faults(ranks),
              ElementsAre("3 ranks share 2 CPUs (0-1): 0, 1, 2",
                          "9 ranks share 4 CPUs (0,2-4): 10, 11, 12, 13, 14, 15, 16, 17, …"));
}

}  // namespace
}  // namespace ceems::exporter::run
