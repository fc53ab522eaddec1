#include "host/cpu_throttle.h"

#include <filesystem>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "testing/temp_dir.h"

namespace ceems::host {
namespace {

/// Two packages, numbered 0 and 3, of two cores with two threads each.
class CpuThrottleTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (int cpu = 0; cpu < 8; ++cpu) {
      const int first = cpu % 4;
      write(cpu, "topology/physical_package_id", first < 2 ? "0" : "3");
      write(cpu, "topology/thread_siblings_list", fmt::format("{},{}", first, first + 4));
      write(cpu, "thermal_throttle/package_throttle_count", first < 2 ? "30" : "7");
      write(cpu, "thermal_throttle/core_throttle_count", std::to_string(first + 1));
    }
  }
  void write(int cpu, const std::string& file, const std::string& value) const {
    root_.write(fmt::format("sys/devices/system/cpu/cpu{}/{}", cpu, file), value + "\n");
  }
  [[nodiscard]] std::filesystem::path folder(int cpu) const {
    return root_.path() / fmt::format("sys/devices/system/cpu/cpu{}", cpu);
  }
  [[nodiscard]] CpuThrottle make() const {
    const Paths paths{root_.path() / "proc", root_.path() / "sys", {}};
    return {paths, read_cpu_topology(paths)};
  }
  /// "0: 30 3, 3: 7 7": package, its events, the events of its cores.
  static std::string text(CpuThrottle& throttle) {
    std::string text;
    for (const CpuThrottle::Package& package : throttle.read()) {
      text += fmt::format("{}{}: {} {}", text.empty() ? "" : ", ", package.number,
                          package.package_events, package.core_events);
    }
    return text;
  }

  testing::TempDir root_;
};

TEST_F(CpuThrottleTest, CountsEachPackageAndEachCoreOnce) {
  CpuThrottle throttle = make();
  EXPECT_EQ(text(throttle), "0: 30 3, 3: 7 7");
  write(2, "thermal_throttle/package_throttle_count", "9");
  write(3, "thermal_throttle/core_throttle_count", "10");
  EXPECT_EQ(text(throttle), "0: 30 3, 3: 9 13");
}

TEST_F(CpuThrottleTest, ReadsAnotherCpuWhereOneIsOfflineAndNeverDecreases) {
  CpuThrottle throttle = make();
  EXPECT_EQ(text(throttle), "0: 30 3, 3: 7 7");
  std::filesystem::remove_all(folder(2) / "thermal_throttle");
  write(3, "thermal_throttle/package_throttle_count", "6");
  EXPECT_EQ(text(throttle), "0: 30 3, 3: 7 7") << "the other CPU has counted less";
  write(3, "thermal_throttle/package_throttle_count", "8");
  EXPECT_EQ(text(throttle), "0: 30 3, 3: 8 7");
  for (const int cpu : {3, 6, 7}) {
    std::filesystem::remove_all(folder(cpu) / "thermal_throttle");
  }
  EXPECT_EQ(text(throttle), "0: 30 3") << "no CPU of the package is left";
}

TEST_F(CpuThrottleTest, LeavesOutWhatCannotBeRead) {
  for (int cpu = 0; cpu < 8; ++cpu) {
    write(cpu, "thermal_throttle/package_throttle_count", cpu % 4 < 2 ? "none" : "7");
    write(cpu, "thermal_throttle/core_throttle_count", "-1");
  }
  CpuThrottle throttle = make();
  EXPECT_EQ(text(throttle), "3: 7 0");
}

TEST_F(CpuThrottleTest, IsEmptyWithoutTheFiles) {
  for (int cpu = 0; cpu < 8; ++cpu) {
    std::filesystem::remove_all(folder(cpu) / "thermal_throttle");
  }
  CpuThrottle throttle = make();
  EXPECT_EQ(text(throttle), "");
  CpuThrottle unknown({}, {});
  EXPECT_EQ(text(unknown), "");
}

}  // namespace
}  // namespace ceems::host
