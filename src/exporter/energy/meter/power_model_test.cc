#include "exporter/energy/meter/power_model.h"

#include <set>

#include <gtest/gtest.h>

namespace ceems::exporter::energy {
namespace {

std::vector<CpuPower> table() {
  return parse_power_table(kCpusCsv).value();
}

std::string name_of(const CpuIdentity& cpu) {
  const auto rows = table();
  const CpuPower* row = find_power(rows, cpu);
  return row == nullptr ? "" : std::string(row->name);
}

TEST(PowerTable, HoldsOnlySensibleRows) {
  const auto parsed = parse_power_table(kCpusCsv);
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_GT(parsed->size(), 35U);
  std::set<std::string_view> names;
  for (const CpuPower& row : *parsed) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_FALSE(row.system.empty()) << row.name;
    EXPECT_GE(row.year, 2007) << row.name;
    EXPECT_LE(row.year, 2026) << row.name;
    // Between the lowest and the highest power per hardware thread in SPECpower results.
    EXPECT_GT(row.idle_watts / row.threads, 0.1) << row.name;
    EXPECT_LT(row.full_watts / row.threads, 15) << row.name;
  }
}

TEST(PowerTable, FindsTheFamilyOfACpu) {
  EXPECT_EQ(name_of({.vendor = "AuthenticAMD", .family = 25, .model = 17}), "AMD EPYC Genoa");
  EXPECT_EQ(name_of({.vendor = "AuthenticAMD", .family = 25, .model = 1}), "AMD EPYC Milan");
  EXPECT_EQ(name_of({.vendor = "AuthenticAMD", .family = 25, .model = 48}), "AMD EPYC Trento");
  EXPECT_EQ(name_of({.vendor = "AuthenticAMD", .family = 23, .model = 49}), "AMD EPYC Rome");
  EXPECT_EQ(name_of({.vendor = "GenuineIntel", .family = 6, .model = 85, .stepping = 4}),
            "Intel Xeon Skylake-SP");
  EXPECT_EQ(name_of({.vendor = "GenuineIntel", .family = 6, .model = 85, .stepping = 7}),
            "Intel Xeon Cascade Lake");
  EXPECT_EQ(name_of({.vendor = "GenuineIntel", .family = 6, .model = 45}),
            "Intel Xeon Sandy Bridge");
  EXPECT_EQ(name_of({.vendor = "GenuineIntel", .family = 6, .model = 44}), "Intel Xeon Westmere");
  EXPECT_EQ(name_of({.vendor = "0x41", .model = 0xd0c}), "Ampere Altra Neoverse N1");
  EXPECT_EQ(name_of({.vendor = "GenuineIntel", .family = 6, .model = 250}), "Other Intel");
  EXPECT_EQ(name_of({.vendor = "0x41", .model = 0xfff}), "Other ARM");
  EXPECT_EQ(name_of({}), "Unknown CPU");
}

TEST(PowerTable, NamesTheInvalidLine) {
  const auto message = [](std::string_view row) {
    const auto parsed = parse_power_table("# note\nheader\n" + std::string(row) + "\n");
    return parsed ? std::string() : parsed.error().message;
  };
  EXPECT_EQ(message("a;b"), "power table, line 3: expected 9 fields, got 'a;b'");
  EXPECT_EQ(message("a;Intel/6/x;1;2;4;2;2020;s;"),
            "power table, line 3: expected a CPU pattern, got 'Intel/6/x'");
  EXPECT_EQ(message("a;*;1;0.5;4;2;2020;s;"),
            "power table, line 3: expected watts, threads and a year, got 'a'");
  EXPECT_EQ(message("a;*;1;2;0;2;2020;s;"),
            "power table, line 3: expected watts, threads and a year, got 'a'");
  EXPECT_EQ(message("a;*;1;2;4;2;2020;s;"), "");
}

TEST(CpuIdentity, ReadsTheFirstProcessorOfX86) {
  const CpuIdentity cpu = parse_cpu_identity(
      "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\n"
      "model name\t: AMD EPYC\nstepping\t: 1\nsiblings\t: 2\ncpu cores\t: 2\n"
      "flags\t\t: fpu vme hypervisor sse\n\nprocessor\t: 1\nvendor_id\t: Other\n");
  EXPECT_EQ(cpu.vendor, "AuthenticAMD");
  EXPECT_EQ(cpu.family, 25);
  EXPECT_EQ(cpu.model, 17);
  EXPECT_EQ(cpu.stepping, 1);
  EXPECT_TRUE(cpu.hypervisor);
  EXPECT_TRUE(cpu.one_thread_per_core);
}

TEST(CpuIdentity, ReadsArm) {
  const CpuIdentity cpu = parse_cpu_identity(
      "processor\t: 0\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n");
  EXPECT_EQ(cpu.vendor, "0x41");
  EXPECT_EQ(cpu.model, 0xd0c);
  EXPECT_FALSE(cpu.hypervisor);
}

TEST(CpuIdentity, LeavesOutWhatItCannotRead) {
  const CpuIdentity cpu =
      parse_cpu_identity("model : x\nflags\nCPU part : 0x\n:\ncpu family : 99999999999\n\xff\n");
  EXPECT_EQ(cpu.vendor, "");
  EXPECT_EQ(cpu.family, -1);
  EXPECT_EQ(cpu.model, -1);
}

constexpr CpuIdentity genoa(bool hypervisor, bool one_thread_per_core) {
  return {.vendor = "AuthenticAMD",
          .family = 25,
          .model = 17,
          .stepping = 1,
          .hypervisor = hypervisor,
          .one_thread_per_core = one_thread_per_core};
}

TEST(PowerModel, GivesAVirtualMachineItsSliceOfTheHost) {
  const PowerModel model = make_power_model(table(), genoa(true, true), 2, std::nullopt);
  EXPECT_NEAR(model.idle_watts, 129.0 * 2 / 384, 1e-9);
  EXPECT_NEAR(model.full_watts, 692.0 * 2 / 384, 1e-9);
  EXPECT_EQ(model.basis,
            "AMD EPYC Genoa (QCT QuantaGrid D44N-1U, 2x EPYC 9654, SPECpower 2024), 2 of 384 "
            "threads");
}

TEST(PowerModel, CountsWholeCoresOnBareMetalWithoutSmt) {
  const auto with = make_power_model(table(), genoa(false, false), 384, std::nullopt);
  const auto without = make_power_model(table(), genoa(false, true), 192, std::nullopt);
  EXPECT_DOUBLE_EQ(with.full_watts, 692);
  EXPECT_DOUBLE_EQ(without.full_watts, 692);
}

TEST(PowerModel, TakesTheTdpOnlyForAnUnknownFamilyOnBareMetal) {
  CpuIdentity unknown{.vendor = "GenuineIntel", .family = 19, .model = 1};
  EXPECT_DOUBLE_EQ(make_power_model(table(), unknown, 64, 400.0).full_watts, 600);
  EXPECT_DOUBLE_EQ(make_power_model(table(), unknown, 64, 400.0).idle_watts, 120);
  EXPECT_NEAR(make_power_model(table(), unknown, 64, std::nullopt).full_watts, 831.0 * 64 / 240,
              1e-9);
  EXPECT_DOUBLE_EQ(make_power_model(table(), genoa(false, false), 384, 400.0).full_watts, 692);
  unknown.hypervisor = true;  // the limit of a host does not apply to its VM
  EXPECT_NEAR(make_power_model(table(), unknown, 64, 400.0).full_watts, 831.0 * 64 / 240, 1e-9);
}

TEST(ModelMeter, IntegratesPowerOverUtilisation) {
  ModelMeter meter({.idle_watts = 100, .full_watts = 300, .basis = {}});
  const Clock::SteadyTime start{std::chrono::seconds(100)};
  EXPECT_DOUBLE_EQ(meter.read({.now = start, .utilisation = {}})->joules, 0);
  const auto half = meter.read({.now = start + std::chrono::seconds(2), .utilisation = 0.5});
  ASSERT_TRUE(half);
  EXPECT_DOUBLE_EQ(half->joules, 400);
  EXPECT_EQ(half->idle_watts, 100);
  EXPECT_FALSE(meter.read({.now = start + std::chrono::seconds(3), .utilisation = {}}));
  const auto idle = meter.read({.now = start + std::chrono::seconds(4), .utilisation = 0.0});
  EXPECT_DOUBLE_EQ(idle->joules, 100);
  EXPECT_EQ(meter.source().method, Method::kModelled);
}

}  // namespace
}  // namespace ceems::exporter::energy
