#include "exporter/collectors/rdma.h"

#include <linux/capability.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exporter/collectors/collector_test_support.h"
#include "exporter/rdma/command_reader.h"
#include "exporter/rdma/reader.h"
#include "testing/fake_runner.h"
#include "testing/temp_dir.h"

namespace ceems::exporter {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

class RdmaNoUnits final : public UnitSource {
 public:
  [[nodiscard]] std::string_view manager() const override { return "slurm"; }
  Result<std::shared_ptr<const UnitSnapshot>> snapshot(std::chrono::milliseconds) override {
    return std::make_shared<UnitSnapshot>();
  }
  void want_processes() override { ++requests; }

  int requests = 0;
};

/// A fake rdma command of a machine with one port. `mode` is its answer to a query of modes.
void answer_as_rdma(testing::FakeRunner& runner, const std::string& mode) {
  runner.answer("rdma", [mode](const os::Command& command) -> Result<os::CommandResult> {
    std::string words;
    for (const std::string& argument : command.arguments) {
      words += argument + " ";
    }
    const auto has = [&](std::string_view text) { return words.find(text) != std::string::npos; };
    os::CommandResult result;
    if (has(" mode ")) {
      result.output = mode;
    } else if (has(" mr ")) {
      result.output =
          "dev mlx5_0 mrn 4 mrlen 1024 pdn 9 pid 77 comm a\n"
          "dev mlx5_0 mrn 5 mrlen 1024 pdn 9 pid 78 comm a\n";
    } else if (has(" cq ")) {
      result.output = "dev mlx5_0 cqn 8 cqe 4095 users 32 ctxn 4 pid 77 comm a\n";
    } else if (has("resource show qp ")) {
      result.output = "link mlx5_0/1 lqpn 8 type RC state RTS pdn 8 pid 77 comm a\n";
    } else if (has("statistic qp show ")) {
      result.output =
          "link mlx5_0/1 cntn 4 pid 77 comm a rx_write_requests 5 rx_read_requests 0\n"
          "link mlx5_0/1 cntn 5 pid 78 comm a rx_write_requests 6\n";
    }
    return result;
  });
}

struct Machine {
  testing::TempDir root;
  TestContext test{root.path()};
  testing::FakeRunner runner;
  RdmaNoUnits source;

  Machine() {
    const std::filesystem::path port = "sys/class/infiniband/mlx5_0/ports/1";
    root.write("sys/class/infiniband/mlx5_0/fw_ver", "20.31\n");
    root.write(port / "state", "4: ACTIVE\n");
    root.write(port / "phys_state", "5: LinkUp\n");
    root.write(port / "rate", "100 Gb/sec (4X EDR)\n");
    root.write(port / "counters/port_rcv_data", "1000\n");
    root.write(port / "counters/port_rcv_errors", "0\n");
    root.write(port / "counters/port_xmit_packets", "33\n");
  }

