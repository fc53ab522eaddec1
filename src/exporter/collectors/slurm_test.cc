#include "exporter/collectors/slurm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exporter/collectors/collector_test_support.h"
#include "testing/temp_dir.h"

namespace ceems::exporter {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string slurm_page(const std::string& host,
                       const std::string& version,
                       UnitMetricOptions options = {}) {
  TestContext test(fixture(host));
  auto collector =
      make_slurm_collector(test.context, {.force_version = version}, {}, options).value();
  return samples_of(*collector);
}

std::string slurm_sample(const std::string& name,
                         const std::string& labels,
                         const std::string& value) {
  return "ceems_compute_" + name + "{" + labels + "} " + value + "\n";
}

const std::string kJob501 = R"(cgrouphostname="",hostname="n1",manager="slurm",uuid="501")";
const std::string kJob87 = R"(cgrouphostname="",hostname="n1",manager="slurm",uuid="87")";
const std::string kJob88 = R"(cgrouphostname="front0",hostname="n1",manager="slurm",uuid="88")";

TEST(Slurm, ShowsJobsOfCgroupV2) {
  const std::string page = slurm_page("slurm-v2", "v2");
  EXPECT_THAT(page, HasSubstr(slurm_sample("units", R"(hostname="n1",manager="slurm")", "5")));
  EXPECT_THAT(page, HasSubstr(slurm_sample("unit_cpu_user_seconds_total", kJob501, "7200.5")));
  EXPECT_THAT(page, HasSubstr(slurm_sample("unit_cpu_system_seconds_total", kJob501, "90.25")));
  EXPECT_THAT(page, HasSubstr(slurm_sample("unit_cpus", kJob501, "8")));
  EXPECT_THAT(page, HasSubstr(slurm_sample("unit_memory_rss_bytes", kJob501, "2.147483648e+09")));
  EXPECT_THAT(page, HasSubstr(slurm_sample("unit_memory_cache_bytes", kJob501, "5.36870912e+08")));
  EXPECT_THAT(page, HasSubstr(slurm_sample("unit_memory_used_bytes", kJob501, "2.79e+09")));
  EXPECT_THAT(page,
              HasSubstr(slurm_sample("unit_memory_total_bytes", kJob501, "1.7179869184e+10")));
  EXPECT_THAT(page, HasSubstr(slurm_sample("unit_memory_fail_count", kJob501, "2")));
  // Without a limit the machine's memory counts.
  EXPECT_THAT(
      page, HasSubstr(slurm_sample("unit_memory_total_bytes",
                                   R"(cgrouphostname="",hostname="n1",manager="slurm",uuid="502")",
                                   "6.7108864e+10")));
}

TEST(Slurm, LeavesOutCpuTimeThatCgroupV1DoesNotCount) {
  const testing::TempDir root;
  const std::string memory = "sys/fs/cgroup/memory/slurm/uid_1000/job_7/";
  root.write(memory + "step_batch/cgroup.procs", "5001\n");
  root.write("proc/5001/stat",
             "5001 (app) S 1 5001 5001 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5001 0 0\n");
  root.write(memory + "cgroup.procs", "");
  root.write(memory + "memory.usage_in_bytes", "4096\n");
  const auto page = [&] {
    TestContext test(root.path());
    const auto collector =
        make_slurm_collector(test.context, {.active_subsystem = "memory", .force_version = "v1"},
                             {}, {})
            .value();
    return samples_of(*collector);
  };
  EXPECT_THAT(page(), HasSubstr("unit_memory_used_bytes"));
  EXPECT_THAT(page(), Not(HasSubstr("unit_cpu_user_seconds_total")));
  const std::string cpuacct = "sys/fs/cgroup/cpu,cpuacct/";
  root.write(cpuacct + "cgroup.procs", "");
  EXPECT_THAT(page(), Not(HasSubstr("unit_cpu_user_seconds_total"))) << "the job has none there";
  root.write(cpuacct + "slurm/uid_1000/job_7/cpuacct.stat", "user 150\nsystem 50\n");
  EXPECT_THAT(page(), HasSubstr("unit_cpu_user_seconds_total{cgrouphostname=\"\",hostname=\"n1\","
                                "manager=\"slurm\",uuid=\"7\"} 1.5\n"));
}

TEST(Slurm, ShowsRdmaObjects) {
  const std::string page = slurm_page("slurm-v2", "v2");
  const std::string labels =
      R"(cgrouphostname="",device="mlx5_0",hostname="n1",manager="slurm",uuid="501")";
  EXPECT_THAT(page, HasSubstr(slurm_sample("unit_rdma_hca_handles", labels, "12")));
  EXPECT_THAT(page, HasSubstr(slurm_sample("unit_rdma_hca_objects", labels, "345")));
  EXPECT_THAT(page, Not(HasSubstr("mlx5_1")));  // no handle, no series
}

TEST(Slurm, ShowsVirtualNodesAndSluids) {
  const std::string page = slurm_page("slurm-v2", "v2");
  EXPECT_THAT(
      page, HasSubstr(slurm_sample(
                "unit_cpus", R"(cgrouphostname="front0",hostname="n1",manager="slurm",uuid="902")",
                "2")));
  EXPECT_THAT(
      page,
      HasSubstr(slurm_sample(
          "unit_cpus",
          R"(cgrouphostname="front0",hostname="n1",manager="slurm",uuid="sZZZZZZZZZZZZZ")", "1")));
}

TEST(Slurm, ShowsErrorsOfTheirUnitOnly) {
  const std::string page = slurm_page("slurm-v2", "v2");
  const std::string broken = R"(cgrouphostname="front0",hostname="n1",manager="slurm",uuid="903")";
  EXPECT_THAT(page, HasSubstr(slurm_sample("collect_error", broken, "1")));
  EXPECT_THAT(page, HasSubstr(slurm_sample("unit_cpu_user_seconds_total", broken, "0")));
  EXPECT_EQ(page.find("collect_error"), page.rfind("collect_error"));
}

TEST(Slurm, LeavesOutCgroupsThatAreNotRunningJobs) {
  const std::string page = slurm_page("slurm-v2", "v2");
  for (const char* const text : {"\"499\"", "\"7\"", "12x", "sshd", "psi", "memsw", "blkio"}) {
    EXPECT_THAT(page, Not(HasSubstr(text)));
  }
}

TEST(Slurm, ShowsSwapAndPressureOnRequest) {
  const std::string page = slurm_page("slurm-v2", "v2", {.swap = true, .pressure = true});
  EXPECT_THAT(page, HasSubstr(slurm_sample("unit_memsw_used_bytes", kJob501, "4096")));
  EXPECT_THAT(page, HasSubstr(slurm_sample("unit_memsw_total_bytes", kJob501, "8.589934592e+09")));
  EXPECT_THAT(page, HasSubstr(slurm_sample("unit_memsw_fail_count", kJob501, "0")));
  EXPECT_THAT(page, HasSubstr(slurm_sample("unit_cpu_psi_seconds", kJob501, "2.5")));
  EXPECT_THAT(page, HasSubstr(slurm_sample("unit_memory_psi_seconds", kJob501, "0.125")));
}

TEST(Slurm, ShowsJobsOfCgroupV1) {
  const std::string page = slurm_page("slurm-v1", "v1", {.swap = true});
  EXPECT_THAT(page, HasSubstr(slurm_sample("units", R"(hostname="n1",manager="slurm")", "3")));
  EXPECT_THAT(page, HasSubstr(slurm_sample("unit_cpu_user_seconds_total", kJob87, "3600")));
  EXPECT_THAT(page, HasSubstr(slurm_sample("unit_cpu_system_seconds_total", kJob87, "12.5")));
  EXPECT_THAT(page, HasSubstr(slurm_sample("unit_cpus", kJob87, "8")));
  EXPECT_THAT(page, HasSubstr(slurm_sample("unit_memory_rss_bytes", kJob87, "1e+06")));
  EXPECT_THAT(page, HasSubstr(slurm_sample("unit_memory_cache_bytes", kJob87, "4096")));
  EXPECT_THAT(page, HasSubstr(slurm_sample("unit_memory_used_bytes", kJob87, "2e+06")));
  EXPECT_THAT(page, HasSubstr(slurm_sample("unit_memory_fail_count", kJob87, "7")));
  EXPECT_THAT(page, HasSubstr(slurm_sample("unit_memsw_used_bytes", kJob87, "2.0001e+06")));
  EXPECT_THAT(page, HasSubstr(slurm_sample("unit_memory_total_bytes", kJob87, "8.589934592e+09")));
  // As in the reference, the kernel's number for "no limit" is exported.
  EXPECT_THAT(page,
              HasSubstr(slurm_sample("unit_memory_total_bytes", kJob88, "9.223372036854772e+18")));
  EXPECT_THAT(page, Not(HasSubstr("collect_error")));
}

TEST(Slurm, ShowsBlockIoOfV1WithDevicesThatOnlyWrote) {
  const std::string page = slurm_page("slurm-v1", "v1", {.block_io = true});
  const auto labels = [](const std::string& device) {
    return R"(cgrouphostname="",device=")" + device +
           R"(",hostname="n1",manager="slurm",uuid="87")";
  };
  EXPECT_THAT(page,
              HasSubstr(slurm_sample("unit_blkio_read_total_bytes", labels("nvme0n1"), "4096")));
  EXPECT_THAT(page,
              HasSubstr(slurm_sample("unit_blkio_write_total_requests", labels("nvme0n1"), "2")));
  EXPECT_THAT(page, HasSubstr(slurm_sample("unit_blkio_write_total_bytes", labels("8:16"), "512")));
  EXPECT_THAT(page, Not(HasSubstr("blkio_read_total_bytes{cgrouphostname=\"\",device=\"8:16\"")));
}

