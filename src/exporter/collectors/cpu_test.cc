#include <filesystem>

#include <gtest/gtest.h>

#include "exporter/collectors/all.h"
#include "exporter/collectors/collector_test_support.h"
#include "testing/temp_dir.h"

namespace ceems::exporter {
namespace {

constexpr std::string_view kCpuinfo = "processor : 0\nprocessor : 1\n";

/// The value of ceems_cpu_seconds_total for one mode.
std::string seconds_in(const std::string& samples, const std::string& mode) {
  const std::string start = "ceems_cpu_seconds_total{hostname=\"n1\",mode=\"" + mode + "\"} ";
  const std::size_t at = samples.find(start);
  return at == std::string::npos
             ? "absent"
             : samples.substr(at + start.size(), samples.find('\n', at) - at - start.size());
}

TEST(Cpu, ExportsTheFixture) {
  // cpu  301854 612 111922 8979004 3552 2 3944 0 0 0
  TestContext host(fixture("intel-2s"));
  auto cpu = create_collector(cpu_collector(), host.context);
  ASSERT_TRUE(cpu);
  EXPECT_EQ(samples_of(**cpu),
            "ceems_cpu_count{hostname=\"n1\"} 8\n"
            "ceems_cpu_per_core_count{hostname=\"n1\"} 2\n"
            "ceems_cpu_seconds_total{hostname=\"n1\",mode=\"idle\"} 89790.04\n"
            "ceems_cpu_seconds_total{hostname=\"n1\",mode=\"iowait\"} 35.52\n"
            "ceems_cpu_seconds_total{hostname=\"n1\",mode=\"irq\"} 0.02\n"
            "ceems_cpu_seconds_total{hostname=\"n1\",mode=\"nice\"} 6.12\n"
            "ceems_cpu_seconds_total{hostname=\"n1\",mode=\"softirq\"} 39.44\n"
            "ceems_cpu_seconds_total{hostname=\"n1\",mode=\"steal\"} 0\n"
            "ceems_cpu_seconds_total{hostname=\"n1\",mode=\"system\"} 1119.22\n"
            "ceems_cpu_seconds_total{hostname=\"n1\",mode=\"user\"} 3018.54\n");
}

TEST(Cpu, RefusesToStartWithoutProcOrCpuinfo) {
  const testing::TempDir root;
  TestContext host(root.path());
  auto cpu = create_collector(cpu_collector(), host.context);
  ASSERT_FALSE(cpu);
  EXPECT_EQ(cpu.error().message,
            "--path.procfs: " + (root.path() / "proc").string() + " is not a directory");
  root.write("proc/stat", "cpu 1 2 3 4\n");
  EXPECT_FALSE(create_collector(cpu_collector(), host.context));
  root.write("proc/cpuinfo", "\x01\x02\x03");
  cpu = create_collector(cpu_collector(), host.context);
  ASSERT_FALSE(cpu);
  EXPECT_EQ(cpu.error().message, (root.path() / "proc/cpuinfo").string() + ": no processor entry");
}

TEST(Cpu, FailsWhileStatIsInvalidAndRecovers) {
  const testing::TempDir root;
  root.write("proc/cpuinfo", kCpuinfo);
  TestContext host(root.path());
  auto cpu = create_collector(cpu_collector(), host.context);
  ASSERT_TRUE(cpu);
  Result<> result;
  EXPECT_EQ(samples_of(**cpu, &result), "");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kNotFound);
  root.write("proc/stat", "cpu garbage\n");
  EXPECT_EQ(samples_of(**cpu, &result), "");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, (root.path() / "proc/stat").string() +
                                        ": line 'cpu': expected a number, got 'garbage'");
  root.write("proc/stat", "cpu 100 2 3 4\ncpu0 1 2 3 4\n");
  EXPECT_NE(samples_of(**cpu, &result).find("mode=\"user\"} 1\n"), std::string::npos);
  EXPECT_TRUE(result);
}

TEST(Cpu, AssumesFourCoresForTheReferencesTests) {
  const testing::TempDir root;
  std::string cpuinfo;
  for (int i = 0; i < 12; ++i) {
    cpuinfo += "processor : 0\ncpu cores : 6\n";
  }
  root.write("proc/cpuinfo", cpuinfo);
  root.write("proc/stat", "cpu 1 2 3 4\n");
  TestContext host(root.path());
  host.context.hostname_emptied = true;
  host.context.hostname.clear();
  auto cpu = create_collector(cpu_collector(), host.context);
  ASSERT_TRUE(cpu);
  EXPECT_NE(samples_of(**cpu).find("ceems_cpu_per_core_count{hostname=\"\"} 3\n"),
            std::string::npos);
}

TEST(Cpu, NeverDecreasesByJitter) {
  const testing::TempDir root;
  root.write("proc/cpuinfo", kCpuinfo);
  root.write("proc/stat", "cpu 10000 10000 10000 10000 10000 10000 10000 10000\n");
  TestContext host(root.path());
  const auto cpu = create_collector(cpu_collector(), host.context).value();
  samples_of(*cpu);
  root.write("proc/stat", "cpu 9990 10001 9990 9990 9990 9990 9990 9990\n");
  const std::string samples = samples_of(*cpu);
  EXPECT_EQ(seconds_in(samples, "user"), "100");
  EXPECT_EQ(seconds_in(samples, "nice"), "100.01");
  EXPECT_EQ(seconds_in(samples, "idle"), "100");
  EXPECT_EQ(seconds_in(samples, "steal"), "100");
}

TEST(Cpu, TakesAFallOfIdleByThreeSecondsAsHotplug) {
  const testing::TempDir root;
  root.write("proc/cpuinfo", kCpuinfo);
  root.write("proc/stat", "cpu 100 100 100 10000 100 100 100 100\n");
  TestContext host(root.path());
  const auto cpu = create_collector(cpu_collector(), host.context).value();
  samples_of(*cpu);
  root.write("proc/stat", "cpu 50 100 100 9701 100 100 100 100\n");
  EXPECT_EQ(seconds_in(samples_of(*cpu), "user"), "1");
  root.write("proc/stat", "cpu 50 1 2 9700 3 4 5 6\n");
  const std::string samples = samples_of(*cpu);
  EXPECT_EQ(seconds_in(samples, "user"), "0.5");
  EXPECT_EQ(seconds_in(samples, "idle"), "97");
  EXPECT_EQ(seconds_in(samples, "steal"), "0.06");
}

}  // namespace
}  // namespace ceems::exporter
