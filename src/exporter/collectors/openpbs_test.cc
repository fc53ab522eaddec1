#include "exporter/collectors/openpbs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exporter/collectors/collector_test_support.h"
#include "testing/temp_dir.h"

namespace ceems::exporter {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string openpbs_page(const std::string& host,
                         const std::string& version,
                         UnitMetricOptions metrics = {}) {
  TestContext test(fixture(host));
  auto collector =
      make_openpbs_collector(test.context, {.force_version = version}, {}, metrics).value();
  return samples_of(*collector);
}

std::string openpbs_sample(const std::string& name,
                           const std::string& job,
                           const std::string& value) {
  return "ceems_compute_unit_" + name +
         R"({cgrouphostname="",hostname="n1",manager="openpbs",uuid=")" + job + "\"} " + value +
         "\n";
}

TEST(Openpbs, ShowsJobsAndElementsOfArraysOfCgroupV1) {
  const std::string page = openpbs_page("openpbs-v1", "v1");
  EXPECT_THAT(page, HasSubstr("ceems_compute_units{hostname=\"n1\",manager=\"openpbs\"} 3\n"));
  EXPECT_THAT(page, HasSubstr(openpbs_sample("cpu_user_seconds_total", "101.pbs1", "7200.5")));
  EXPECT_THAT(page, HasSubstr(openpbs_sample("cpus", "101.pbs1", "8")));
  EXPECT_THAT(page, HasSubstr(openpbs_sample("cpus", "102[3].pbs1", "2")));
  EXPECT_THAT(page, HasSubstr(openpbs_sample("memory_fail_count", "102[3].pbs1", "2")));
  EXPECT_THAT(page, Not(HasSubstr("\"99.pbs1\"")));  // its process is gone
  EXPECT_THAT(page, Not(HasSubstr("memsw")));
  EXPECT_THAT(page, Not(HasSubstr("blkio")));
}

TEST(Openpbs, ShowsJobsOfCgroupV2WithTheirWholeIds) {
  const std::string page = openpbs_page("openpbs-v2", "v2", {.swap = true, .pressure = true});
  EXPECT_THAT(page,
              HasSubstr(openpbs_sample("cpu_user_seconds_total", "201.pbs1.example.org", "3600")));
  EXPECT_THAT(page, HasSubstr(openpbs_sample("cpus", "202[1].pbs1.example.org", "2")));
  EXPECT_THAT(page, HasSubstr(openpbs_sample("memory_fail_count", "202[1].pbs1.example.org", "1")));
  EXPECT_THAT(page,
              HasSubstr(openpbs_sample("memsw_used_bytes", "202[2].pbs1.example.org", "8192")));
  EXPECT_THAT(page,
              HasSubstr(openpbs_sample("memory_psi_seconds", "202[2].pbs1.example.org", "0.04")));
}

TEST(Openpbs, ReportsNoUnitsBeforeTheFirstJob) {
  const testing::TempDir host;
  host.write("sys/fs/cgroup/cgroup.controllers", "cpu memory\n");
  host.write("proc/meminfo", "MemTotal: 1 kB\n");
  TestContext test(host.path());
  auto collector = make_openpbs_collector(test.context, {.force_version = "v2"}, {}, {}).value();
  EXPECT_EQ(samples_of(*collector), "ceems_compute_units{hostname=\"n1\",manager=\"openpbs\"} 0\n");
}

TEST(Openpbs, FailsToStartWithoutTheCgroupHierarchy) {
  const testing::TempDir empty;
  TestContext test(empty.path());
  EXPECT_FALSE(make_openpbs_collector(test.context, {.force_version = "v2"}, {}, {}));
}

}  // namespace
}  // namespace ceems::exporter