TEST(Slurm, WalksTheHierarchyOfTheFlag) {
  TestContext test(fixture("slurm-v1"));
  const auto collector = make_slurm_collector(
      test.context, {.active_subsystem = "devices", .force_version = "v1"}, {}, {});
  ASSERT_FALSE(collector);
  EXPECT_THAT(collector.error().message, HasSubstr("no cgroup hierarchy 'devices' in "));
}

TEST(Slurm, StartsBeforeSlurmAndFindsItLater) {
  const testing::TempDir root;
  root.write("sys/fs/cgroup/system.slice/cgroup.procs", "");
  root.write("proc/9/status", "");
  TestContext test(root.path());
  auto collector = make_slurm_collector(test.context, {.force_version = "v2"}, {}, {});
  ASSERT_TRUE(collector);
  EXPECT_EQ(samples_of(**collector),
            slurm_sample("units", R"(hostname="n1",manager="slurm")", "0"));
  root.write("sys/fs/cgroup/system.slice/slurmstepd.scope/job_4/cgroup.procs", "9\n");
  test.clock.advance(std::chrono::seconds(15));
  EXPECT_THAT(samples_of(**collector),
              HasSubstr(slurm_sample("units", R"(hostname="n1",manager="slurm")", "1")));
}

TEST(Slurm, RefusesToStartWithoutCgroups) {
  TestContext test(fixture("empty"));
  const auto collector = make_slurm_collector(test.context, {.force_version = "v2"}, {}, {});
  ASSERT_FALSE(collector);
  EXPECT_THAT(collector.error().message, HasSubstr("no cgroup directory "));
}

}  // namespace
}  // namespace ceems::exporter
