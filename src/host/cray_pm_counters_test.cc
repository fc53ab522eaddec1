#include "host/cray_pm_counters.h"

#include <gtest/gtest.h>

#include "testing/temp_dir.h"

namespace ceems::host {
namespace {

TEST(ParseCrayReading, ReadsValueAndTime) {
  EXPECT_EQ(parse_cray_reading("1360621494 J 1734094386309238 us\n"),
            (CrayReading{1360621494, 1734094386309238}));
  EXPECT_EQ(parse_cray_reading("0 W\n"), (CrayReading{0, std::nullopt}));
  EXPECT_EQ(parse_cray_reading("7"), (CrayReading{7, std::nullopt}));
}

TEST(ParseCrayReading, ReportsTextThatIsNotANumber) {
  for (const char* bad : {"", "\n", "J 5", "-5 W 1 us", "5.5 W", "18446744073709551616 J"}) {
    EXPECT_FALSE(parse_cray_reading(bad)) << bad;
  }
  EXPECT_EQ(parse_cray_reading("off\n").error().message,
            "expected 'number unit time us', got 'off'");
}

TEST(CrayDomain, ComesFromThePrefix) {
  EXPECT_EQ(cray_domain("energy"), "node");
  EXPECT_EQ(cray_domain("power_cap"), "node");
  EXPECT_EQ(cray_domain("cpu_power"), "cpu");
  EXPECT_EQ(cray_domain("cpu0_temp"), "cpu0");
  EXPECT_EQ(cray_domain("memory_energy"), "memory");
  EXPECT_EQ(cray_domain("accel12_power_cap"), "accel12");
  EXPECT_EQ(cray_domain("nic0_power"), "node");
  EXPECT_EQ(cray_domain("cpufreq_power"), "node");
  for (const char* other :
       {"freshness", "generation", "raw_scan_hz", "startup", "version", "cpu", ""}) {
    EXPECT_EQ(cray_domain(other), std::nullopt) << other;
  }
}

TEST(FindCrayDomains, ListsEachOnce) {
  const testing::TempDir root;
  for (const char* name :
       {"energy", "power", "accel1_power", "accel0_energy", "accel0_power", "startup"}) {
    root.write(std::string("cray/pm_counters/") + name, "1 J 2 us\n");
  }
  EXPECT_EQ(find_cray_domains(root.path()), (std::vector<std::string>{"accel0", "accel1", "node"}));
  EXPECT_EQ(read_cray_counter(root.path(), "node", "energy"), (CrayReading{1, 2}));
  EXPECT_EQ(read_cray_counter(root.path(), "accel0", "power"), (CrayReading{1, 2}));
  EXPECT_EQ(read_cray_counter(root.path(), "accel0", "temp").error().code, ErrorCode::kNotFound);
}

TEST(FindCrayDomains, ReturnsNoDataOnOtherMachines) {
  const testing::TempDir root;
  const auto domains = find_cray_domains(root.path());
  ASSERT_FALSE(domains);
  EXPECT_EQ(domains.error().code, ErrorCode::kNoData);
}

}  // namespace
}  // namespace ceems::host
