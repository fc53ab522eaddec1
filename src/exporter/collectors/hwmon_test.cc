#include <filesystem>

#include <gtest/gtest.h>

#include "exporter/collectors/all.h"
#include "exporter/collectors/collector_test_support.h"
#include "testing/temp_dir.h"

namespace ceems::exporter {
namespace {

TEST(Hwmon, ExportsTheFixture) {
  TestContext host(fixture("intel-2s"));
  auto hwmon = create_collector(hwmon_collector(), host.context);
  ASSERT_TRUE(hwmon);
  EXPECT_EQ(
      samples_of(**hwmon),
      "ceems_hwmon_energy_current_joules{chip=\"socket\",chip_name=\"socket\",hostname=\"n1\","
      "index=\"2\",sensor=\"energy2\"} 9509\n"
      "ceems_hwmon_power_avg_watts{chip=\"lnxsybus:00_acpi000d:00\",chip_name=\"power_meter\","
      "hostname=\"n1\",index=\"1\",sensor=\"power1\"} 318\n"
      "ceems_hwmon_power_current_watts{chip=\"socket\",chip_name=\"socket\",hostname=\"n1\","
      "index=\"2\",sensor=\"power1\"} 270\n");
}

TEST(Hwmon, LeavesOutValuesThatAreNotPositiveNumbers) {
  const testing::TempDir root;
  root.write("sys/class/hwmon/hwmon0/name", "chip\n");
  root.write("sys/class/hwmon/hwmon0/power1_input", "0\n");
  root.write("sys/class/hwmon/hwmon0/power2_input", "-1000000\n");
  root.write("sys/class/hwmon/hwmon0/power3_input", "N/A\n");
  root.write("sys/class/hwmon/hwmon0/power4_input_lowest", "1000000\n");
  root.write("sys/class/hwmon/hwmon0/power4_input_highest", "2500000\n");
  root.write("sys/class/hwmon/hwmon0/energy1_average", "1000000\n");
  TestContext host(root.path());
  auto hwmon = create_collector(hwmon_collector(), host.context);
  Result<> result;
  EXPECT_EQ(samples_of(**hwmon, &result),
            "ceems_hwmon_power_max_watts{chip=\"chip\",chip_name=\"chip\",hostname=\"n1\",index="
            "\"0\",sensor="
            "\"power4\"} 2.5\n"
            "ceems_hwmon_power_min_watts{chip=\"chip\",chip_name=\"chip\",hostname=\"n1\",index="
            "\"0\",sensor="
            "\"power4\"} 1\n");
  EXPECT_TRUE(result);
}

TEST(Hwmon, TellsEqualChipsApart) {
  const testing::TempDir root;
  for (const std::string index : {"2", "11"}) {
    root.write("sys/class/hwmon/hwmon" + index + "/name", "amdgpu\n");
    root.write("sys/class/hwmon/hwmon" + index + "/power1_average", index + "000000\n");
  }
  TestContext host(root.path());
  auto hwmon = create_collector(hwmon_collector(), host.context);
  EXPECT_EQ(samples_of(**hwmon),
            "ceems_hwmon_power_avg_watts{chip=\"amdgpu\",chip_name=\"amdgpu\",hostname=\"n1\","
            "index=\"11\",sensor=\"power1\"} 11\n"
            "ceems_hwmon_power_avg_watts{chip=\"amdgpu\",chip_name=\"amdgpu\",hostname=\"n1\","
            "index=\"2\",sensor=\"power1\"} 2\n");
}

TEST(Hwmon, FindsNewSensorsAndForgetsRemovedOnes) {
  const testing::TempDir root;
  TestContext host(root.path());
  auto hwmon = create_collector(hwmon_collector(), host.context);
  ASSERT_TRUE(hwmon);
  Result<> result;
  EXPECT_EQ(samples_of(**hwmon, &result), "");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kNoData);
  root.write("sys/class/hwmon/hwmon0/power1_input", "1000000\n");
  EXPECT_NE(samples_of(**hwmon, &result), "");
  EXPECT_TRUE(result);
  root.write("sys/class/hwmon/hwmon1/power1_input", "1000000\n");
  EXPECT_EQ(samples_of(**hwmon).find("hwmon1"), std::string::npos);
  host.clock.advance(std::chrono::minutes(1));
  EXPECT_NE(samples_of(**hwmon).find("hwmon1"), std::string::npos);
  std::filesystem::remove_all(root.path() / "sys/class/hwmon");
  EXPECT_EQ(samples_of(**hwmon, &result), "");
  EXPECT_TRUE(result);
  host.clock.advance(std::chrono::minutes(1));
  EXPECT_EQ(samples_of(**hwmon, &result), "");
  EXPECT_FALSE(result);
}

}  // namespace
}  // namespace ceems::exporter
