#include "host/powercap.h"

#include <cerrno>
#include <filesystem>

#include <gtest/gtest.h>

#include "host/read_file.h"
#include "testing/temp_dir.h"

namespace ceems::host {
namespace {

void add_zone(const testing::TempDir& sys, const std::string& entry, const std::string& name) {
  const std::string zone = "class/powercap/" + entry + "/";
  sys.write(zone + "name", name + "\n");
  sys.write(zone + "max_energy_range_uj", "262143328850\n");
  sys.write(zone + "energy_uj", "1000\n");
}

TEST(NumberZones, UsesNumbersInNamesOrCounts) {
  using Zones = std::vector<std::pair<std::string, int>>;
  EXPECT_EQ(
      number_zones({"package-0", "core", "dram", "package-1", "dram", "package-0-die-1", "psys"}),
      (Zones{{"package", 0},
             {"core", 0},
             {"dram", 0},
             {"package", 1},
             {"dram", 1},
             {"package-0-die-1", 0},
             {"psys", 0}}));
  EXPECT_EQ(number_zones({"package-2147483647"}), (Zones{{"package-2147483647", 0}}));
  EXPECT_EQ(number_zones({"package-3", "package", "a-b", "a-b"}),
            (Zones{{"package", 3}, {"package", 4}, {"a-b", 0}, {"a-b", 1}}));
}

TEST(Powercap, FindsZonesInEntryOrder) {
  const testing::TempDir sys;
  add_zone(sys, "intel-rapl:1", "package-1");
  add_zone(sys, "intel-rapl:0", "package-0");
  add_zone(sys, "intel-rapl:0:0", "dram");
  sys.write("class/powercap/intel-rapl/enabled", "1\n");  // a control type, which has no name
  sys.write("class/powercap/dtpm:0/name", "dtpm\n");      // has no energy range
  sys.write("class/powercap/broken/name", "");
  sys.write("class/powercap/broken/max_energy_range_uj", "1");
  Powercap powercap(sys.path());
  ASSERT_TRUE(powercap.scan());
  ASSERT_EQ(powercap.zones().size(), 3U);
  EXPECT_EQ(powercap.zones()[0].name, "package");
  EXPECT_EQ(powercap.zones()[0].index, 0);
  EXPECT_EQ(powercap.zones()[0].max_energy_range_uj, 262143328850U);
  EXPECT_EQ(powercap.zones()[0].path, sys.path().string() + "/class/powercap/intel-rapl:0");
  EXPECT_EQ(powercap.zones()[1].name, "dram");
  EXPECT_EQ(powercap.zones()[2].index, 1);
}

TEST(Powercap, KeepsCountersOpenAndReadsNewValues) {
  const testing::TempDir sys;
  add_zone(sys, "intel-rapl:0", "package-0");
  int opened = 0;
  Powercap powercap(sys.path(), [&](const char* path) {
    ++opened;
    return open_file(path);
  });
  ASSERT_TRUE(powercap.scan());
  EXPECT_EQ(powercap.energy_uj(0), 1000U);
  sys.write("class/powercap/intel-rapl:0/energy_uj", "2500\n");
  ASSERT_TRUE(powercap.scan());
  EXPECT_EQ(powercap.energy_uj(0), 2500U);
  EXPECT_EQ(opened, 1);
}

TEST(Powercap, ClosesARemovedCounter) {
  const testing::TempDir sys;
  add_zone(sys, "intel-rapl:0", "package-0");
  Powercap powercap(sys.path());
  ASSERT_TRUE(powercap.scan());
  EXPECT_EQ(powercap.energy_uj(0), 1000U);
  std::filesystem::remove(sys.path() / "class/powercap/intel-rapl:0/energy_uj");
  const auto gone = powercap.energy_uj(0);
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, ErrorCode::kNotFound);
  sys.write("class/powercap/intel-rapl:0/energy_uj", "77\n");
  EXPECT_EQ(powercap.energy_uj(0), 77U);
}

TEST(Powercap, ReportsAnUnreadableCounterAndRetries) {
  const testing::TempDir sys;
  add_zone(sys, "intel-rapl:0", "package-0");
  bool denied = true;
  Powercap powercap(sys.path(), [&](const char* path) -> Result<UniqueFd> {
    if (denied) {
      return fail(errno_error(EACCES, std::string("open ") + path));
    }
    return open_file(path);
  });
  ASSERT_TRUE(powercap.scan());
  const auto refused = powercap.energy_uj(0);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kPermissionDenied);
  denied = false;
  EXPECT_EQ(powercap.energy_uj(0), 1000U);
  sys.write("class/powercap/intel-rapl:0/energy_uj", "not a number\n");
  const auto garbage = powercap.energy_uj(0);
  ASSERT_FALSE(garbage);
  EXPECT_EQ(garbage.error().code, ErrorCode::kParse);
  EXPECT_NE(
      garbage.error().message.find("intel-rapl:0/energy_uj: expected a number, got 'not a number'"),
      std::string::npos);
}

