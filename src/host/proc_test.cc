#include "host/proc.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace ceems::host {
namespace {

TEST(ParseStat, ReadsTheAggregateLineAndCountsCpus) {
  // cpu2 is missing on purpose: it is offline.
  const auto stat = parse_stat(
      "cpu  301854 612 111922 8979004 3552 2 3944 7 44 55\n"
      "cpu0 44490 19 21045 1087069 220 1 3410 0 2 0\n"
      "cpu1 47869 23 16474 1110787 591 0 46 0 2 0\n"
      "cpu3 48478 24 16465 1107600 1012 0 4 0 3 0\n"
      "intr 8885917 17 0 0\n"
      "cpufreq 1\n");
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->total.user, 301854U);
  EXPECT_EQ(stat->total.nice, 612U);
  EXPECT_EQ(stat->total.system, 111922U);
  EXPECT_EQ(stat->total.idle, 8979004U);
  EXPECT_EQ(stat->total.iowait, 3552U);
  EXPECT_EQ(stat->total.irq, 2U);
  EXPECT_EQ(stat->total.softirq, 3944U);
  EXPECT_EQ(stat->total.steal, 7U);
  EXPECT_EQ(stat->cpus, 3U);
}

TEST(ParseStat, ReadsMissingTrailingFieldsAsZero) {
  const auto stat = parse_stat("cpu 1 2 3 4");
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->total.idle, 4U);
  EXPECT_EQ(stat->total.iowait, 0U);
  EXPECT_EQ(stat->cpus, 0U);
}

TEST(ParseStat, ReportsWhatItCannotParse) {
  const auto bad = parse_stat("cpu  1 x 3\n");
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().code, ErrorCode::kParse);
  EXPECT_EQ(bad.error().message, "line 'cpu': expected a number, got 'x'");
  EXPECT_FALSE(parse_stat("cpu -1 0\n"));
  EXPECT_FALSE(parse_stat("cpu 99999999999999999999999 0\n"));
  const auto empty = parse_stat("");
  ASSERT_FALSE(empty);
  EXPECT_EQ(empty.error().message, "no line 'cpu'");
}

TEST(ParseBusyCpus, AddsWhatIsNotIdle) {
  std::vector<BusyCpu> cpus{{.cpu = 7, .ticks = 7}};
  parse_busy_cpus(
      "cpu  300 600 100 9000 3000 2 3900 7 44 55\n"
      "cpu0 100 20 30 1000000 5000 4 5 600 90 0\n"
      "cpu2 1 x 3 4\ncpu3 7\n"
      "intr 1 2\ncpu9 1 1 1\n",
      cpus);
  ASSERT_EQ(cpus.size(), 2U);
  EXPECT_EQ(cpus[0].cpu, 0);
  EXPECT_EQ(cpus[0].ticks, 159U);
  EXPECT_EQ(cpus[1].cpu, 3);
  EXPECT_EQ(cpus[1].ticks, 7U);
  parse_busy_cpus("", cpus);
  EXPECT_TRUE(cpus.empty());
}

TEST(ParseMeminfo, KeepsEveryLineWithItsUnit) {
  std::vector<MeminfoLine> lines;
  ASSERT_TRUE(parse_meminfo(
      "MemTotal:       15666184 kB\n\nActive(anon):        7 kB\nHugePages_Total:       3\n",
      lines));
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0].key, "MemTotal");
  EXPECT_EQ(lines[0].value, 16042172416U);
  EXPECT_TRUE(lines[0].is_bytes);
  EXPECT_EQ(lines[1].key, "Active(anon)");
  EXPECT_EQ(lines[2].key, "HugePages_Total");
  EXPECT_EQ(lines[2].value, 3U);
  EXPECT_FALSE(lines[2].is_bytes);
}

