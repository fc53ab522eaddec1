#include "host/cgroup/cgroup.h"

#include <gtest/gtest.h>

namespace ceems::host {
namespace {

TEST(CgroupValue, ReadsNumbersAndMax) {
  EXPECT_EQ(parse_cgroup_value("4096\n"), 4096U);
  EXPECT_EQ(parse_cgroup_value("max\n"), kCgroupMax);
  EXPECT_EQ(parse_cgroup_value("9223372036854771712"), 9223372036854771712U);
}

TEST(CgroupValue, ReadsNegativesAsZero) {
  EXPECT_EQ(parse_cgroup_value("-1\n"), 0U);
}

TEST(CgroupValue, ReportsTextThatIsNotANumber) {
  EXPECT_EQ(parse_cgroup_value("").error().message, "expected a number, got ''");
  EXPECT_EQ(parse_cgroup_value("12 kB").error().message, "expected a number, got '12 kB'");
  EXPECT_EQ(parse_cgroup_value("99999999999999999999").error().code, ErrorCode::kParse);
}

TEST(CgroupCpuStat, ReadsTheKnownKeys) {
  const auto stat = parse_cgroup_cpu_stat(
      "usage_usec 30\nuser_usec 20\nsystem_usec 10\nnr_periods 0\nnew_key 7\n");
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->usage_usec, 30U);
  EXPECT_EQ(stat->user_usec, 20U);
  EXPECT_EQ(stat->system_usec, 10U);
}

TEST(CgroupCpuStat, RejectsLinesThatAreNotPairs) {
  EXPECT_EQ(parse_cgroup_cpu_stat("usage_usec\n").error().message,
            "expected a key and a number, got 'usage_usec'");
  EXPECT_FALSE(parse_cgroup_cpu_stat("user_usec 1 2\n"));
  EXPECT_FALSE(parse_cgroup_cpu_stat("user_usec many\n"));
  EXPECT_FALSE(parse_cgroup_cpu_stat("\x7f\x45\x4c\x46\x02"));
}

TEST(CpuacctStat, NeedsBothKeys) {
  const auto stat = parse_cpuacct_stat("user 39\nsystem 45\n");
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->user_ticks, 39U);
  EXPECT_EQ(stat->system_ticks, 45U);
  EXPECT_FALSE(parse_cpuacct_stat("user 39\n"));
  EXPECT_FALSE(parse_cpuacct_stat(""));
}

TEST(CgroupMemoryStat, ReadsHierarchicalKeysOfV1) {
  const auto stat = parse_memory_stat_v1(
      "cache 1\nrss 2\ninactive_file 3\ntotal_cache 10\ntotal_rss 20\ntotal_inactive_file 30\n");
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->cache, 10U);
  EXPECT_EQ(stat->rss, 20U);
  EXPECT_EQ(stat->inactive_file, 30U);
  EXPECT_EQ(stat->shmem, std::nullopt) << "old kernels do not count it";
  EXPECT_EQ(stat->held(), 20U);
  EXPECT_EQ(parse_memory_stat_v1("shmem 1\ntotal_rss 20\ntotal_shmem 5\n")->held(), 25U);
}

TEST(CgroupMemoryStat, ReadsAnonAndFileOfV2) {
  const auto stat = parse_memory_stat_v2("anon 5\nfile 6\ninactive_anon 1\ninactive_file 7\n");
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->rss, 5U);
  EXPECT_EQ(stat->cache, 6U);
  EXPECT_EQ(stat->inactive_file, 7U);
  const auto full = parse_memory_stat_v2("anon 5\nfile 60\nkernel 30\nkernel_stack 9\nshmem 200\n");
  ASSERT_TRUE(full);
  EXPECT_EQ(full->shmem, 200U);
  EXPECT_EQ(full->held(), 235U) << "without the file cache";
  EXPECT_FALSE(parse_memory_stat_v2("anon\n"));
}

TEST(CgroupMemoryEvents, CountsOutOfMemory) {
  const auto events = parse_memory_events("low 0\nhigh 0\nmax 9\noom 4\noom_kill 3\n");
  ASSERT_TRUE(events);
  EXPECT_EQ(events->max, 9U);
  EXPECT_EQ(events->oom, 4U);
  EXPECT_EQ(events->oom_kill, 3U);
}

TEST(CgroupPressure, ReadsTotals) {
  const auto pressure = parse_pressure(
      "some avg10=0.00 avg60=0.00 avg300=1.20 total=1500\nfull avg10=0.00 total=700\n");
  ASSERT_TRUE(pressure);
  EXPECT_EQ(pressure->some_usec, 1500U);
  EXPECT_EQ(pressure->full_usec, 700U);
}

TEST(CgroupPressure, IsZeroWithoutFullLineAndRejectsGarbage) {
  EXPECT_EQ(parse_pressure("some avg10=0.00 total=1500\n")->full_usec, 0U);
  EXPECT_EQ(parse_pressure("")->full_usec, 0U);
  EXPECT_FALSE(parse_pressure("full avg10=0.00\n"));
}

TEST(IoStat, FillsMissingKeysAndStopsAtUnknownDevices) {
  const auto io = parse_io_stat(
      "8:16 rbytes=10 wbytes=20 rios=1 wios=2 dbytes=9\n8:32 wbytes=5\n(unknown)\n8:48 rbytes=1\n");
  ASSERT_EQ(io.size(), 2U);
  EXPECT_EQ(io[0].major, 8U);
  EXPECT_EQ(io[0].minor, 16U);
  EXPECT_EQ(io[0].read_bytes, 10U);
  EXPECT_EQ(io[0].write_bytes, 20U);
  EXPECT_EQ(io[0].read_requests, 1U);
  EXPECT_EQ(io[0].write_requests, 2U);
  EXPECT_EQ(io[1].read_bytes, 0U);
  EXPECT_EQ(io[1].write_bytes, 5U);
}

