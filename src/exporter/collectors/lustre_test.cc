#include <linux/capability.h>

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exporter/collectors/all.h"
#include "exporter/collectors/collector_test_support.h"
#include "testing/temp_dir.h"

namespace ceems::exporter {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kMount = "ffff8b1c5a3e8000";

class LustreTest : public ::testing::Test {
 protected:
  LustreTest() : host_(dir_.path()) {}

  void write(const std::string& file, std::string_view text) { dir_.write(file, text); }
  std::string samples() {
    if (!collector_) {
      collector_ = *create_collector(lustre_collector(), host_.context);
    }
    return samples_of(*collector_, &result_);
  }
  std::string refusal(const std::string& flag) {
    const auto created = create_collector(lustre_collector(), host_.context, {flag});
    return created ? "" : created.error().message;
  }

  testing::TempDir dir_;
  TestContext host_;
  std::unique_ptr<Collector> collector_;
  Result<> result_;
};

TEST_F(LustreTest, ExportsAClientOfTwoFileSystems) {
  write("sys/fs/lustre/jobid_var", "SLURM_JOB_ID\n");
  write("sys/fs/lustre/jobid_name", "%j\n");
  const std::string debug = "sys/kernel/debug/lustre/";
  write(debug + "llite/scratch-ffff8b1c5a3e8000/stats",
        "snapshot_time 1700000001.25 secs.nsecs\n"
        "read_bytes 12 samples [bytes] 4096 1048576 8388608 9\n"
        "read 12 samples [usecs] 1 100 1500000 9\n"
        "write_bytes 3 samples [bytes] 1 2 4 9\n"
        "open 7 samples [usecs] 1 9 40 300\n"
        "inode_permission 2 samples [usecs] 1 1 2 2\n"
        "dirty_pages_hits 4 samples [regs]\n"
        "ioctl 4 samples [reqs]\n");
  write("proc/fs/lustre/llite/home-ffff8b1c5a3e9000/stats",
        "snapshot_time 1700000001.25 secs.usecs\n"
        "open 5 samples [regs]\n");
  write("proc/fs/lustre/llite/home-ffff8b1c5a3ea000/stats", "open 6 samples [regs]\n");
  for (const char* target : {"OST0000", "OST0001"}) {
    write(fmt::format("{}osc/scratch-{}-osc-{}/stats", debug, target, kMount),
          "req_waittime 10 samples [usec] 30 4000 2000000 9\n"
          "req_active 10 samples [reqs] 1 3 20 40\n");
  }
  write(fmt::format("{}mdc/scratch-MDT0000-mdc-{}/stats", debug, kMount),
        "req_waittime 4 samples [usec] 30 400 1000 9\n");
  EXPECT_EQ(
      samples(),
      "ceems_lustre_jobid_info{hostname=\"n1\",jobid_name=\"%j\",jobid_var=\"SLURM_JOB_ID\"} 1\n"
      "ceems_lustre_operation_seconds_total{filesystem=\"scratch\",hostname=\"n1\",operation="
      "\"inode_permission\"} 2e-06\n"
      "ceems_lustre_operation_seconds_total{filesystem=\"scratch\",hostname=\"n1\",operation="
      "\"open\"} 4e-05\n"
      "ceems_lustre_operation_seconds_total{filesystem=\"scratch\",hostname=\"n1\",operation="
      "\"read\"} 1.5\n"
      "ceems_lustre_operations_total{filesystem=\"home\",hostname=\"n1\",operation=\"open\"} 11\n"
      "ceems_lustre_operations_total{filesystem=\"scratch\",hostname=\"n1\",operation="
      "\"inode_permission\"} 2\n"
      "ceems_lustre_operations_total{filesystem=\"scratch\",hostname=\"n1\",operation=\"open\"} 7\n"
      "ceems_lustre_operations_total{filesystem=\"scratch\",hostname=\"n1\",operation=\"read\"} "
      "12\n"
      "ceems_lustre_operations_total{filesystem=\"scratch\",hostname=\"n1\",operation=\"write\"} "
      "3\n"
      "ceems_lustre_read_bytes_total{filesystem=\"home\",hostname=\"n1\"} 0\n"
      "ceems_lustre_read_bytes_total{filesystem=\"scratch\",hostname=\"n1\"} 8.388608e+06\n"
      "ceems_lustre_request_seconds_total{filesystem=\"scratch\",hostname=\"n1\",targets=\"mdt\"} "
      "0.001\n"
      "ceems_lustre_request_seconds_total{filesystem=\"scratch\",hostname=\"n1\",targets=\"ost\"} "
      "4\n"
      "ceems_lustre_requests_total{filesystem=\"scratch\",hostname=\"n1\",targets=\"mdt\"} 4\n"
      "ceems_lustre_requests_total{filesystem=\"scratch\",hostname=\"n1\",targets=\"ost\"} 20\n"
      "ceems_lustre_write_bytes_total{filesystem=\"home\",hostname=\"n1\"} 0\n"
      "ceems_lustre_write_bytes_total{filesystem=\"scratch\",hostname=\"n1\"} 4\n");
  EXPECT_TRUE(result_);
  collector_ =
      *create_collector(lustre_collector(), host_.context, {"--no-collector.lustre.rpc-stats"});
  EXPECT_THAT(samples(), Not(HasSubstr("ceems_lustre_request")));
  EXPECT_TRUE(result_);
}

TEST_F(LustreTest, ExportsTheJobsOfAServer) {
  const std::string list =
      "job_stats:\n"
      "- job_id:          \"4711:1000:n1\"\n"
      "  snapshot_time:   1700000000.000000001 secs.nsecs\n"
      "  read_bytes:      { samples: 2, unit: bytes, min: 1, max: 9, sum: 10, sumsq: 82, hist: { "
      "4K: 2 } }\n"
      "  read:            { samples: 2, unit: usecs, min: 1, max: 9, sum: 500000, sumsq: 9 }\n"
      "  punch:           { samples: 0, unit: usecs, min: 0, max: 0, sum: 0, sumsq: 0 }\n"
      "- job_id:          dd.0\n"
      "  snapshot_time:   1700000000.000000001 secs.nsecs\n"
      "  write_bytes:     { samples: 1, unit: bytes, min: 5, max: 5, sum: 5, sumsq: 25, hist: { "
      "4K: 1 } }\n"
      "- job_id:          \"rm -rf\"\n"
      "  snapshot_time:   1700000000.000000001 secs.nsecs\n"
      "  punch:           { samples: 3, unit: usecs, min: 0, max: 0, sum: 0, sumsq: 0 }\n";
  write("proc/fs/lustre/obdfilter/scratch-OST0000/job_stats", list);
  write("proc/fs/lustre/obdfilter/scratch-OST0001/job_stats", list);
  write("proc/fs/lustre/mdt/home-MDT0000/job_stats",
        "job_stats:\n- job_id: 4711\n  snapshot_time: 1\n  open: { samples: 9, unit: reqs }\n");
  write("proc/fs/lustre/obdfilter/num_refs", "2\n");
  EXPECT_EQ(
      samples(),
      "ceems_lustre_job_operations_total{filesystem=\"home\",hostname=\"n1\",jobid=\"\",manager="
      "\"slurm\",operation=\"open\",targets=\"mdt\",uuid=\"4711\"} 9\n"
      "ceems_lustre_job_operations_total{filesystem=\"scratch\",hostname=\"n1\",jobid=\"\","
      "manager=\"slurm\",operation=\"read\",targets=\"ost\",uuid=\"4711\"} 4\n"
      "ceems_lustre_job_operations_total{filesystem=\"scratch\",hostname=\"n1\",jobid=\"dd.0\","
      "manager=\"\",operation=\"write\",targets=\"ost\",uuid=\"\"} 2\n"
      "ceems_lustre_job_operations_total{filesystem=\"scratch\",hostname=\"n1\",jobid=\"other\","
      "manager=\"\",operation=\"other\",targets=\"ost\",uuid=\"\"} 6\n"
      "ceems_lustre_job_read_bytes_total{filesystem=\"scratch\",hostname=\"n1\",jobid=\"\","
      "manager=\"slurm\",targets=\"ost\",uuid=\"4711\"} 20\n"
      "ceems_lustre_job_seconds_total{filesystem=\"scratch\",hostname=\"n1\",jobid=\"\",manager="
      "\"slurm\",targets=\"ost\",uuid=\"4711\"} 1\n"
      "ceems_lustre_job_write_bytes_total{filesystem=\"scratch\",hostname=\"n1\",jobid=\"dd.0\","
      "manager=\"\",targets=\"ost\",uuid=\"\"} 10\n"
      "ceems_lustre_jobs{hostname=\"n1\"} 3\n"
      "ceems_lustre_jobs_left_out{hostname=\"n1\"} 2\n");
  EXPECT_TRUE(result_);
}

TEST_F(LustreTest, BoundsTheSeriesOfJobs) {
  std::string list = "job_stats:\n";
  for (int i = 0; i < 10'000; ++i) {
    list += fmt::format("- job_id: {}\n  read_bytes: {{ samples: 1, unit: bytes, sum: 2 }}\n", i);
  }
  write("proc/fs/lustre/obdfilter/scratch-OST0000/job_stats", list);
  const std::string page = samples();
  EXPECT_TRUE(result_);
  EXPECT_EQ(std::ranges::count(page, '\n'), 1001 * 2 + 2);
  EXPECT_THAT(page, HasSubstr("jobid=\"other\",manager=\"\",targets=\"ost\",uuid=\"\"} 18000\n"));
  EXPECT_THAT(page, HasSubstr("ceems_lustre_jobs{hostname=\"n1\"} 1000\n"));
  EXPECT_THAT(page, HasSubstr("ceems_lustre_jobs_left_out{hostname=\"n1\"} 9000\n"));
}

TEST_F(LustreTest, TakesOtherJobIdsForUnitsOnRequest) {
  write("proc/fs/lustre/mdt/home-MDT0000/job_stats",
        "job_stats:\n- job_id: 12.srv\n  open: { samples: 9, unit: reqs }\n"
        "- job_id: 13\n  open: { samples: 8, unit: reqs }\n");
  collector_ = *create_collector(
      lustre_collector(), host_.context,
      {"--collector.lustre.manager=openpbs", R"(--collector.lustre.job-id=(\d+\.[a-z]+))",
       "--collector.lustre.max-jobs=1"});
  const std::string page = samples();
  EXPECT_THAT(
      page,
      HasSubstr("manager=\"openpbs\",operation=\"open\",targets=\"mdt\",uuid=\"12.srv\"} 9\n"));
  EXPECT_THAT(
      page,
      HasSubstr("jobid=\"other\",manager=\"\",operation=\"open\",targets=\"mdt\",uuid=\"\"} 8\n"));
}

TEST_F(LustreTest, ExportsWhatIsValidBesideAMalformedFile) {
  write("proc/fs/lustre/llite/scratch-ffff8b1c5a3e8000/stats",
        "open 7 samples [regs]\nread_bytes 1 sam");
  write("proc/fs/lustre/obdfilter/scratch-OST0000/job_stats",
        "job_stats:\n- job_id: 1\n  open: { samples: 1, unit: reqs }\n- job_id: 2\n  open: { sam");
  const std::string page = samples();
  EXPECT_THAT(page, HasSubstr("operation=\"open\"} 7\n"));
  EXPECT_THAT(page, HasSubstr("uuid=\"1\"} 1\n"));
  EXPECT_THAT(page, Not(HasSubstr("uuid=\"2\"")));
  ASSERT_FALSE(result_);
  EXPECT_EQ(result_.error().code, ErrorCode::kParse);
  EXPECT_THAT(result_.error().message, HasSubstr("scratch-ffff8b1c5a3e8000/stats: line 2: "));
}

TEST_F(LustreTest, ReturnsNoDataWithoutLustre) {
  EXPECT_EQ(samples(), "");
  ASSERT_FALSE(result_);
  EXPECT_EQ(result_.error().code, ErrorCode::kNoData);
  write("sys/fs/lustre/jobid_var", "disable\n");  // loaded, but nothing is mounted
  EXPECT_EQ(samples(),
            "ceems_lustre_jobid_info{hostname=\"n1\",jobid_name=\"\",jobid_var=\"disable\"} 1\n");
  ASSERT_FALSE(result_);
  EXPECT_EQ(result_.error().code, ErrorCode::kNoData);
  write("proc/fs/lustre/llite/README", "x");
  EXPECT_NE(samples(), "");
  EXPECT_FALSE(result_);
}

TEST_F(LustreTest, KeepsThePrivilegeForTheDebugFileSystem) {
  samples();
  EXPECT_EQ(collector_->capabilities(), std::vector<os::Capability>{CAP_DAC_READ_SEARCH});
}

TEST_F(LustreTest, RefusesFlagsOutOfTheirRange) {
  EXPECT_EQ(refusal("--collector.lustre.max-jobs=-1"),
            "--collector.lustre.max-jobs: expected 0 to 20000, got -1");
  EXPECT_EQ(refusal("--collector.lustre.max-jobs=20001"),
            "--collector.lustre.max-jobs: expected 0 to 20000, got 20001");
  EXPECT_EQ(refusal("--collector.lustre.max-jobs=0"), "");
  EXPECT_THAT(refusal("--collector.lustre.job-id=("), HasSubstr("got '(': missing )"));
  EXPECT_THAT(refusal("--collector.lustre.job-id=.*"), HasSubstr("with a group, got '.*'"));
  EXPECT_THAT(refusal("--collector.lustre.manager=a\"b"), HasSubstr("letters, digits"));
  EXPECT_THAT(refusal("--collector.lustre.manager="), HasSubstr("letters, digits"));
}

}  // namespace
}  // namespace ceems::exporter
