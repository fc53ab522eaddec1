#include "ingest/manager/slurm/limits.h"

#include <chrono>
#include <cstdint>
#include <fstream>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

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
  EXPECT_EQ(features.partition_seconds, 2 * 86'400);
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
}

/// One job, and limits that the test sets.
class FakeSource final : public SlurmSource {
 public:
  Result<> jobs(model::Window /*window*/, const JobSink& job, std::stop_token /*stop*/) override {
    SlurmJob one;
    one.id = "7";
    one.partition = "wide";
    one.start_ms = 0;
    one.allocation = {.nodes = 1, .cpus = 4};
    job(one);
    return {};
  }
  Result<> jobs_by_id(const std::vector<std::string>& /*ids*/,
                      const JobSink& /*job*/,
                      std::stop_token /*stop*/) override {
    return {};
  }
  Result<std::set<Membership>> associations(std::stop_token /*stop*/) override {
    return std::set<Membership>();
  }
  Result<ProjectLeads> coordinators(std::stop_token /*stop*/) override { return ProjectLeads(); }
  Result<std::optional<PartitionLimits>> limits(const std::stop_token& /*stop*/) override {
    ++asked;
    if (!works) {
      return fail(ErrorCode::kTimeout, "hangs");
    }
    return known ? std::optional(recorded()) : std::nullopt;
  }

  testing::FakeClock clock;
  bool works = true;
  bool known = true;
  int asked = 0;
};

TEST(PartitionLimits, AreReadOnceAnHourAndStayWhenScontrolFails) {
  auto owned = std::make_unique<FakeSource>();
  FakeSource& source = *owned;
  const auto manager = make_slurm("c1", std::move(owned), TimeZone(), {}, source.clock);
  const auto allocation = [&manager] {
    return manager->fetch_units({.start_ms = 0, .end_ms = 1000}, {}).value().at(0).allocation;
  };
  constexpr const char* kWithout = R"({"billing":0,"cpus":4,"gpus":0,"mem":0,"nodes":1})";
  constexpr const char* kWith =
      R"({"billing":0,"cpus":4,"gpus":0,"mem":0,"nodes":1,"partition_mem":67108864000,)"
      R"("partition_time":172800})";
  source.works = false;
  EXPECT_EQ(allocation(), kWithout);
  source.works = true;
  source.clock.advance(std::chrono::minutes(9));
  EXPECT_EQ(allocation(), kWithout);
  EXPECT_EQ(source.asked, 1);
  source.clock.advance(std::chrono::minutes(1));
  EXPECT_EQ(allocation(), kWith);
  EXPECT_EQ(source.asked, 2);
  source.works = false;
  source.clock.advance(std::chrono::minutes(59));
  EXPECT_EQ(allocation(), kWith);
  EXPECT_EQ(source.asked, 2);
  source.clock.advance(std::chrono::minutes(1));
  EXPECT_EQ(allocation(), kWith);
  EXPECT_EQ(source.asked, 3);
  // A source that knows nothing of partitions.
  source.works = true;
  source.known = false;
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
