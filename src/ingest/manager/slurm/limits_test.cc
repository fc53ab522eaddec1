#include "ingest/manager/slurm/limits.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ingest/manager/slurm/fake_slurm_source.h"
#include "ingest/manager/slurm/sacct.h"
#include "ingest/manager/slurm/slurm.h"
#include "testing/fake_clock.h"
#include "testing/fake_runner.h"
#include "testing/temp_dir.h"

namespace ceems::ingest {
namespace {

constexpr std::int64_t kMiB = 1 << 20;

/// As scontrol of SLURM 22.05 printed them, for a cluster with a small node in `debug` and three
/// large ones in `debug` and `wide`.
PartitionLimits recorded() {
  PartitionLimits limits;
  std::ifstream file(std::string(CEEMS_TEST_ROOT) + "/data/sacct/scontrol.txt");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("NodeName=")) {
      limits.add_node_line(line);
    } else if (line.starts_with("PartitionName=")) {
      limits.add_partition_line(line);
    } else {
      limits.add_config_line(line);
    }
  }
  return limits;
}

SlurmDetails of(const PartitionLimits& limits,
                const std::string& partition,
                const Allocation& allocation,
                const std::string& constraints = "") {
  SlurmJob job;
  job.partition = partition;
  job.allocation = allocation;
  job.details.constraints = constraints;
  limits.set(job);
  return job.details;
}