TEST(Blkio, ReadsReadAndWrite) {
  const auto values = parse_blkio("8:0 Read 4\n8:0 Write 5\n8:0 Sync 9\n8:0 11\nTotal 9\n");
  ASSERT_TRUE(values);
  ASSERT_EQ(values->size(), 2U);
  EXPECT_FALSE((*values)[0].write);
  EXPECT_EQ((*values)[0].value, 4U);
  EXPECT_TRUE((*values)[1].write);
  EXPECT_EQ((*values)[1].value, 5U);
}

TEST(Blkio, RejectsOtherLines) {
  EXPECT_FALSE(parse_blkio("sda Read 4\n"));
  EXPECT_FALSE(parse_blkio("8:0 Read four\n"));
  EXPECT_FALSE(parse_blkio("8:0 Read 4 5\n"));
  EXPECT_FALSE(parse_blkio("\n"));
}

TEST(Rdma, ReadsLinesInEitherOrder) {
  const auto rdma = parse_rdma(
      "mlx5_0 hca_handle=2 hca_object=2000\nhfi1 hca_object=max hca_handle=3\n"
      "short hca_handle=1\nbig hca_handle=4294967296 hca_object=1\n");
  ASSERT_EQ(rdma.size(), 3U);
  EXPECT_EQ(rdma[0].device, "mlx5_0");
  EXPECT_EQ(rdma[0].hca_handles, 2U);
  EXPECT_EQ(rdma[0].hca_objects, 2000U);
  EXPECT_EQ(rdma[1].hca_handles, 3U);
  EXPECT_EQ(rdma[1].hca_objects, 4294967295U);
  EXPECT_EQ(rdma[2].hca_handles, 0U);
}

TEST(CpuList, CountsItemsAndRanges) {
  EXPECT_EQ(count_cpu_list("1,41\n"), 2U);
  EXPECT_EQ(count_cpu_list("0-3,8,10-11\n"), 7U);
}

TEST(CpuList, RejectsOtherText) {
  EXPECT_FALSE(count_cpu_list("\n"));
  EXPECT_FALSE(count_cpu_list("3-1"));
  EXPECT_FALSE(count_cpu_list("0-"));
  EXPECT_FALSE(count_cpu_list("a"));
  EXPECT_FALSE(count_cpu_list("0-4294967295"));
}

TEST(CpuMax, ReturnsTheCpusOfAQuota) {
  EXPECT_EQ(parse_cpu_max("150000 100000\n"), 1.5);
  EXPECT_FALSE(parse_cpu_max("max 100000\n"));
  EXPECT_FALSE(parse_cpu_max("1 0\n"));
}

TEST(CgroupProcs, SkipsLinesThatAreNotPids) {
  std::vector<int> pids = {1};
  parse_cgroup_procs("12\n\nabc\n-4\n0\n99999999999\n13", pids);
  EXPECT_EQ(pids, (std::vector<int>{1, 12, 13}));
}

TEST(Populated, IsFoundAmongOtherKeys) {
  EXPECT_EQ(parse_populated("populated 1\nfrozen 0\n"), true);
  EXPECT_EQ(parse_populated("frozen 0\npopulated 0\n"), false);
  EXPECT_FALSE(parse_populated("frozen 0\n"));
  EXPECT_FALSE(parse_populated("populated x\n"));
}

TEST(UnescapePath, DecodesSystemdNames) {
  EXPECT_EQ(unescape_path(R"(/machine-qemu\x2d1\x2da.scope)"), "/machine-qemu-1-a.scope");
  EXPECT_EQ(unescape_path(R"(\x2D\x7E)"), "-~");
  EXPECT_EQ(unescape_path(R"(a\tb\101\u00e9\\)"), "a\tbA\xc3\xa9\\");
  EXPECT_EQ(unescape_path(""), "");
}

TEST(UnescapePath, RejectsIllegalStrings) {
  EXPECT_FALSE(unescape_path("a\"b"));
  EXPECT_FALSE(unescape_path("a\nb"));
  EXPECT_FALSE(unescape_path(R"(a\q)"));
  EXPECT_FALSE(unescape_path(R"(a\x2)"));
  EXPECT_FALSE(unescape_path(R"(a\x2g)"));
  EXPECT_FALSE(unescape_path(R"(a\189)"));
  EXPECT_FALSE(unescape_path(R"(a\)"));
  EXPECT_FALSE(unescape_path(R"(\ud800)"));
}

TEST(MemoryTotals, AreBytes) {
  const auto totals = parse_memory_totals("MemTotal: 2 kB\nMemFree: 1 kB\nSwapTotal:  3 kB\n");
  EXPECT_EQ(totals.memory_bytes, 2048U);
  EXPECT_EQ(totals.swap_bytes, 3072U);
  EXPECT_EQ(parse_memory_totals("nonsense").memory_bytes, 0U);
}

TEST(BlockDevices, LaterLineOfTheSameNumberCounts) {
  const auto devices = parse_block_devices(
      "8 0 sda 1 2 3 4 5 6 7 8 9 10 11\n8 0 sdb 1 2 3 4 5 6 7 8 9 10 11\n8 1 part 1 2 3 4\n");
  ASSERT_TRUE(devices);
  EXPECT_EQ(devices->size(), 1U);
  EXPECT_EQ(devices->at({8, 0}), "sdb");
}

TEST(BlockDevices, RejectsDeviceNumbersThatAreNotNumbers) {
  EXPECT_FALSE(parse_block_devices("x 0 sda 1 2 3 4 5 6 7 8 9 10 11\n"));
}

}  // namespace
}  // namespace ceems::host