TEST(Powercap, FollowsZonesThatAppearAndDisappear) {
  const testing::TempDir sys;
  Powercap powercap(sys.path());
  const auto absent = powercap.scan();
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code, ErrorCode::kNoData);
  add_zone(sys, "intel-rapl:0", "package-0");
  ASSERT_TRUE(powercap.scan());
  EXPECT_EQ(powercap.zones().size(), 1U);
  add_zone(sys, "intel-rapl:0:0", "dram");
  ASSERT_TRUE(powercap.scan());
  EXPECT_EQ(powercap.zones().size(), 2U);
  std::filesystem::remove_all(sys.path() / "class/powercap/intel-rapl:0");
  ASSERT_TRUE(powercap.scan());
  ASSERT_EQ(powercap.zones().size(), 1U);
  EXPECT_EQ(powercap.zones()[0].name, "dram");
  std::filesystem::remove_all(sys.path() / "class");
  ASSERT_FALSE(powercap.scan());
  EXPECT_TRUE(powercap.zones().empty());
}

TEST(Powercap, ReadsTheLimitOfTheLongerWindow) {
  const testing::TempDir sys;
  const std::string zone = "class/powercap/intel-rapl:0/";
  add_zone(sys, "intel-rapl:0", "package-0");
  Powercap powercap(sys.path());
  ASSERT_TRUE(powercap.scan());
  EXPECT_FALSE(powercap.power_limit_uw(0));
  sys.write(zone + "constraint_0_power_limit_uw", "90000000\n");
  EXPECT_EQ(powercap.power_limit_uw(0), 90000000U);
  sys.write(zone + "constraint_0_time_window_us", "976\n");
  sys.write(zone + "constraint_1_time_window_us", "999424\n");
  sys.write(zone + "constraint_1_power_limit_uw", "180000000\n");
  EXPECT_EQ(powercap.power_limit_uw(0), 180000000U);
  sys.write(zone + "constraint_0_time_window_us", "999424\n");
  EXPECT_EQ(powercap.power_limit_uw(0), 90000000U);
}

TEST(Powercap, FindsTheHighestLimitOfAllConstraints) {
  testing::TempDir sys;
  const std::string zone = "class/powercap/intel-rapl:0/";
  add_zone(sys, "intel-rapl:0", "package-0");
  Powercap powercap(sys.path());
  ASSERT_TRUE(powercap.scan());
  EXPECT_EQ(powercap.highest_limit_uw(0).error().code, ErrorCode::kNoData);
  sys.write(zone + "constraint_0_power_limit_uw", "50000000\n");  // capped by the operator
  EXPECT_EQ(powercap.highest_limit_uw(0), 50000000U);
  sys.write(zone + "constraint_0_max_power_uw", "205000000\n");
  EXPECT_EQ(powercap.highest_limit_uw(0), 205000000U);
  sys.write(zone + "constraint_1_power_limit_uw", "246000000\n");
  sys.write(zone + "constraint_1_max_power_uw", "nonsense\n");
  EXPECT_EQ(powercap.highest_limit_uw(0), 246000000U);
  sys.write(zone + "constraint_2_power_limit_uw", "410000000\n");
  EXPECT_EQ(powercap.highest_limit_uw(0), 410000000U);
}

}  // namespace
}  // namespace ceems::host
