#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "exporter/unit/cgroup_unit_source.h"
#include "testing/fake_clock.h"
#include "testing/temp_dir.h"

namespace ceems::exporter {
namespace {

const std::string kJobV2 = "cgroup/system.slice/slurmstepd.scope/job_7/";

/// A tree of plain files with the job 7.
class CgroupUnitProbe : public ::testing::Test {
 protected:
  void write(const std::string& file, std::string_view text) const { root_.write(file, text); }

  UnitProbe ask(host::CgroupMode mode, const UnitProbe& question) {
    if (!source_) {
      auto created = CgroupUnitSource::create(
          {.manager = "slurm",
           .paths = {root_.path() / "proc", root_.path() / "sys", root_.path() / "cgroup"},
           .mount = {mode, false}},
          slurm_matcher(mode), clock_);
      EXPECT_TRUE(created) << created.error().message;
      source_ = *std::move(created);
      EXPECT_TRUE(source_->snapshot(std::chrono::milliseconds(0)));
    }
    UnitProbe probe = question;
    source_->probe({&probe, 1});
    return probe;
  }

  testing::TempDir root_;
  testing::FakeClock clock_;
  std::shared_ptr<CgroupUnitSource> source_;
};

TEST_F(CgroupUnitProbe, ReadsMemoryAboveALimitAndIo) {
  write("proc/4242/status", "");
  write(kJobV2 + "cgroup.procs", "4242\n");
  write(kJobV2 + "cpu.stat", "usage_usec 1\nuser_usec 1\nsystem_usec 0\n");
  write(kJobV2 + "memory.current", "9000\n");
  write(kJobV2 + "memory.stat", "anon 1000\nfile 5000\nkernel 30\nshmem 200\ninactive_file 1\n");
  const auto mode = host::CgroupMode::kUnified;
  UnitProbe probe =
      ask(mode, {.cgrouphostname = "", .uuid = "7", .memory_above = 8999, .io = true});
  EXPECT_EQ(probe.memory_charged_bytes, 9000U);
  EXPECT_EQ(probe.memory_held_bytes, 1230U);
  EXPECT_EQ(probe.io_bytes, std::nullopt);
  EXPECT_EQ(probe.io_stalled_seconds, std::nullopt);

  probe = ask(mode, {.cgrouphostname = "", .uuid = "7", .memory_above = 9000});
  EXPECT_EQ(probe.memory_charged_bytes, 9000U);
  EXPECT_EQ(probe.memory_held_bytes, std::nullopt);

  write(kJobV2 + "io.pressure",
        "some avg10=0.00 avg60=0.00 avg300=0.00 total=2500000\n"
        "full avg10=0.00 avg60=0.00 avg300=0.00 total=1\n");
  probe = ask(mode, {.cgrouphostname = "", .uuid = "7", .io = true});
  EXPECT_EQ(probe.io_stalled_seconds, 2.5);
  EXPECT_EQ(probe.memory_charged_bytes, std::nullopt) << "not asked for";

  write(kJobV2 + "io.stat",
        "8:0 rbytes=100 wbytes=20 rios=1 wios=1 dbytes=9 dios=1\n"
        "8:16 rbytes=3 wbytes=0 rios=1 wios=0 dbytes=0 dios=0\n");
  probe = ask(mode, {.cgrouphostname = "", .uuid = "7", .io = true});
  EXPECT_EQ(probe.io_bytes, 123);
  EXPECT_EQ(probe.io_stalled_seconds, std::nullopt);

  write(kJobV2 + "io.stat", "");
  EXPECT_EQ(ask(mode, {.cgrouphostname = "", .uuid = "7", .io = true}).io_bytes, 0)
      << "counted, and there was none";
}

TEST_F(CgroupUnitProbe, KeepsTheTrafficThatWasNoted) {
  write("proc/4242/status", "");
  write(kJobV2 + "cgroup.procs", "4242\n");
  write(kJobV2 + "cpu.stat", "usage_usec 1\n");
  const auto mode = host::CgroupMode::kUnified;
  const UnitProbe question{.cgrouphostname = "", .uuid = "7", .io = true};
  EXPECT_EQ(ask(mode, question).traffic_bytes, std::nullopt) << "not counted";
  for (const double bytes : {10.0, 30.0}) {
    const std::vector<UnitTraffic> traffic = {{.cgrouphostname = "", .uuid = "7", .bytes = bytes},
                                              {.cgrouphostname = "", .uuid = "8", .bytes = 5}};
    source_->note_traffic(traffic);
  }
  const UnitProbe probe = ask(mode, question);
  EXPECT_EQ(probe.traffic_bytes, 30);
  EXPECT_EQ(probe.traffic_notes, 2U);
}

TEST_F(CgroupUnitProbe, HasNoAnswerForAnUnknownUnitOrBadFiles) {
  write("proc/4242/status", "");
  write(kJobV2 + "cgroup.procs", "4242\n");
  write(kJobV2 + "cpu.stat", "usage_usec 1\n");
  const auto mode = host::CgroupMode::kUnified;
  UnitProbe probe = ask(mode, {.cgrouphostname = "", .uuid = "8", .memory_above = 0, .io = true});
  EXPECT_EQ(probe.memory_charged_bytes, std::nullopt);
  EXPECT_EQ(probe.io_bytes, std::nullopt);
  write(kJobV2 + "io.pressure", "nonsense\n");
  probe = ask(mode, {.cgrouphostname = "", .uuid = "7", .memory_above = 0, .io = true});
  EXPECT_EQ(probe.memory_charged_bytes, std::nullopt);
  EXPECT_EQ(probe.memory_held_bytes, std::nullopt);
}

TEST_F(CgroupUnitProbe, ReadsBlkioOfV1) {
  const std::string job = "/slurm/uid_1/job_7/";
  write("proc/4242/status", "");
  write("cgroup/cpuacct" + job + "cgroup.procs", "4242\n");
  write("cgroup/cpuacct" + job + "cpuacct.stat", "user 1\nsystem 1\n");
  write("cgroup/memory" + job + "memory.usage_in_bytes", "9000\n");
  write("cgroup/memory" + job + "memory.stat",
        "rss 1\nshmem 1\ntotal_cache 5000\ntotal_rss 1000\ntotal_shmem 200\n");
  write("cgroup/blkio" + job + "blkio.throttle.io_service_bytes",
        "8:0 Read 100\n8:0 Write 20\n8:0 Sync 120\n8:0 Total 120\nTotal 120\n");
  const UnitProbe probe = ask(host::CgroupMode::kLegacy,
                              {.cgrouphostname = "", .uuid = "7", .memory_above = 0, .io = true});
  EXPECT_EQ(probe.memory_charged_bytes, 9000U);
  EXPECT_EQ(probe.memory_held_bytes, 1200U);
  EXPECT_EQ(probe.io_bytes, 120);
  write("cgroup/blkio" + job + "blkio.throttle.io_service_bytes_recursive",
        "8:0 Read 4100\n8:0 Write 20\n8:0 Total 4120\nTotal 4120\n");
  const UnitProbe tree{.cgrouphostname = "", .uuid = "7", .io = true};
  EXPECT_EQ(ask(host::CgroupMode::kLegacy, tree).io_bytes, 4120) << "with the steps of the job";
  write("cgroup/blkio" + job + "blkio.throttle.io_service_bytes_recursive", "Total 0\n");
  write("cgroup/blkio" + job + "blkio.throttle.io_service_bytes", "Total 0\n");
  EXPECT_EQ(
      ask(host::CgroupMode::kLegacy, {.cgrouphostname = "", .uuid = "7", .io = true}).io_bytes,
      std::nullopt)
      << "it may be that the kernel does not count";
}

}  // namespace
}  // namespace ceems::exporter
