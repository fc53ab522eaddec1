#include "exporter/energy/meter/host_meters.h"

#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "host/read_file.h"
#include "testing/fake_clock.h"
#include "testing/temp_dir.h"

namespace ceems::exporter::energy {
namespace {

using std::chrono::seconds;

class HostMetersTest : public ::testing::Test {
 protected:
  HostMetersTest() {
    paths_ = {dir_.path() / "proc", dir_.path() / "sys", dir_.path() / "sys/fs/cgroup"};
    dir_.write("proc/stat", "cpu  1 0 1 5 0 0 0 0 0 0\ncpu0 1 0 1 5 0 0 0 0 0 0\n");
  }

  void zone(const std::string& entry, const std::string& name, const std::string& energy) {
    const std::string base = "sys/class/powercap/" + entry + "/";
    dir_.write(base + "name", name + "\n");
    dir_.write(base + "energy_uj", energy + "\n");
    dir_.write(base + "max_energy_range_uj", "262143328850\n");
  }

  std::vector<std::string> names(const Meters& meters) {
    std::vector<std::string> found;
    for (const auto& meter : meters) {
      found.push_back(std::string(to_string(meter->source().domain)) + " " + meter->source().name);
    }
    return found;
  }

  Result<Reading> read(EnergyMeter& meter, bool may_block = true) {
    return meter.read({.now = clock_.steady_now(),
                       .utilisation = {},
                       .may_block = may_block,
                       .suspended = suspended_});
  }

