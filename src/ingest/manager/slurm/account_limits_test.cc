#include "ingest/manager/slurm/account_limits.h"

#include <chrono>
#include <cstdint>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <boost/json.hpp>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ingest/manager/slurm/fake_slurm_source.h"
#include "ingest/manager/slurm/limits.h"
#include "ingest/manager/slurm/sacct.h"
#include "ingest/manager/slurm/slurm.h"
#include "testing/fake_runner.h"
#include "testing/temp_dir.h"

namespace ceems::ingest {
namespace {

namespace json = boost::json;
using ::testing::ElementsAre;

constexpr std::int64_t kMebi = 1 << 20;

struct AllLimits {
  PartitionLimits partitions;
  AccountLimits accounts;
};

/// As scontrol and sacctmgr of SLURM 22.05 printed them.
AllLimits recorded_limits() {
  AllLimits limits;
  std::ifstream scontrol(std::string(CEEMS_TEST_ROOT) + "/data/sacct/scontrol.txt");
  std::ifstream sacctmgr(std::string(CEEMS_TEST_ROOT) + "/data/sacct/sacctmgr.txt");
  bool associations = false;
  for (auto* const file : {&scontrol, &sacctmgr}) {
    for (std::string line; std::getline(*file, line);) {
      if (line.starts_with("NodeName=")) {
        limits.partitions.add_node_line(line);
      } else if (line.starts_with("PartitionName=")) {
        limits.partitions.add_partition_line(line);
      } else if (line.contains(" = ")) {
        limits.partitions.add_config_line(line);
      } else if (line == "--") {
        associations = true;
      } else if (associations) {
        limits.accounts.add_association_line(line);
      } else {
        limits.accounts.add_qos_line(line);
      }
    }
  }
  return limits;
}

struct Asker {
  std::string partition = "wide";
  std::string qos = "normal";
  std::string account = "proj1";
  std::string user = "root";
};

SlurmJob job_by(const Asker& by, const Allocation& allocation) {
  SlurmJob job;
  job.id = "7";
  job.start_ms = 0;
  job.partition = by.partition;
  job.qos = by.qos;
  job.account = by.account;
  job.user = by.user;
  job.allocation = allocation;
  return job;
}

SlurmDetails details_by(const AllLimits& limits, const Asker& by, const Allocation& allocation) {
  SlurmJob job = job_by(by, allocation);
  limits.partitions.set(job);
  limits.accounts.set(job, limits.partitions.qos_of(job.partition));
  return job.details;
}

/// Minutes, MiB and CPUs on a node, and nodes at least.
std::vector<std::int64_t> numbers(const SlurmDetails& details) {
  const auto memory =
      details.partition_bytes ? details.partition_bytes : details.partition_max_bytes;
  return {details.partition_seconds.value_or(-60) / 60, memory.value_or(-kMebi) / kMebi,
          details.partition_cpus.value_or(-1), details.partition_min_nodes.value_or(-1)};
}

TEST(AccountLimits, AreThoseOfTheQosThenOfTheAssociation) {
  const AllLimits limits = recorded_limits();
  EXPECT_EQ(limits.partitions.cluster(), "test");
  EXPECT_TRUE(limits.partitions.enforces_accounts());
  const Allocation one{.nodes = 1, .cpus = 4};
  const Allocation two{.nodes = 2, .cpus = 8};
  const auto of = [&](const Asker& by, const Allocation& allocation) {
    return numbers(details_by(limits, by, allocation));
  };
  EXPECT_THAT(of({}, one), ElementsAre(2880, 64'000, -1, -1));
  EXPECT_THAT(of({.qos = "narrow"}, one), ElementsAre(150, 20'000, 4, -1));
  EXPECT_THAT(of({.qos = "narrow"}, two), ElementsAre(150, 10'000, 4, -1));
  EXPECT_THAT(of({.qos = "group"}, two), ElementsAre(2880, 17'000, -1, 2));
  EXPECT_THAT(of({.qos = "long"}, one), ElementsAre(10'080, 64'000, -1, -1));
  EXPECT_THAT(of({.qos = "minutes"}, one), ElementsAre(125, 64'000, -1, -1));
  EXPECT_THAT(of({.qos = "minutes"}, {.nodes = 1, .cpus = 1, .gpus = 2}),
              ElementsAre(150, 64'000, -1, -1));
  // An account, its parent, and an association for one partition.
  EXPECT_THAT(of({.account = "below"}, one), ElementsAre(140, 18'000, -1, -1));
  EXPECT_THAT(of({.account = "limited"}, one), ElementsAre(140, 30'000, -1, -1));
  EXPECT_THAT(of({.partition = "tight", .account = "below"}, one),
              ElementsAre(140, 17'000, -1, -1));
  // What the QOS says goes before what the association says, each resource for itself.
  EXPECT_THAT(of({.qos = "narrow", .account = "below"}, one), ElementsAre(150, 20'000, 4, -1));
  EXPECT_THAT(of({.qos = "long", .account = "below"}, one), ElementsAre(10'080, 18'000, -1, -1));
  EXPECT_THAT(of({.qos = "group", .account = "below"}, two), ElementsAre(140, 9'000, -1, 2));
  // The QOS of the partition goes before that of the job, unless that says otherwise.
  EXPECT_THAT(of({.partition = "capped"}, one), ElementsAre(150, 20'000, 4, -1));
  EXPECT_THAT(of({.partition = "capped", .qos = "minutes"}, one), ElementsAre(125, 20'000, 4, -1));
  // An owner, account and QOS that are not known.
  EXPECT_THAT(of({.qos = "?", .account = "?", .user = "?"}, one),
              ElementsAre(2880, 64'000, -1, -1));
  EXPECT_THAT(of({.partition = "?", .qos = "narrow"}, one), ElementsAre(150, 20'000, 4, -1));
}

TEST(AccountLimits, AreWhatTheFormsOfRequestsAreBoundedBy) {
  std::ostringstream text;
  text << std::ifstream(std::string(CEEMS_TEST_ROOT) + "/slurm/forms.json").rdbuf();
  const AllLimits limits = recorded_limits();
  int checked = 0;
  for (const json::value& value : json::parse(text.str()).as_array()) {
    const json::object& row = value.as_object();
    const auto of = [&row](const char* name, const char* otherwise) {
      return row.contains(name) ? std::string(row.at(name).as_string()) : std::string(otherwise);
    };
    if (!row.contains("qos") && !row.contains("account") && of("partition", "") != "capped") {
      continue;
    }
    const auto found = numbers(details_by(limits,
                                          {.partition = of("partition", "wide"),
                                           .qos = of("qos", "normal"),
                                           .account = of("account", "proj1")},
                                          {.nodes = row.at("nodes").to_number<std::int64_t>(),
                                           .cpus = row.at("cpus").to_number<std::int64_t>(),
                                           .gpus = row.at("gpus").to_number<std::int64_t>()}));
    const json::object& known = row.at("limits").as_object();
    const auto number = [&known](const char* name, std::int64_t otherwise) {
      return known.contains(name) ? known.at(name).to_number<std::int64_t>() : otherwise;
    };
    EXPECT_EQ(found[0], number("minutes", -1)) << json::serialize(row);
    // Which nodes there are is recorded of some partitions only.
    EXPECT_EQ(found[1] < 0 ? 64'000 : found[1], number("mib", -1)) << json::serialize(row);
    EXPECT_EQ(found[2], number("cpus", -1)) << json::serialize(row);
    EXPECT_EQ(found[3], number("min_nodes", -1)) << json::serialize(row);
    ++checked;
  }
  EXPECT_GE(checked, 10);
}

TEST(AccountLimits, AreNotKnownOfWhatDoesNotParse) {
  for (const char* line :
       {"", "|", "q", "q||mem=1M", "|DenyOnLimit|mem=1M|||||||", "q||mem=1M||||||||",
        "q||mem=x,cpu=1|||x||||", "q||mem=-1M|cpu=-4||-1:00:00||||node=-1",
        "q||mem=|cpu=|||mem|=1||", "q||,,=,mem|||1:0|||,|\xff",
        "q||mem=99999999999999999999E||cpu=x|99999999999999999999-00:00:00||||",
        "q|PartitionTimeLimit2||||UNLIMITED||||node=0"}) {
    AccountLimits limits;
    limits.add_qos_line(line);
    SlurmJob job = job_by({.qos = "q"}, {.nodes = 1, .cpus = 4});
    limits.set(job, "q");
    EXPECT_EQ(job.details, SlurmDetails{}) << line;
    EXPECT_TRUE(limits.empty());
  }
  // Numbers without a unit are MiB; the largest do not overflow.
  AccountLimits limits;
  limits.add_qos_line("q||mem=500|||||||");
  limits.add_qos_line("most||||cpu=9223372036854775807|||||");
  SlurmJob job = job_by({.qos = "q"}, {});
  limits.set(job, "none");
  EXPECT_EQ(job.details.partition_max_bytes, 500 * kMebi);
  job = job_by({.qos = "most"}, {.nodes = 1, .cpus = 1});
  limits.set(job, "");
  EXPECT_GT(job.details.partition_seconds.value_or(0), 0);
  // A limit of less than a minute is one of a minute.
  limits.add_qos_line("q||||cpu=1|||||");
  job = job_by({.qos = "q"}, {.nodes = 1, .cpus = 100});
  limits.set(job, "");
  EXPECT_EQ(job.details.partition_seconds, 60);
}

TEST(AccountLimits, OfAssociationsInACircleEnd) {
  AccountLimits limits;
  limits.add_association_line("a|||b|||||");
  limits.add_association_line("b|||a|mem=300M||||");
  limits.add_association_line("c|||c||||00:10:00|mem=200M");
  limits.add_association_line("|x|||mem=1M||||");
  limits.add_association_line("a|x|p|q|mem=1M||||mem=1M|more");
  SlurmJob job = job_by({.account = "a", .user = "x"}, {.nodes = 1});
  limits.set(job, "");
  EXPECT_EQ(job.details.partition_max_bytes, 300 * kMebi);
  job = job_by({.account = "c", .user = "x"}, {.nodes = 1});
  limits.set(job, "");
  EXPECT_EQ(job.details.partition_max_bytes, 200 * kMebi);
  EXPECT_EQ(job.details.partition_seconds, 600);
}

TEST(AccountLimits, OfManyPeopleAreFoundFast) {
  AccountLimits limits;
  limits.add_association_line("root||||||||");
  for (int i = 0; i < 1'000; ++i) {
    limits.add_association_line(fmt::format("acct{}|||root||||||mem={}M", i, 100 + i));
    limits.add_association_line(fmt::format("acct{}|||root|||||mem={}M", i, 100 + i));
  }
  for (int i = 0; i < 5'000; ++i) {
    limits.add_association_line(
        fmt::format("acct{}|user{}||||||{}|", i % 1'000, i, i % 100 == 0 ? "01:00:00" : ""));
  }
  SlurmJob job = job_by({.account = "acct7", .user = "user2007"}, {.nodes = 1});
  limits.set(job, "");
  EXPECT_EQ(job.details.partition_max_bytes, 107 * kMebi);
  EXPECT_EQ(job.details.partition_seconds, std::nullopt);
  job = job_by({.account = "acct100", .user = "user100"}, {.nodes = 1});
  limits.set(job, "");
  EXPECT_EQ(job.details.partition_seconds, 3'600);
}

TEST(AccountLimits, AreReadWhereSlurmEnforcesThem) {
  auto owned = std::make_unique<FakeSlurmSource>();
  FakeSlurmSource& source = *owned;
  const AllLimits limits = recorded_limits();
  source.partitions = limits.partitions;
  source.accounts = limits.accounts;
  source.in_window = {job_by({.qos = "narrow"}, {.nodes = 1, .cpus = 4})};
  const auto manager = make_slurm("c1", std::move(owned), TimeZone(), {}, source.clock);
  const auto allocation = [&manager] {
    return manager->fetch_units({.start_ms = 0, .end_ms = 1000}, {}).value().at(0).allocation;
  };
  constexpr const char* kWithout =
      R"({"billing":0,"cpus":4,"gpus":0,"mem":0,"nodes":1,"partition_mem":67108864000,)"
      R"("partition_time":172800})";
  constexpr const char* kWith =
      R"({"billing":0,"cpus":4,"gpus":0,"mem":0,"nodes":1,"partition_cpus":4,)"
      R"("partition_mem":20971520000,"partition_time":9000})";
  // What partitions allow is known though sacctmgr fails; it is asked again as after an error.
  source.accounts_ok = false;
  EXPECT_EQ(allocation(), kWithout);
  source.accounts_ok = true;
  source.clock.advance(std::chrono::minutes(9));
  EXPECT_EQ(allocation(), kWithout);
  source.clock.advance(std::chrono::minutes(1));
  EXPECT_EQ(allocation(), kWith);
  EXPECT_THAT(source.asked_accounts, ElementsAre("test", "test"));
  source.accounts_ok = false;
  source.clock.advance(std::chrono::minutes(60));
  EXPECT_EQ(allocation(), kWith);
  // Now they are written down, but not enforced.
  source.partitions->add_config_line("AccountingStorageEnforce = associations,qos");
  source.clock.advance(std::chrono::minutes(60));
  EXPECT_EQ(allocation(), kWithout);
  EXPECT_EQ(source.asked_accounts.size(), 3U);
}

TEST(AccountLimits, ComeFromSacctmgr) {
  testing::TempDir directory;
  testing::FakeRunner runner;
  SlurmCliOptions options{.cluster_id = "c1",
                          .directory = directory.path(),
                          .mode = SlurmMode::kCapability,
                          .timeout = std::chrono::minutes(5)};
  const auto source = make_slurm_cli(options, runner);
  EXPECT_FALSE(source->account_limits("", {}));
  EXPECT_TRUE(runner.calls().empty());
  runner.answer("sacctmgr", [](const os::Command& command) -> Result<os::CommandResult> {
    return os::CommandResult{.exit_status = 0,
                             .output = command.arguments.at(3) == "qos"
                                           ? "normal|||||||||\nq||mem=300M|||||||\n"
                                           : "root||||||||\nproj1|||root|||||\n"};
  });
  const auto found = source->account_limits("test", {});
  ASSERT_TRUE(found) << found.error().message;
  SlurmJob job = job_by({.qos = "q"}, {.nodes = 1});
  found->value().set(job, "");
  EXPECT_EQ(job.details.partition_max_bytes, 300 * kMebi);
  ASSERT_EQ(runner.calls().size(), 2U);
  EXPECT_THAT(runner.calls()[0].arguments,
              ElementsAre("--parsable2", "--noheader", "list", "qos",
                          "format=Name,Flags,MaxTRES,MaxTRESPerNode,MaxTRESMins,MaxWall,MaxTRESPU,"
                          "MaxTRESPA,GrpTRES,MinTRES"));
  EXPECT_THAT(runner.calls()[1].arguments,
              ElementsAre("--parsable2", "--noheader", "list", "associations", "WOPLimits",
                          "format=Account,User,Partition,ParentName,MaxTRES,MaxTRESPerNode,"
                          "MaxTRESMins,MaxWall,GrpTRES",
                          "cluster=test"));
  EXPECT_EQ(runner.calls()[1].timeout, std::chrono::seconds(10));
  EXPECT_TRUE(runner.calls()[1].as_root);
  options.slurm_cluster = "alpha";
  EXPECT_TRUE(make_slurm_cli(options, runner)->account_limits("test", {}));
  EXPECT_EQ(runner.calls().back().arguments.back(), "cluster=alpha");
  runner.reply("sacctmgr", {.exit_status = 1, .output = {}, .error_text = "no slurmdbd"});
  EXPECT_FALSE(source->account_limits("test", {}));
  runner.reply("sacctmgr", {.exit_status = 0, .output = {}, .error_text = {}});
  EXPECT_FALSE(source->account_limits("test", {})) << "an empty answer is none";
}

}  // namespace
}  // namespace ceems::ingest
