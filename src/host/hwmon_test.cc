#include "host/hwmon.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "testing/temp_dir.h"

namespace ceems::host {
namespace {

namespace fs = std::filesystem;

TEST(ParseHwmonFile, AcceptsOnlyPowerAndEnergy) {
  EXPECT_EQ(parse_hwmon_file("power1_input"),
            (HwmonFile{HwmonType::kPower, 1, HwmonProperty::kInput}));
  EXPECT_EQ(parse_hwmon_file("power2_average"),
            (HwmonFile{HwmonType::kPower, 2, HwmonProperty::kAverage}));
  EXPECT_EQ(parse_hwmon_file("power_input_lowest"),
            (HwmonFile{HwmonType::kPower, 0, HwmonProperty::kInputLowest}));
  EXPECT_EQ(parse_hwmon_file("energy12_input"),
            (HwmonFile{HwmonType::kEnergy, 12, HwmonProperty::kInput}));
  for (const char* name :
       {"power", "power1", "power1_", "power1_cap", "power1_average_interval", "temp1_input",
        "powerx1_input", "power99999999999_input", "energy", ""}) {
    EXPECT_FALSE(parse_hwmon_file(name)) << name;
  }
}

TEST(CleanHwmonName, KeepsOnlyLabelCharacters) {
  EXPECT_EQ(clean_hwmon_name("coretemp.0"), "coretemp_0");
  EXPECT_EQ(clean_hwmon_name("0000:00:18.3"), "0000:00:18_3");
  EXPECT_EQ(clean_hwmon_name(" -Socket-\n"), "socket");
  EXPECT_EQ(clean_hwmon_name("--"), "");
}

TEST(FindHwmonSensors, NamesChipsByDeviceThenNameThenDirectory) {
  const testing::TempDir root;
  const fs::path sys = root.path() / "sys";
  root.write("sys/devices/platform/power_meter.0/hwmon/hwmon0/power1_average", "1\n");
  root.write("sys/devices/platform/power_meter.0/hwmon/hwmon0/name", "power_meter\n");
  root.write("sys/devices/platform/power_meter.0/power1_input", "2\n");
  fs::create_directory_symlink("../..", sys / "devices/platform/power_meter.0/hwmon/hwmon0/device");
  fs::create_directories(sys / "class/hwmon");
  fs::create_directory_symlink("../../devices/platform/power_meter.0/hwmon/hwmon0",
                               sys / "class/hwmon/hwmon0");
  root.write("sys/class/hwmon/hwmon1/name", "socket\n");
  root.write("sys/class/hwmon/hwmon1/energy2_input", "9509000000\n");
  root.write("sys/class/hwmon/hwmon1/energy2_label", "Esocket0\n");
  root.write("sys/class/hwmon/hwmon2/power1_input", "3\n");
  root.write("sys/class/hwmon/hwmon3/temp1_input", "3\n");
  root.write("sys/class/hwmon/not_a_chip", "");

  const auto sensors = find_hwmon_sensors(sys);
  ASSERT_TRUE(sensors);
  ASSERT_EQ(sensors->size(), 4U);
  EXPECT_EQ((*sensors)[0].chip, "platform_power_meter_0");
  EXPECT_EQ((*sensors)[0].chip_name, "power_meter");
  EXPECT_EQ((*sensors)[0].sensor, "power1");
  EXPECT_EQ((*sensors)[1].path, (sys / "class/hwmon/hwmon0/device/power1_input").string());
  EXPECT_EQ((*sensors)[2].chip, "socket");
  EXPECT_EQ((*sensors)[2].label, "Esocket0");
  EXPECT_EQ(read_hwmon_value((*sensors)[2].path), 9509000000);
  EXPECT_EQ((*sensors)[3].chip, "hwmon2");
  EXPECT_EQ((*sensors)[3].chip_name, "");
}

TEST(FindHwmonSensors, CountsAFileOfChipAndDeviceOnce) {
  const testing::TempDir root;
  root.write("class/hwmon/hwmon0/power1_input", "1\n");
  root.write("class/hwmon/hwmon0/device/power1_input", "1\n");
  const auto sensors = find_hwmon_sensors(root.path());
  ASSERT_TRUE(sensors);
  EXPECT_EQ(sensors->size(), 1U);
}

TEST(FindHwmonSensors, ReturnsNoDataWithoutSensors) {
  const testing::TempDir root;
  auto sensors = find_hwmon_sensors(root.path());
  ASSERT_FALSE(sensors);
  EXPECT_EQ(sensors.error().code, ErrorCode::kNoData);
  root.write("class/hwmon/hwmon0/temp1_input", "1\n");
  sensors = find_hwmon_sensors(root.path());
  ASSERT_FALSE(sensors);
  EXPECT_EQ(sensors.error().code, ErrorCode::kNoData);
}

TEST(ReadHwmonValue, ReportsTextThatIsNotANumber) {
  const testing::TempDir root;
  const auto path = root.write("power1_input", "N/A\n");
  const auto value = read_hwmon_value(path);
  ASSERT_FALSE(value);
  EXPECT_EQ(value.error().message, path.string() + ": expected a number, got 'N/A'");
  EXPECT_EQ(read_hwmon_value(root.write("n", "-5\n")), -5);
  EXPECT_FALSE(read_hwmon_value(root.path() / "gone"));
}

}  // namespace
}  // namespace ceems::host