  testing::TempDir dir_;
  testing::FakeClock clock_;
  std::chrono::nanoseconds suspended_{};
  host::Paths paths_;
};

TEST_F(HostMetersTest, HasOnlyTheModelWhereNothingCanBeMeasured) {
  EXPECT_EQ(names(find_meters(paths_, clock_)), std::vector<std::string>{"node power-model"});
}

TEST_F(HostMetersTest, CountsEachRaplZoneOnceAndLeavesOutPartsOfPackages) {
  zone("intel-rapl:0", "package-0", "1000000");
  zone("intel-rapl:0:0", "core", "1");
  zone("intel-rapl:0:1", "uncore", "1");
  zone("intel-rapl:0:2", "dram", "5");
  zone("intel-rapl:1", "package-1", "1000000");
  zone("intel-rapl:1:0", "dram", "5");
  zone("intel-rapl:2", "psys", "5");
  zone("intel-rapl-mmio:0", "package-0", "1000000");
  dir_.write("sys/class/powercap/intel-rapl/enabled", "1\n");
  EXPECT_EQ(names(find_meters(paths_, clock_)),
            (std::vector<std::string>{"package rapl-package-0", "dram rapl-dram-0",
                                      "package rapl-package-1", "dram rapl-dram-1",
                                      "node rapl-psys-0", "node power-model"}));
}

TEST_F(HostMetersTest, TakesMmioZonesWhereThereAreNoOthers) {
  zone("intel-rapl-mmio:0", "package-0", "1000000");
  zone("intel-rapl:1", "dram", "5");
  EXPECT_EQ(
      names(find_meters(paths_, clock_)),
      (std::vector<std::string>{"package rapl-package-0", "dram rapl-dram-0", "node power-model"}));
}

TEST_F(HostMetersTest, ReadsRaplThroughWrapsAndGaps) {
  zone("intel-rapl:0", "package-0", "262143328000");
  auto meters = find_meters(paths_, clock_);
  EnergyMeter& meter = *meters.front();
  EXPECT_DOUBLE_EQ(read(meter)->joules, 0);
  clock_.advance(seconds(1));
  dir_.write("sys/class/powercap/intel-rapl:0/energy_uj", "49999150\n");
  EXPECT_DOUBLE_EQ(read(meter)->joules, 50);
  clock_.advance(seconds(1));
  dir_.write("sys/class/powercap/intel-rapl:0/energy_uj", "no number\n");
  const auto failed = read(meter);
  ASSERT_FALSE(failed);
  EXPECT_NE(failed.error().message.find("expected a number"), std::string::npos);
  clock_.advance(seconds(1));
  dir_.write("sys/class/powercap/intel-rapl:0/energy_uj", "149999150\n");
  EXPECT_DOUBLE_EQ(read(meter)->joules, 100);
}

TEST_F(HostMetersTest, RejectsWhatIsAboveThePowerLimitsAndLogsItOnceAMinute) {
  zone("intel-rapl:0", "package-0", "1000000");
  dir_.write("sys/class/powercap/intel-rapl:0/constraint_0_power_limit_uw", "205000000\n");
  dir_.write("sys/class/powercap/intel-rapl:0/constraint_1_power_limit_uw", "246000000\n");
  zone("intel-rapl:0:0", "dram", "1000000");
  auto meters = find_meters(paths_, clock_);
  const std::string base = "sys/class/powercap/intel-rapl:0/";
  const auto step = [&](EnergyMeter& meter, int joules) {
    clock_.advance(seconds(1));
    dir_.write(base + (&meter == meters.at(0).get() ? "" : "../intel-rapl:0:0/") + "energy_uj",
               std::to_string(joules) + "000000\n");
    return read(meter)->joules;
  };
  EnergyMeter& package = *meters.at(0);
  EXPECT_DOUBLE_EQ(step(package, 1), 0);
  EXPECT_DOUBLE_EQ(step(package, 201), 200);
  EXPECT_DOUBLE_EQ(step(package, 201 + 553), 553);  // 246 W * 2.25 s
  EXPECT_DOUBLE_EQ(step(package, 954), 200);
  ::testing::internal::CaptureStderr();
  EXPECT_DOUBLE_EQ(step(package, 20'954), 200);
  EXPECT_DOUBLE_EQ(step(package, 21'154), 200);
  std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("energy: a counter jumped"), std::string::npos) << log;
  EXPECT_NE(log.find("source=rapl-package-0 joules=19800 jumps=1 expected_watts=246"),
            std::string::npos)
      << log;
  EXPECT_DOUBLE_EQ(package.rejected().value_or(Rejected{}).joules, 19'800);
  ::testing::internal::CaptureStderr();
  EXPECT_DOUBLE_EQ(step(package, 41'154), 200);
  suspended_ = seconds(600);
  EXPECT_DOUBLE_EQ(step(package, 44'154), 200);  // 3000 J, most of them of the suspend
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(package.rejected().value_or(Rejected{}).steps, 3U);
  clock_.advance(seconds(60));
  ::testing::internal::CaptureStderr();
  step(package, 50'000);
  log = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("joules=22600 jumps=2"), std::string::npos) << log;

  EnergyMeter& dram = *meters.at(1);
  EXPECT_DOUBLE_EQ(step(dram, 1), 0);
  EXPECT_DOUBLE_EQ(step(dram, 31), 30);
  EXPECT_DOUBLE_EQ(step(dram, 531), 30);  // 200 W * 2.25 s < 500 J
  EXPECT_DOUBLE_EQ(step(dram, 561), 30);
  EXPECT_DOUBLE_EQ(dram.rejected().value_or(Rejected{}).joules, 470);
  EXPECT_EQ(meters.at(2)->rejected().has_value(), false);  // the model has no counter
}

TEST_F(HostMetersTest, ReportsACounterThatMayNotBeRead) {
  zone("intel-rapl:0", "package-0", "1");
  auto meters = find_meters(paths_, clock_, [](const char* path) -> Result<UniqueFd> {
    return fail(ErrorCode::kPermissionDenied, "open {}: Permission denied", path);
  });
  const auto reading = read(*meters.front());
  ASSERT_FALSE(reading);
  EXPECT_EQ(reading.error().code, ErrorCode::kPermissionDenied);
}

TEST_F(HostMetersTest, TakesAcpiPowerMetersAsNode) {
  const auto path = dir_.write("sys/class/hwmon/hwmon0/power1_average", "250000000\n");
  dir_.write("sys/class/hwmon/hwmon0/name", "power_meter\n");
  dir_.write("sys/class/hwmon/hwmon1/name", "amdgpu\n");
  dir_.write("sys/class/hwmon/hwmon1/power1_average", "9000000\n");
  auto meters = find_meters(paths_, clock_);
  ASSERT_EQ(names(meters),
            (std::vector<std::string>{"node hwmon-power_meter-power1", "node power-model"}));
  EnergyMeter& meter = *meters.front();
  EXPECT_FALSE(read(meter, false));  // a scrape never makes it block
  EXPECT_DOUBLE_EQ(read(meter)->joules, 0);
  clock_.advance(seconds(2));
  EXPECT_DOUBLE_EQ(read(meter)->joules, 500);
  dir_.write("sys/class/hwmon/hwmon0/power1_average", "0\n");  // no value: the last power holds
  clock_.advance(seconds(2));
  const auto held = read(meter);
  ASSERT_TRUE(held);
  EXPECT_DOUBLE_EQ(held->joules, 500);
  EXPECT_EQ(held->fresh, clock_.steady_now() - seconds(2));
  std::filesystem::remove(path);
  clock_.advance(seconds(200));
  const auto gone = read(meter);
  ASSERT_FALSE(gone);
  EXPECT_NE(gone.error().message.find("power1_average: No such file"), std::string::npos)
      << gone.error().message;
}

/// The collector gpu meters GPUs. The hwmon sensors of their drivers show the same energy again.
TEST_F(HostMetersTest, LeavesSensorsOfGpusAlone) {
  int number = 0;
  for (const char* chip : {"amdgpu", "nvidia", "nouveau", "xe", "i915"}) {
    const std::string directory = "sys/class/hwmon/hwmon" + std::to_string(number++);
    dir_.write(directory + "/name", std::string(chip) + "\n");
    dir_.write(directory + "/power1_average", "90000000\n");
    dir_.write(directory + "/power1_input", "90000000\n");
    dir_.write(directory + "/energy1_input", "12345678\n");
  }
  EXPECT_EQ(names(find_meters(paths_, clock_)), (std::vector<std::string>{"node power-model"}));
}

TEST_F(HostMetersTest, TakesOldAmdDriversOnlyWithoutRapl) {
  dir_.write("sys/class/hwmon/hwmon0/name", "amd_energy\n");
  dir_.write("sys/class/hwmon/hwmon0/energy1_input", "100\n");
  dir_.write("sys/class/hwmon/hwmon0/energy1_label", "Ecore000\n");
  dir_.write("sys/class/hwmon/hwmon0/energy2_input", "1000000\n");
  dir_.write("sys/class/hwmon/hwmon0/energy2_label", "Esocket0\n");
  dir_.write("sys/class/hwmon/hwmon1/name", "fam15h_power\n");
  dir_.write("sys/class/hwmon/hwmon1/power1_input", "30000000\n");
  auto meters = find_meters(paths_, clock_);
  ASSERT_EQ(names(meters),
            (std::vector<std::string>{"package hwmon-amd_energy-energy2",
                                      "package hwmon-fam15h_power-power1", "node power-model"}));
  EXPECT_DOUBLE_EQ(read(*meters.front())->joules, 0);
  clock_.advance(seconds(1));
  dir_.write("sys/class/hwmon/hwmon0/energy2_input", "3000000\n");
  EXPECT_DOUBLE_EQ(read(*meters.front())->joules, 2);
  dir_.write("sys/class/hwmon/hwmon0/energy2_input", "0\n");
  EXPECT_FALSE(read(*meters.front()));

  zone("intel-rapl:0", "package-0", "1");
  EXPECT_EQ(names(find_meters(paths_, clock_)),
            (std::vector<std::string>{"package rapl-package-0", "node power-model"}));
}

TEST_F(HostMetersTest, OpensCountersOfAmdThroughTheOpener) {
  dir_.write("sys/class/hwmon/hwmon0/name", "amd_energy\n");
  dir_.write("sys/class/hwmon/hwmon0/energy1_input", "1000000\n");
  dir_.write("sys/class/hwmon/hwmon0/energy1_label", "Esocket0\n");
  std::vector<std::string> opened;
  auto meters = find_meters(paths_, clock_, [&opened](const char* path) {
    opened.emplace_back(path);
    return host::open_file(path);
  });
  EXPECT_DOUBLE_EQ(read(*meters.front())->joules, 0);
  clock_.advance(seconds(1));
  dir_.write("sys/class/hwmon/hwmon0/energy1_input", "3000000\n");
  EXPECT_DOUBLE_EQ(read(*meters.front())->joules, 2);
  ASSERT_EQ(opened.size(), 1U);  // once, at the start, when the privilege may be there
  EXPECT_TRUE(opened[0].ends_with("hwmon0/energy1_input")) << opened[0];
}

TEST_F(HostMetersTest, DoesNotBelieveAllOnesNorMoreThanTheCap) {
  zone("intel-rapl:0", "package-0", "18446744073709551615");
  dir_.write("sys/class/hwmon/hwmon0/power1_average", "900000000\n");
  dir_.write("sys/class/hwmon/hwmon0/power1_cap_max", "500000000\n");
  dir_.write("sys/class/hwmon/hwmon0/name", "power_meter\n");
  auto meters = find_meters(paths_, clock_);
  EXPECT_FALSE(read(*meters.at(0)));
  SourceGate gate("wall");
  const auto power = [&] {
    clock_.advance(seconds(1));
    return meters.at(1)->read({.now = clock_.steady_now(), .utilisation = {}, .gate = &gate});
  };
  EXPECT_FALSE(power());
  EXPECT_EQ(gate.excluded(Doubt::kTooHigh), 1U);
  dir_.write("sys/class/hwmon/hwmon0/power1_average", "600000000\n");
  EXPECT_TRUE(power());
}

TEST_F(HostMetersTest, DoesWithoutAModelWhereProcCannotBeRead) {
  std::filesystem::remove_all(dir_.path() / "proc");
  EXPECT_TRUE(find_meters(paths_, clock_).empty());
}

}  // namespace
}  // namespace ceems::exporter::energy