TEST(ParseMeminfo, ReportsTheLineItCannotParse) {
  std::vector<MeminfoLine> lines;
  const auto bad = parse_meminfo("MemTotal: 1 kB\nMemFree: many kB\n", lines);
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().message, "line 2: expected 'key: number [kB]', got 'MemFree: many kB'");
  EXPECT_FALSE(parse_meminfo("MemTotal:\n", lines));
  EXPECT_FALSE(parse_meminfo("MemTotal 1 kB\n", lines));
  EXPECT_FALSE(parse_meminfo("MemTotal: 1 kB extra\n", lines));
  EXPECT_FALSE(parse_meminfo("MemTotal: 18446744073709551615 kB\n", lines));
  EXPECT_TRUE(parse_meminfo("", lines));
  EXPECT_TRUE(lines.empty());
}

TEST(ParseCpuinfo, SumsCoresOverSockets) {
  std::string text;
  for (const char* socket : {"0", "0", "1", "1", "1", "1"}) {
    text +=
        std::string("processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 85\n") +
        "model name\t: Intel(R) Xeon(R) Gold 6148 CPU @ 2.40GHz\nphysical id\t: " + socket +
        "\ncpu cores\t: " + (socket[0] == '0' ? "20" : "18") + "\n\n";
  }
  const auto info = parse_cpuinfo(text);
  ASSERT_TRUE(info);
  EXPECT_EQ(info->processors, 6U);
  EXPECT_EQ(info->physical_cores, 38U);
  EXPECT_EQ(info->sockets, 2U);
  EXPECT_EQ(info->vendor, "GenuineIntel");
  EXPECT_EQ(info->model_name, "Intel(R) Xeon(R) Gold 6148 CPU @ 2.40GHz");
  EXPECT_EQ(info->family, 6);
  EXPECT_EQ(info->model, 85);
}

TEST(ParseCpuinfo, CountsCoresOfCpusWithoutSocketOnce) {
  const auto info = parse_cpuinfo("processor : 0\ncpu cores : 4\nprocessor : 1\ncpu cores : 4\n");
  ASSERT_TRUE(info);
  EXPECT_EQ(info->physical_cores, 4U);
  EXPECT_EQ(info->sockets, 0U);
}

TEST(ParseCpuinfo, ReadsOtherArchitectures) {
  // ARM, here without its line "Features".
  const auto arm = parse_cpuinfo(
      "processor\t: 0\nBogoMIPS\t: 50.00\nCPU implementer\t: 0x41\n\nprocessor\t: 1\n"
      "BogoMIPS\t: 50.00\n");
  ASSERT_TRUE(arm);
  EXPECT_EQ(arm->processors, 2U);
  EXPECT_EQ(arm->physical_cores, 0U);
  const auto power = parse_cpuinfo("processor\t: 0\ncpu\t\t: POWER9, altivec supported\n");
  ASSERT_TRUE(power);
  EXPECT_EQ(power->model_name, "POWER9, altivec supported");
  const auto s390 =
      parse_cpuinfo("# processors    : 2\nprocessor 0: version = 00\nprocessor 1: x\n");
  ASSERT_TRUE(s390);
  EXPECT_EQ(s390->processors, 2U);
}

TEST(ParseCpuinfo, ReadsMoreThanAMebibyte) {
  std::string text;
  const std::string flags(2048, 'f');
  for (int cpu = 0; cpu < 1024; ++cpu) {
    text += "processor : " + std::to_string(cpu) + "\nphysical id : " + std::to_string(cpu / 256) +
            "\ncpu cores : 128\nflags : " + flags + "\n\n";
  }
  ASSERT_GT(text.size(), std::size_t{1} << 20U);
  const auto info = parse_cpuinfo(text);
  ASSERT_TRUE(info);
  EXPECT_EQ(info->processors, 1024U);
  EXPECT_EQ(info->physical_cores, 512U);
}

TEST(ParseCpuinfo, SurvivesOtherText) {
  EXPECT_FALSE(parse_cpuinfo(""));
  EXPECT_FALSE(parse_cpuinfo(std::string(1000, '\0')));
  const auto odd = parse_cpuinfo("processor : 0\nno colon\ncpu cores : many\nphysical id\n");
  ASSERT_TRUE(odd);
  EXPECT_EQ(odd->physical_cores, 0U);
}

}  // namespace
}  // namespace ceems::host
