#include "exporter/collectors/lsf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exporter/collectors/all.h"
#include "exporter/collectors/collector_test_support.h"
#include "testing/temp_dir.h"

namespace ceems::exporter {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// A page on which the answer of LSF has arrived.
std::string lsf_page(const std::string& host,
                     const std::string& version,
                     UnitMetricOptions metrics = {},
                     lsf::AllocationMap allocations = {}) {
  TestContext test(fixture(host));
  LsfOptions options;
  options.fetch = [allocations](const std::stop_token&) -> Result<lsf::AllocationMap> {
    return allocations;
  };
  auto collector =
      make_lsf_collector(test.context, {.force_version = version}, {}, metrics, std::move(options))
          .value();
  start_and_wait(*collector);
  return samples_of(*collector);
}

std::string lsf_sample(const std::string& name, const std::string& job, const std::string& value) {
  return "ceems_compute_unit_" + name + R"({cgrouphostname="",hostname="n1",manager="lsf",uuid=")" +
         job + "\"} " + value + "\n";
}

TEST(Lsf, ShowsJobsAndElementsOfArraysOfCgroupV1) {
  const std::string page =
      lsf_page("lsf-v1", "v1", {}, {{"6", {.slots = 4}}, {"7[1]", {.slots = 2}}});
  EXPECT_THAT(page, HasSubstr("ceems_compute_units{hostname=\"n1\",manager=\"lsf\"} 3\n"));
  EXPECT_THAT(page, HasSubstr(lsf_sample("cpu_user_seconds_total", "6", "3600.5")));
  EXPECT_THAT(page, HasSubstr(lsf_sample("cpu_user_seconds_total", "7[1]", "120")));
  EXPECT_THAT(page, HasSubstr(lsf_sample("cpu_user_seconds_total", "7[12]", "110")));
  EXPECT_THAT(page, HasSubstr(lsf_sample("memory_total_bytes", "6", "4.294967296e+09")));
  EXPECT_THAT(page, HasSubstr(lsf_sample("cpus", "6", "4")));
  EXPECT_THAT(page, HasSubstr(lsf_sample("cpus", "7[1]", "2")));
  EXPECT_THAT(page, HasSubstr(lsf_sample("cpus", "7[12]", "0")));  // LSF does not know it
  EXPECT_THAT(page, Not(HasSubstr("uuid=\"5\"")));                 // its process is gone
  EXPECT_THAT(page, Not(HasSubstr("memsw")));
  EXPECT_THAT(page, Not(HasSubstr("blkio")));
}

TEST(Lsf, ShowsSwapAndPressureOfCgroupV2OnRequest) {
  const std::string page = lsf_page("lsf-v2", "v2", {.swap = true, .pressure = true});
  EXPECT_THAT(page, HasSubstr(lsf_sample("cpu_user_seconds_total", "22[3]", "100")));
  EXPECT_THAT(page, HasSubstr(lsf_sample("memsw_used_bytes", "22[3]", "8192")));
  EXPECT_THAT(page, HasSubstr(lsf_sample("cpu_psi_seconds", "22[3]", "0.25")));
}

TEST(Lsf, ShowsJobsAlthoughLsfDoesNotAnswer) {
  TestContext test(fixture("lsf-v1"));
  LsfOptions options;
  options.fetch = [](const std::stop_token&) -> Result<lsf::AllocationMap> {
    return fail(ErrorCode::kTimeout, "no end after 1 s");
  };
  auto collector =
      make_lsf_collector(test.context, {.force_version = "v1"}, {}, {}, std::move(options)).value();
  start_and_wait(*collector);
  Result<> done;
  const std::string page = samples_of(*collector, &done);
  EXPECT_TRUE(done);
  EXPECT_THAT(page, HasSubstr(lsf_sample("cpu_user_seconds_total", "6", "3600.5")));
  EXPECT_THAT(page, HasSubstr(lsf_sample("cpus", "6", "0")));
}

TEST(Lsf, FailsToStartWithoutBjobs) {
  TestContext test(fixture("lsf-v1"));
  const auto shared = std::make_shared<UnitFlags>();
  const testing::TempDir empty;
  const auto create = [&](const std::string& path) {
    return create_collector(lsf_collector(shared), test.context,
                            {"--collector.lsf.bjobs-path=" + path});
  };
  auto collector = create((empty.path() / "bjobs").string());
  ASSERT_FALSE(collector);
  EXPECT_THAT(collector.error().message, HasSubstr("--collector.lsf.bjobs-path"));
  EXPECT_THAT(collector.error().message, HasSubstr("No such file or directory"));
  EXPECT_FALSE(create(empty.path().string()));  // a directory without it
  EXPECT_TRUE(create((fixture("lsf-v1") / "bin").string()));
  EXPECT_TRUE(create((fixture("lsf-v1") / "bin/bjobs").string()));
}

TEST(Lsf, FailsToStartWithoutTheCgroupHierarchy) {
  const testing::TempDir empty;
  TestContext test(empty.path());
  EXPECT_FALSE(make_lsf_collector(test.context, {.force_version = "v2"}, {}, {}, {}));
}

}  // namespace
}  // namespace ceems::exporter
