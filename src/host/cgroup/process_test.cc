#include "host/cgroup/process.h"

#include <vector>

#include <gtest/gtest.h>

#include "host/cpu_topology.h"

namespace ceems::host {
namespace {

TEST(StatusUid, IsTheRealUser) {
  EXPECT_EQ(parse_status_uid("Name:\tsh\nUid:\t1000\t0\t0\t0\nGid:\t5\n"), 1000U);
  EXPECT_FALSE(parse_status_uid("Name:\tUid: 7\n"));
  EXPECT_FALSE(parse_status_uid("Uid:\tx\n"));
}

TEST(StartTicks, SurvivesHostileCommandNames) {
  EXPECT_EQ(parse_start_ticks("7 (a) b) (c) S 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4711 9"),
            4711U);
  EXPECT_FALSE(parse_start_ticks("7 (a S 1 2"));
  EXPECT_FALSE(parse_start_ticks("7 (a) S 1 2"));
  EXPECT_EQ(parse_start_ticks("42 (a) b) 1) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 777 20"),
            777U);
  EXPECT_FALSE(parse_start_ticks(""));
}

TEST(BootTime, IsFoundInStat) {
  EXPECT_EQ(parse_boot_time("cpu 1 2\nbtime 1700000000\nprocesses 4\n"), 1700000000U);
  EXPECT_FALSE(parse_boot_time("cpu 1 2\n"));
  EXPECT_EQ(parse_boot_time("cpu 1 2\nctxt 3\nbtime 1418183276\n"), 1418183276U);
}

TEST(Uptime, HasHundredthsOfASecond) {
  EXPECT_EQ(parse_uptime("350735.47 234388.90\n"), 35073547U);
  EXPECT_EQ(parse_uptime("0.05 0.00\n"), 5U);
  EXPECT_FALSE(parse_uptime(""));
  EXPECT_FALSE(parse_uptime("12 3\n"));
  EXPECT_FALSE(parse_uptime("12.3 4.00\n"));
  EXPECT_FALSE(parse_uptime("12.x4 4.00\n"));
  EXPECT_FALSE(parse_uptime("99999999999999999999.00 1.00\n"));
  EXPECT_FALSE(parse_uptime("18446744073709551615.00 1.00\n"));
}

TEST(Slurmstepd, TitleContainsItsJob) {
  EXPECT_EQ(parse_slurmstepd_job("slurmstepd: [1009248.batch]"), 1009248U);
  EXPECT_EQ(parse_slurmstepd_job("slurmstepd: [7]"), 7U);
  EXPECT_FALSE(parse_slurmstepd_job("slurmstepd: [7"));
  EXPECT_FALSE(parse_slurmstepd_job("slurmstepd: [x.0]"));
  EXPECT_FALSE(parse_slurmstepd_job("sh -c slurmstepd: [7.0]"));
}

TEST(UserName, IsFoundById) {
  const char* const passwd = "root:x:0:0::/:/bin/sh\nbroken\nada:x:1001:1:::\n";
  EXPECT_EQ(find_user_name(passwd, 1001), "ada");
  EXPECT_EQ(find_user_name(passwd, 0), "root");
  EXPECT_EQ(find_user_name(passwd, 5), "");
}

TEST(ProcessOrigin, IsReadFromTheStatOfAProcess) {
  const auto origin = parse_process_origin(
      "4711 (a ) b) S 12 4711 4700 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 987654 0 0\n");
  ASSERT_TRUE(origin);
  EXPECT_EQ(origin->parent, 12);
  EXPECT_EQ(origin->session, 4700);
  EXPECT_EQ(origin->start_ticks, 987654U);
  EXPECT_FALSE(parse_process_origin(""));
  EXPECT_FALSE(parse_process_origin("1 (x) S 1 2"));
  EXPECT_FALSE(parse_process_origin("1 (x) S a 2 3 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 9 0"));
}

TEST(CpuTicks, AreUserAndSystemTime) {
  EXPECT_EQ(parse_cpu_ticks("7 (a) 1 (b) R 1 7 7 0 -1 64 1 2 3 4 50 6 7 8 20 0 1 0 9 0 0\n"), 56U);
  EXPECT_FALSE(parse_cpu_ticks("7 (a) R 1 7 7 0 -1 64 1 2 3 4 50"));
  EXPECT_FALSE(parse_cpu_ticks("7 (a) R 1 7 7 0 -1 64 1 2 3 4 x 6"));
  EXPECT_FALSE(parse_cpu_ticks("7 a R"));
}

TEST(Schedstat, HasTheTimeOfRunningAndOfWaiting) {
  const auto times = parse_schedstat("1500 27 3\n");
  ASSERT_TRUE(times);
  EXPECT_EQ(times->ran, 1500U);
  EXPECT_EQ(times->waited, 27U);
  EXPECT_FALSE(parse_schedstat(""));
  EXPECT_FALSE(parse_schedstat("1500\n"));
  EXPECT_FALSE(parse_schedstat("-1 2 3"));
}

TEST(AllowedCpus, AreThoseOfTheList) {
  EXPECT_EQ(parse_allowed_cpus("Name:\tCpus_allowed_list:\nCpus_allowed:\tff\n"
                               "Cpus_allowed_list:\t2-3,8\nMems_allowed_list:\t0\n"),
            (std::vector{2, 3, 8}));
  EXPECT_FALSE(parse_allowed_cpus("Name:\ta\n"));
  EXPECT_FALSE(parse_allowed_cpus("Cpus_allowed_list:\t0-99999999\n"));
}

TEST(CpuList, IsReadAsNumbers) {
  EXPECT_EQ(parse_cpu_list("0-2,5\n"), (std::vector{0, 1, 2, 5}));
  EXPECT_EQ(parse_cpu_list("3"), (std::vector{3}));
  EXPECT_EQ(parse_cpu_list("\n"), (std::vector<int>{}));
  EXPECT_FALSE(parse_cpu_list("2-1"));
  EXPECT_FALSE(parse_cpu_list("0-99999999"));
  EXPECT_FALSE(parse_cpu_list("0-x"));
  EXPECT_FALSE(parse_cpu_list("-1"));
}

}  // namespace
}  // namespace ceems::host