TEST(PartitionLimits, AreReadFromScontrol) {
  const PartitionLimits limits = recorded();
  EXPECT_FALSE(limits.empty());
  const SlurmDetails wide = of(limits, "wide", {.nodes = 1, .cpus = 16});
  EXPECT_EQ(wide.partition_seconds, 2 * 86'400);
  EXPECT_EQ(wide.partition_bytes, 64'000 * kMiB);
  EXPECT_EQ(wide.partition_cpu_bytes, std::nullopt);
  const SlurmDetails debug = of(limits, "debug", {.nodes = 1, .cpus = 1, .gpus = 1});
  EXPECT_EQ(debug.partition_seconds, 0);
  EXPECT_EQ(debug.partition_bytes, 64'000 * kMiB);
  const SlurmDetails none = of(limits, "other", {.nodes = 1, .cpus = 1});
  EXPECT_EQ(none.partition_seconds, std::nullopt);
  EXPECT_EQ(none.partition_bytes, std::nullopt);
}

TEST(PartitionLimits, AreOfNodesOnWhichTheJobFits) {
  const PartitionLimits limits = recorded();
  // Three nodes have 16 CPUs and four GPUs, a fourth has two of each and 1,500 MB.
  EXPECT_EQ(of(limits, "debug", {.nodes = 3, .cpus = 48}).partition_bytes, 64'000 * kMiB);
  EXPECT_EQ(of(limits, "debug", {.nodes = 4, .cpus = 8}).partition_bytes, 1'500 * kMiB);
  EXPECT_EQ(of(limits, "debug", {.nodes = 4, .cpus = 64}).partition_bytes, std::nullopt);
  EXPECT_EQ(of(limits, "debug", {.nodes = 4, .cpus = 8, .gpus = 9}).partition_bytes, std::nullopt);
  EXPECT_EQ(of(limits, "debug", {.nodes = 1, .cpus = 17}).partition_bytes, std::nullopt);
  // Features of nodes are not compared.
  const SlurmDetails features = of(limits, "wide", {.nodes = 1, .cpus = 1}, "skylake");
  EXPECT_EQ(features.partition_bytes, std::nullopt);
  EXPECT_EQ(features.partition_max_bytes, std::nullopt);
  EXPECT_EQ(features.partition_seconds, 2 * 86'400);
}

TEST(PartitionLimits, OfThePartitionCountWhereItsNodesAreNotKnown) {
  PartitionLimits limits;
  limits.add_partition_line(
      "PartitionName=a MaxTime=1:00:00 MinNodes=2 MaxCPUsPerNode=24 MaxMemPerNode=32000");
  limits.add_partition_line(
      "PartitionName=b MaxTime=1:00:00 MinNodes=0 MaxCPUsPerNode=UNLIMITED MaxMemPerNode=32000");
  limits.add_node_line("NodeName=n1 CPUTot=8 RealMemory=64000 Partitions=a,b");
  for (const SlurmDetails& details :
       {of(limits, "a", {.nodes = 1, .cpus = 8}, "skylake"),
        of(limits, "a", {.nodes = 2, .cpus = 8}), of(limits, "a", {.nodes = 1, .cpus = 9})}) {
    EXPECT_EQ(details.partition_bytes, std::nullopt);
    EXPECT_EQ(details.partition_max_bytes, 32'000 * kMiB);
    EXPECT_EQ(details.partition_cpus, 24);
    EXPECT_EQ(details.partition_min_nodes, 2);
  }
  const SlurmDetails fits = of(limits, "b", {.nodes = 1, .cpus = 8});
  EXPECT_EQ(fits.partition_bytes, 32'000 * kMiB);
  EXPECT_EQ(fits.partition_max_bytes, std::nullopt);
  EXPECT_EQ(fits.partition_cpus, std::nullopt);
  EXPECT_EQ(fits.partition_min_nodes, std::nullopt);
}

TEST(PartitionLimits, AreTheStrictestOfNodePartitionAndCluster) {
  PartitionLimits limits;
  limits.add_config_line("MaxMemPerCPU            = 4000");
  limits.add_config_line("MaxMemPerNode           = UNLIMITED");
  limits.add_partition_line("PartitionName=a MaxTime=12:30:00 MaxMemPerNode=UNLIMITED");
  limits.add_partition_line("PartitionName=b MaxTime=UNLIMITED MaxMemPerNode=32000");
  limits.add_partition_line("PartitionName=c MaxTime=00:01:30 MaxMemPerCPU=2000");
  limits.add_node_line(
      "NodeName=n1 CPUEfctv=8 CPUTot=16 RealMemory=65536 MemSpecLimit=1024 Partitions=a,b,c,d");
  const Allocation one{.nodes = 1, .cpus = 8};
  EXPECT_EQ(of(limits, "a", one).partition_bytes, 64'512 * kMiB);
  EXPECT_EQ(of(limits, "a", one).partition_cpu_bytes, 4'000 * kMiB);
  EXPECT_EQ(of(limits, "a", one).partition_seconds, 45'000);
  EXPECT_EQ(of(limits, "b", one).partition_bytes, 32'000 * kMiB);
  EXPECT_EQ(of(limits, "b", one).partition_cpu_bytes, std::nullopt);
  EXPECT_EQ(of(limits, "c", one).partition_cpu_bytes, 2'000 * kMiB);
  EXPECT_EQ(of(limits, "c", one).partition_seconds, 90);
  EXPECT_EQ(of(limits, "d", one).partition_seconds, std::nullopt);
  // Two hardware threads of a core are not for jobs here.
  EXPECT_EQ(of(limits, "a", {.nodes = 1, .cpus = 9}).partition_bytes, std::nullopt);
}

TEST(PartitionLimits, AreNotKnownOfWhatDoesNotParse) {
  for (const char* time : {"", "x", "1-2-3", "12:00", "-1:00:00", "99999999999999999999:00:00",
                           "1-99999999:00:00", "0:00:00", "(null)"}) {
    PartitionLimits limits;
    limits.add_partition_line("PartitionName=a MaxTime=" + std::string(time));
    EXPECT_EQ(of(limits, "a", {}).partition_seconds, std::nullopt) << time;
  }
  for (const char* node :
       {"", "NodeName=n CPUTot=4 Partitions=a", "NodeName=n RealMemory=4 Partitions=a",
        "NodeName=n CPUTot=4 RealMemory=-1 Partitions=a",
        "NodeName=n CPUTot=4 RealMemory=9223372036854775807 Partitions=a",
        "NodeName=n CPUTot=4 RealMemory=100 Partitions=", "NodeName=n CPUTot=x RealMemory=100"}) {
    PartitionLimits limits;
    limits.add_partition_line("PartitionName=a MaxTime=1:00:00");
    limits.add_node_line(node);
    EXPECT_EQ(of(limits, "a", {.nodes = 1}).partition_bytes, std::nullopt) << node;
  }
  PartitionLimits limits;
  limits.add_partition_line("MaxTime=1:00:00");
  limits.add_partition_line("");
  EXPECT_TRUE(limits.empty());
  // What people wrote about a node comes last and changes nothing.
  limits.add_partition_line("PartitionName=a MaxTime=1:00:00");
  limits.add_node_line(
      "NodeName=n CPUTot=4 Gres=gpu:a100:no_consume:2(S:0,1),gpu:1,ssd:9(x) "
      "RealMemory=100 Partitions=a Reason=use RealMemory=900 Partitions=b [root]");
  EXPECT_EQ(of(limits, "a", {.nodes = 1, .cpus = 4, .gpus = 3}).partition_bytes, 100 * kMiB);
  EXPECT_EQ(of(limits, "a", {.nodes = 1, .cpus = 4, .gpus = 4}).partition_bytes, std::nullopt);
  // Words for "none", negative and large numbers, and a key that only begins like one that is read.
  for (const char* none : {"UNLIMITED", "INFINITE", "(null)", "NONE", "N/A", "", "0", "-1", "1.5",
                           "0x10", "4294967294000", "99999999999999999999", "1K"}) {
    const std::string value = none;
    PartitionLimits odd;
    odd.add_config_line("MaxMemPerNode = " + value);
    odd.add_partition_line("PartitionName=a MaxMemPerNodeX=5 MaxMemPerNode=" + value +
                           " MaxMemPerCPU=" + value + " MaxCPUsPerNode=" + value +
                           " MinNodes=" + value + " NewKey=7 =8 MaxTime");
    odd.add_node_line("NodeName=n CPUEfctv=" + value + " CPUTot=4 RealMemory=100 MemSpecLimit=" +
                      value + " Gres=" + value + " Partitions=a,(null),,a b");
    const SlurmDetails details = of(odd, "a", {.nodes = 1, .cpus = 4});
    EXPECT_EQ(details.partition_seconds, std::nullopt) << value;
    EXPECT_EQ(details.partition_bytes, 100 * kMiB) << value;
    EXPECT_EQ(details.partition_cpus, std::nullopt) << value;
    EXPECT_EQ(details.partition_min_nodes, std::nullopt) << value;
    if (value != "4294967294000") {  // 4 EiB are a limit
      EXPECT_EQ(details.partition_cpu_bytes, std::nullopt) << value;
    }
  }
}

TEST(PartitionLimits, OfLinesThatAreCutOffAllowNoMore) {
  const PartitionLimits whole = recorded();
  std::ifstream file(std::string(CEEMS_TEST_ROOT) + "/data/sacct/scontrol.txt");
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    lines.push_back(line);
  }
  const std::string& partition = lines.at(2);
  const std::string& node = lines.at(4);
  ASSERT_TRUE(partition.starts_with("PartitionName=wide"));
  ASSERT_TRUE(node.starts_with("NodeName=w"));
  const Allocation one{.nodes = 1, .cpus = 4, .gpus = 2};
  const SlurmDetails all = of(whole, "wide", one);
  ASSERT_TRUE(all.partition_bytes && all.partition_seconds);
  for (std::size_t size = 0; size <= std::max(partition.size(), node.size()); ++size) {
    PartitionLimits cut;
    cut.add_partition_line(partition.substr(0, size));
    cut.add_node_line(node);
    cut.add_node_line(node.substr(0, size));
    const SlurmDetails details = of(cut, "wide", one);
    EXPECT_LE(details.partition_seconds.value_or(1), *all.partition_seconds) << size;
    EXPECT_LE(details.partition_bytes.value_or(0), *all.partition_bytes) << size;
  }
}

TEST(PartitionLimits, OfTenThousandNodesAreReadOnceAndCounted) {
  PartitionLimits limits;
  for (int i = 0; i < 100; ++i) {
    limits.add_partition_line(fmt::format("PartitionName=p{} MaxTime=1:00:00", i));
  }
  for (int i = 0; i < 10'000; ++i) {
    limits.add_node_line(
        fmt::format("NodeName=n{} CPUTot=64 RealMemory={} Gres=gpu:{} Partitions=p{},p{},other", i,
                    1000 + i % 50, i % 5, i % 100, (i + 1) % 100));
  }
  // p7 has the nodes that end with 07 and 06: 200, of which half have 1,007 MiB.
  EXPECT_EQ(of(limits, "p7", {.nodes = 100, .cpus = 6400}).partition_bytes, 1007 * kMiB);
  EXPECT_EQ(of(limits, "p7", {.nodes = 101, .cpus = 6400}).partition_bytes, 1006 * kMiB);
  EXPECT_EQ(of(limits, "p7", {.nodes = 200, .cpus = 12'800}).partition_bytes, 1006 * kMiB);
  EXPECT_EQ(of(limits, "p7", {.nodes = 201, .cpus = 201}).partition_bytes, std::nullopt);
  EXPECT_EQ(of(limits, "p7", {.nodes = 1, .cpus = 65}).partition_bytes, std::nullopt);
}

TEST(PartitionLimits, AreReadOnceAnHourAndStayWhenScontrolFails) {
  auto owned = std::make_unique<FakeSlurmSource>();
  FakeSlurmSource& source = *owned;
  source.partitions = recorded();
  SlurmJob& job = source.in_window.emplace_back();
  job.id = "7";
  job.partition = "wide";
  job.start_ms = 0;
  job.allocation = {.nodes = 1, .cpus = 4};
  const auto manager = make_slurm("c1", std::move(owned), TimeZone(), {}, source.clock);
  const auto allocation = [&manager] {
    return manager->fetch_units({.start_ms = 0, .end_ms = 1000}, {}).value().at(0).allocation;
  };
  constexpr const char* kWithout = R"({"billing":0,"cpus":4,"gpus":0,"mem":0,"nodes":1})";
  constexpr const char* kWith =
      R"({"billing":0,"cpus":4,"gpus":0,"mem":0,"nodes":1,"partition_mem":67108864000,)"
      R"("partition_time":172800})";
  source.limits_ok = false;
  EXPECT_EQ(allocation(), kWithout);
  source.limits_ok = true;
  source.clock.advance(std::chrono::minutes(9));
  EXPECT_EQ(allocation(), kWithout);
  EXPECT_EQ(source.asked_limits, 1);
  source.clock.advance(std::chrono::minutes(1));
  EXPECT_EQ(allocation(), kWith);
  EXPECT_EQ(source.asked_limits, 2);
  source.limits_ok = false;
  source.clock.advance(std::chrono::minutes(59));
  EXPECT_EQ(allocation(), kWith);
  EXPECT_EQ(source.asked_limits, 2);
  source.clock.advance(std::chrono::minutes(1));
  EXPECT_EQ(allocation(), kWith);
  EXPECT_EQ(source.asked_limits, 3);
  // A source that does not know partitions.
  source.limits_ok = true;
  source.partitions.reset();
  source.clock.advance(std::chrono::minutes(10));
  EXPECT_EQ(allocation(), kWithout);
}

TEST(PartitionLimits, ComeFromScontrolBesideSacct) {
  testing::TempDir directory;
  testing::FakeRunner runner;
  testing::FakeClock clock;
  const auto source = make_slurm_cli({.cluster_id = "c1",
                                      .directory = directory.path(),
                                      .mode = SlurmMode::kCapability,
                                      .timeout = std::chrono::minutes(5),
                                      .slurm_cluster = "alpha"},
                                     runner);
  EXPECT_FALSE(source->limits({}).value().has_value());
  EXPECT_TRUE(runner.calls().empty());
  std::ofstream(directory.path() / "scontrol") << "";
  runner.answer("scontrol", [](const os::Command& command) -> Result<os::CommandResult> {
    const std::string& what = command.arguments.back();
    return os::CommandResult{
        .exit_status = 0,
        .output = what == "config"      ? "Configuration data\nMaxMemPerNode           = 300\n"
                  : what == "partition" ? "PartitionName=wide MaxTime=1:00:00\n"
                                        : "NodeName=n CPUTot=4 RealMemory=400 Partitions=wide\n"};
  });
  const auto found = source->limits({});
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(of(found->value(), "wide", {.nodes = 1, .cpus = 4}).partition_bytes, 300 * kMiB);
  ASSERT_EQ(runner.calls().size(), 3U);
  EXPECT_EQ(runner.calls()[2].arguments,
            (std::vector<std::string>{"--clusters=alpha", "--all", "--oneliner", "show", "node"}));
  EXPECT_EQ(runner.calls()[2].timeout, std::chrono::seconds(10));
  EXPECT_TRUE(runner.calls()[2].as_root);
  runner.reply("scontrol", {.exit_status = 1, .output = {}, .error_text = "no controller"});
  EXPECT_FALSE(source->limits({}));
  runner.reply("scontrol", {.exit_status = 0, .output = {}, .error_text = {}});
  EXPECT_FALSE(source->limits({}));
}

}  // namespace
}  // namespace ceems::ingest
