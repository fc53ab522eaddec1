#include "exporter/collectors/cgroup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exporter/collectors/collector_test_support.h"
#include "exporter/collectors/slurm.h"
#include "testing/temp_dir.h"

namespace ceems::exporter {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string info(const std::string& uuid, const std::string& name, const std::string& user) {
  return R"(ceems_compute_unit_info{cgrouphostname="",hostname="n1",manager="cgroup",name=")" +
         name + R"(",username=")" + user + R"(",uuid=")" + uuid + "\"} 1\n";
}

std::string cgroup_sample(const std::string& name,
                          const std::string& uuid,
                          const std::string& value) {
  return "ceems_compute_unit_" + name +
         R"({cgrouphostname="",hostname="n1",manager="cgroup",uuid=")" + uuid + "\"} " + value +
         "\n";
}

TEST(Cgroup, ShowsServicesSessionsAndContainers) {
  TestContext test(fixture("slurm-v2"));
  auto collector = make_cgroup_collector(test.context, {}, {.force_version = "v2"}, {}, {}).value();
  const std::string page = samples_of(*collector);
  EXPECT_THAT(page, HasSubstr(info("sshd.service", "sshd.service", "root")));
  EXPECT_THAT(page, HasSubstr(info("session-3.scope", "session-3.scope", "ada")));
  EXPECT_THAT(page, HasSubstr(info("dbus.service-u1001", "dbus.service", "ada")));
  std::string container;
  for (int i = 0; i < 4; ++i) {
    container += "0123456789abcdef";
  }
  EXPECT_THAT(page, HasSubstr(info("0123456789ab", container, "1002")));  // a user without name
  EXPECT_THAT(page, HasSubstr(cgroup_sample("cpus", "0123456789ab", "1.5")));
  EXPECT_THAT(page,
              HasSubstr(cgroup_sample("memory_total_bytes", "0123456789ab", "5.36870912e+08")));
  // Without limits it may use the whole machine.
  EXPECT_THAT(page, HasSubstr(cgroup_sample("cpus", "sshd.service", "16")));
  EXPECT_THAT(page,
              HasSubstr(cgroup_sample("memory_total_bytes", "sshd.service", "6.7108864e+10")));
}

TEST(Cgroup, LeavesSlurmToItsCollector) {
  TestContext test(fixture("slurm-v2"));
  auto slurm = make_slurm_collector(test.context, {.force_version = "v2"}, {}, {}).value();
  auto collector =
      make_cgroup_collector(test.context, slurm->sources(), {.force_version = "v2"}, {}, {})
          .value();
  const std::string page = samples_of(*collector);
  EXPECT_THAT(page, Not(HasSubstr("slurmstepd.scope")));
  EXPECT_THAT(page, HasSubstr("slurmd.service"));
}

TEST(Cgroup, ShowsCgroupsThatMatchThePatterns) {
  TestContext test(fixture("slurm-v1"));
  auto collector = make_cgroup_collector(test.context, {}, {.force_version = "v1"}, {},
                                         {.patterns = {R"(^/slurm/uid_(?P<id>[0-9]+)$)"}})
                       .value();
  const std::string page = samples_of(*collector);
  EXPECT_THAT(page, HasSubstr(info("1001", "uid_1001", "1001")));
  EXPECT_THAT(page, HasSubstr("ceems_compute_units{hostname=\"n1\",manager=\"cgroup\"} 2\n"));
}

TEST(Cgroup, NamesTheFlagWithABadPattern) {
  TestContext test(fixture("slurm-v2"));
  const auto collector =
      make_cgroup_collector(test.context, {}, {.force_version = "v2"}, {}, {.patterns = {"("}});
  ASSERT_FALSE(collector);
  EXPECT_EQ(collector.error().message, "--collector.cgroup.pattern: pattern '(': missing ): (");
}

TEST(Cgroup, ShowsTheEndOfAUnitUntilItWasScraped) {
  const testing::TempDir root;
  root.write("proc/5/status", "Uid:\t3\t3\t3\t3\n");
  root.write("etc/passwd", "sys:x:3:3:::\n");
  root.write("sys/fs/cgroup/a.service/cgroup.procs", "5\n");
  TestContext test(root.path());
  auto collector = make_cgroup_collector(test.context, {}, {.force_version = "v2"}, {}, {}).value();
  EXPECT_THAT(samples_of(*collector), Not(HasSubstr("end_time")));
  std::filesystem::remove_all(root.path() / "sys/fs/cgroup/a.service");
  test.clock.advance(std::chrono::seconds(5));
  const std::string page = samples_of(*collector);
  EXPECT_THAT(page, HasSubstr(cgroup_sample("end_time_seconds", "a.service", "1.7672256e+09")));
  EXPECT_THAT(page, HasSubstr(info("a.service", "a.service", "sys")));
  EXPECT_THAT(page, HasSubstr("ceems_compute_units{hostname=\"n1\",manager=\"cgroup\"} 0\n"));
  test.clock.advance(std::chrono::minutes(1));
  EXPECT_THAT(samples_of(*collector), Not(HasSubstr("a.service")));
}

TEST(Cgroup, KeepsThePageWholeWithHostileNames) {
  const testing::TempDir root;
  root.write("proc/5/status", "Uid:\t3\t3\t3\t3\n");
  const std::string name = "x\"} 1\nceems_evil{a=\"\\\xff.scope";
  std::filesystem::create_directories(root.path() / "sys/fs/cgroup" / name);
  root.write(std::filesystem::path("sys/fs/cgroup") / name / "cgroup.procs", "5\n");
  TestContext test(root.path());
  auto collector = make_cgroup_collector(test.context, {}, {.force_version = "v2"}, {}, {}).value();
  const std::string page = samples_of(*collector);
  EXPECT_THAT(page, HasSubstr(R"(name="x\"} 1\\x0aceems_evil{a=\"\\\\xff.scope")"));
  EXPECT_THAT(page, Not(HasSubstr("\nceems_evil")));
}

TEST(CgroupByDefault, NeedsARealFileSystemAndNoOtherUnits) {
  TestContext fixture_files(fixture("slurm-v2"));
  EXPECT_FALSE(cgroup_by_default(fixture_files.context, {}, {}));
  CollectorContext real;
  const host::CgroupMount mount = host::detect_cgroup(real.paths.cgroup);
  if (!mount.live) {
    GTEST_SKIP() << "no cgroup file system here";
  }
  EXPECT_EQ(cgroup_by_default(real, {}, {}),
            !host::resource_manager_present(real.paths, mount, "cpuacct"));
  EXPECT_FALSE(cgroup_by_default(real, {.units = {nullptr}}, {}));
}

}  // namespace
}  // namespace ceems::exporter
