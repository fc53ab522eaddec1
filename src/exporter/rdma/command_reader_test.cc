#include "exporter/rdma/command_reader.h"

#include <gtest/gtest.h>

namespace ceems::exporter::rdma {
namespace {

TEST(RdmaText, ReadsMemoryRegionsOfProcesses) {
  const auto regions = parse_regions(
      "dev mlx5_1 mrn 7 mrlen 4096 pdn 3 pid 77 comm app\n"
      "dev mlx5_1 mrn 8 mrlen 512 pdn 3 comm [rdma_cm]\n"
      "dev rxe0 mrn 1 rkey 0x1 mrlen 1048576 pdn 3 pid 78 comm app two");
  ASSERT_EQ(regions.size(), 2U);
  EXPECT_EQ(regions[0].device, "mlx5_1");
  EXPECT_EQ(regions[0].pid, 77);
  EXPECT_EQ(regions[0].size, 4096U);
  EXPECT_EQ(regions[1].device, "rxe0");
  EXPECT_EQ(regions[1].size, 1048576U);
}

TEST(RdmaText, ReadsCompletionQueuesOfProcesses) {
  const auto queues = parse_queues(
      "dev mlx5_0 cqn 1 cqe 2047 users 5 poll-ctx WORKQUEUE adaptive-moderation on comm [ib_core]\n"
      "dev mlx5_0 cqn 8 cqe 1023 users 2 adaptive-moderation off ctxn 4 pid 77 comm app\n");
  ASSERT_EQ(queues.size(), 1U);
  EXPECT_EQ(queues[0].size, 1023U);
  EXPECT_EQ(queues[0].count, 1U);
}

TEST(RdmaText, ReadsQueuePairsOfProcesses) {
  const auto pairs = parse_pairs(
      "link mlx5_0/- lqpn 0 type SMI state RTS sq-psn 0 comm [ib_core]\n"
      "link mlx5_0/2 lqpn 813 rqpn 814 type RC state RTS rq-psn 9 sq-psn 2 path-mig-state MIGRATED "
      "pdn 8 pid 77 comm app\n"
      "link mlx5_0/- lqpn 900 type XRC_TGT state INIT pid 78 comm app\n"
      "dev mlx5_0/2 lqpn 813 pid 77\n");
  ASSERT_EQ(pairs.size(), 2U);
  EXPECT_EQ(pairs[0].device, "mlx5_0");
  EXPECT_EQ(pairs[0].port, "2");
  EXPECT_EQ(pairs[0].pid, 77);
  EXPECT_EQ(pairs[1].port, "");
}

TEST(RdmaText, ReadsCountersOfProcesses) {
  const auto counters = parse_counters(
      "link mlx5_0/1 cntn 5 qp-type RC pid 77 comm app rx_write_requests 41 rx_read_requests 2 "
      "out_of_buffer 9 resp_remote_access_errors 3\n    LQPN: <814,815>\n");
  ASSERT_EQ(counters.size(), 1U);
  EXPECT_EQ(counters[0].values[0], 41U);
  EXPECT_EQ(counters[0].values[1], 2U);
  EXPECT_EQ(counters[0].values[2], 0U);
  EXPECT_EQ(counters[0].values[10], 3U);
}

TEST(RdmaText, ReadsNothingFromNamesThatUsersChoose) {
  const auto counters = parse_counters(
      "link mlx5_0/1 cntn 5 qp-type RC pid 77 comm req_cqe_error 9 req_cqe_error 4\n"
      "link mlx5_0/1 cntn 5 qp-type RC comm a pid 1\n");
  ASSERT_EQ(counters.size(), 1U);
  EXPECT_EQ(counters[0].values[3], 4U);
  EXPECT_TRUE(parse_regions("dev mlx5_0 mrn 4 mrlen 1 comm x pid 5\n").empty());
}

TEST(RdmaText, ReadsModesOfMellanoxPorts) {
  const auto modes = parse_modes(
      "link mlx5_0/1 auto off\nlink mlx5_1/1 auto type,pid on\nlink rxe0/1 auto off\n"
      "link mlx5_2/1 cntn 4 qp-type RC pid 1 comm x\nlink mlx5_3/1 auto\n");
  ASSERT_EQ(modes.size(), 2U);
  EXPECT_EQ(modes[0].link, "mlx5_0/1");
  EXPECT_FALSE(modes[0].on);
  EXPECT_EQ(modes[1].link, "mlx5_1/1");
  EXPECT_TRUE(modes[1].on);
}

TEST(RdmaText, LeavesMalformedLinesOut) {
  for (const char* text :
       {"", "\n\n", "dev", "dev mlx5_0", "dev mlx5_0 mrlen pid 1", "dev mlx5_0 mrlen 1 pid",
        "dev mlx5_0 mrlen 99999999999999999999999 pid 1", "dev mlx5_0 mrlen 1 pid 0",
        "dev mlx5_0 mrlen 1 pid 99999999999", "dev mlx5_0 mrlen -1 pid 1",
        "dev a\"b mrlen 1 pid 1"}) {
    EXPECT_TRUE(parse_regions(text).empty()) << text;
  }
  EXPECT_TRUE(
      parse_pairs("link mlx5_0 lqpn 1 pid 4\nlink /1 lqpn 1 pid 4\nlink a/b pid 1").empty());
}

Resources two_units() {
  return {
      .regions = {{{"mlx5_0", 1, 1, 10}, {"mlx5_1", 2, 1, 5}, {"mlx5_0", 9, 1, 7}}},
      .queues = {{{"mlx5_1", 3, 1, 100}}},
      .pairs = {{{"mlx5_1", "1", 1, 1}, {"mlx5_0", "2", 2, 1}}},
      .counters = {{{"mlx5_1", "1", 1, {4, 1}}, {"mlx5_1", "1", 2, {3}}, {"mlx5_2", "1", 3, {8}}}}};
}

TEST(RdmaResources, AreSummedByUnitUnderTheFirstDevice) {
  const auto units = by_unit(two_units(), [](int pid) -> std::string_view {
    return pid <= 2 ? "a" : pid == 3 ? "b" : "";
  });
  ASSERT_EQ(units.regions.size(), 1U);
  EXPECT_EQ(units.regions.at("a").device, "mlx5_0");
  EXPECT_EQ(units.regions.at("a").count, 2U);
  EXPECT_EQ(units.regions.at("a").size, 15U);
  EXPECT_EQ(units.queues.at("b").size, 100U);
  EXPECT_EQ(units.pairs.at("a").device, "mlx5_1");
  EXPECT_EQ(units.pairs.at("a").port, "1");
  EXPECT_EQ(units.pairs.at("a").count, 2U);
  EXPECT_EQ(units.pairs.at("a").counters[0], 7U);  // both processes
  EXPECT_EQ(units.pairs.at("a").counters[1], 1U);
  EXPECT_EQ(units.pairs.at("b").count, 1U);  // known from its counters only
  EXPECT_EQ(units.pairs.at("b").counters[0], 8U);
}

TEST(RdmaResources, WithoutAUnitAreNotCounted) {
  const auto units = by_unit(two_units(), [](int) { return std::string_view(); });
  EXPECT_TRUE(units.regions.empty());
  EXPECT_TRUE(units.queues.empty());
  EXPECT_TRUE(units.pairs.empty());
  EXPECT_TRUE(by_unit({}, [](int) { return std::string_view("a"); }).pairs.empty());
}

}  // namespace
}  // namespace ceems::exporter::rdma