  std::unique_ptr<SubCollector> collector() {
    return make_rdma(
        test.context, source,
        std::make_unique<rdma::CommandReader>(
            "/usr/bin/rdma", std::map<std::string, std::string>{{"LC_ALL", "C"}}, runner));
  }
};

UnitSnapshot units() {
  Unit unit;
  unit.uuid = "5";
  unit.pids = {77, 78};
  Unit ended;
  ended.uuid = "4";
  ended.pids = {77};
  ended.ended = true;
  return {.manager = "slurm", .units = {ended, unit}};
}

std::string samples(SubCollector& collector, Result<>* result = nullptr) {
  metrics::Sink sink;
  const auto done = collector.collect(units(), sink);
  if (result != nullptr) {
    *result = done;
  }
  std::string page;
  sink.render(metrics::Exposition::kText, page);
  return page;
}

constexpr std::string_view kPortLabels =
    R"({device="mlx5_0",hostname="n1",manager="slurm",port="1"} )";
constexpr std::string_view kUnitLabels =
    R"({device="mlx5_0",hostname="n1",manager="slurm",port="1",uuid="5"} )";
constexpr std::string_view kObjectLabels =
    R"({device="mlx5_0",hostname="n1",manager="slurm",port="",uuid="5"} )";

std::string line(std::string_view series, std::string_view labels, std::string_view value) {
  return "\nceems_rdma_" + std::string(series) + std::string(labels) + std::string(value) + "\n";
}

TEST(Rdma, ShowsPortsAndObjectsOfUnits) {
  Machine machine;
  answer_as_rdma(machine.runner, "");
  const auto collector = machine.collector();
  EXPECT_EQ(machine.source.requests, 1);
  EXPECT_TRUE(collector->capabilities().empty());
  start_and_wait(*collector);
  const std::string page = samples(*collector);
  EXPECT_THAT(page, HasSubstr(line("state_id", kPortLabels, "4")));
  EXPECT_THAT(page, HasSubstr(line("port_data_received_bytes_total", kPortLabels, "4000")));
  EXPECT_THAT(page, HasSubstr(line("port_packets_transmitted_total", kPortLabels, "33")));
  EXPECT_THAT(page, Not(HasSubstr("port_errors_received_total")));
  EXPECT_THAT(page, HasSubstr(line("mrs_active", kObjectLabels, "2")));
  EXPECT_THAT(page, HasSubstr(line("mrs_len_active", kObjectLabels, "2048")));
  EXPECT_THAT(page, HasSubstr(line("cqs_active", kObjectLabels, "1")));
  EXPECT_THAT(page, HasSubstr(line("cqe_len_active", kObjectLabels, "4095")));
  EXPECT_THAT(page, HasSubstr(line("qps_active", kUnitLabels, "1")));
  EXPECT_THAT(page, Not(HasSubstr("rx_write_requests")));
  EXPECT_THAT(page, Not(HasSubstr("uuid=\"4\"")));
}

TEST(Rdma, TurnsOnCountingOfQueuePairsAndRestoresIt) {
  Machine machine;
  answer_as_rdma(machine.runner, "link mlx5_0/1 auto off\nlink mlx5_1/1 auto type,pid on\n");
  {
    const auto collector = machine.collector();
    EXPECT_THAT(collector->capabilities(), ElementsAre(CAP_SETUID, CAP_SETGID));
    start_and_wait(*collector);
    const std::string page = samples(*collector);
    EXPECT_THAT(page, HasSubstr(line("rx_write_requests", kUnitLabels, "11")));  // 5 + 6
    EXPECT_THAT(page, Not(HasSubstr("rx_read_requests")));
  }
  std::vector<std::string> switches;
  for (const os::Command& command : machine.runner.calls()) {
    EXPECT_EQ(command.path, "/usr/bin/rdma");
    EXPECT_LE(command.timeout, std::chrono::seconds(5));
    if (command.as_root) {
      switches.push_back(command.arguments[4] + " " + command.arguments[6]);
    }
  }
  EXPECT_THAT(switches, ElementsAre("mlx5_0/1 type,pid", "mlx5_0/1 off"));
}

TEST(Rdma, TheThreadRetriesACommandThatHungAtTheStart) {
  Machine machine;
  machine.runner.refuse("rdma", {ErrorCode::kTimeout, "timed out"});
  machine.test.context.start_until = std::chrono::steady_clock::now();
  const auto collector = machine.collector();
  ASSERT_THAT(machine.runner.calls(), SizeIs(1));
  EXPECT_LE(machine.runner.calls()[0].timeout, std::chrono::milliseconds(200));
  EXPECT_THAT(collector->capabilities(), ElementsAre(CAP_SETUID, CAP_SETGID)) << "not known yet";
  answer_as_rdma(machine.runner, "link mlx5_0/1 auto off\n");
  start_and_wait(*collector);
  EXPECT_THAT(samples(*collector), HasSubstr(line("rx_write_requests", kUnitLabels, "11")));
}

TEST(Rdma, ShowsPortsIfTheCommandFails) {
  Machine machine;
  machine.runner.reply("rdma", {.exit_status = 1, .error_text = "no"});
  const auto collector = machine.collector();
  start_and_wait(*collector);
  const std::string page = samples(*collector);
  EXPECT_THAT(page, HasSubstr("ceems_rdma_state_id"));
  EXPECT_THAT(page, Not(HasSubstr("uuid")));
}

TEST(Rdma, HasNoDataWithoutAdapters) {
  const testing::TempDir root;
  TestContext test(root.path());
  RdmaNoUnits source;
  testing::FakeRunner runner;
  EXPECT_EQ(
      choose_rdma_reader(test.context, {.on = true, .command = "", .search_path = "/bin"}, runner),
      nullptr);
  const auto collector = make_rdma(test.context, source, nullptr);
  start_and_wait(*collector);
  Result<> result;
  EXPECT_EQ(samples(*collector, &result), "");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kNoData);
  EXPECT_EQ(source.requests, 0);
}

TEST(Rdma, UsesTheCommandForOtherMachines) {
  Machine machine;
  machine.root.write("bin/rdma", "");
  std::filesystem::permissions(machine.root.path() / "bin/rdma", std::filesystem::perms::owner_all);
  const RdmaOptions found{.on = true, .command = "", .search_path = machine.root.path() / "bin"};
  EXPECT_NE(choose_rdma_reader(machine.test.context, found, machine.runner), nullptr);
  const RdmaOptions missing{.on = true, .command = "", .search_path = machine.root.path()};
  EXPECT_EQ(choose_rdma_reader(machine.test.context, missing, machine.runner), nullptr);
}

/// Records what was switched.
class FakeReader final : public rdma::Reader {
 public:
  Result<std::vector<rdma::LinkMode>> modes(std::chrono::milliseconds, std::stop_token) override {
    return {};
  }
  Result<rdma::Resources> read(bool, std::stop_token) override { return rdma::Resources{}; }
  Result<> set_counting(const std::string& link, bool on) override {
    switched.push_back(link + (on ? " on" : " off"));
    if (refuse) {
      return fail(ErrorCode::kPermissionDenied, "refused");
    }
    return {};
  }
  [[nodiscard]] std::vector<os::Capability> capabilities() const override { return {}; }

  bool refuse = false;
  std::vector<std::string> switched;
};

TEST(RdmaCounting, TurnsOffOnlyWhatItTurnedOn) {
  testing::FakeClock clock;
  FakeReader reader;
  {
    rdma::Counting counting(reader, clock);
    counting.set_modes({{"mlx5_0/1", false}, {"mlx5_1/1", true}});
    EXPECT_TRUE(counting.possible());
    counting.switch_on();
    counting.switch_on();
  }
  EXPECT_THAT(reader.switched, ElementsAre("mlx5_0/1 on", "mlx5_0/1 off"));
}

TEST(RdmaCounting, RetriesARefusingPortLater) {
  testing::FakeClock clock;
  FakeReader reader;
  reader.refuse = true;
  {
    rdma::Counting counting(reader, clock);
    counting.set_modes({{"mlx5_0/1", false}});
    counting.switch_on();
    counting.switch_on();
    EXPECT_EQ(reader.switched.size(), 1U);
    clock.advance(rdma::Counting::kRetry);
    counting.switch_on();
    EXPECT_EQ(reader.switched.size(), 2U);
  }
  EXPECT_EQ(reader.switched.size(), 2U);
}

}  // namespace
}  // namespace ceems::exporter
