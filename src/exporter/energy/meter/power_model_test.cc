#include "exporter/energy/meter/power_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "base/strings.h"
#include "host/read_file.h"
#include "testing/temp_dir.h"

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
    EXPECT_TRUE(row.rest_watts == 0 || row.rest_watts == 50 * row.sockets) << row.name;
  }
}

TEST(PowerTable, HoldsTheLevelsThatWerePublished) {
  const auto rows = table();
  const auto skylake = std::ranges::find(rows, "Intel Xeon Skylake-SP", &CpuPower::name);
  ASSERT_NE(skylake, rows.end());
  ASSERT_TRUE(skylake->shape);
  // Dell PowerEdge R740: 52.3 W idle, 129 W at 10 %, 224 W at 50 %, 457 W at 100 %.
  const PowerModel model{.idle_watts = 52.3, .full_watts = 457, .shape = *skylake->shape};
  EXPECT_DOUBLE_EQ(model.watts(0), 52.3);
  EXPECT_NEAR(model.watts(0.1), 129, 1e-9);
  EXPECT_NEAR(model.watts(0.15), (129 + 147) / 2.0, 1e-9);
  EXPECT_NEAR(model.watts(0.5), 224, 1e-9);
  EXPECT_DOUBLE_EQ(model.watts(1), 457);
  EXPECT_DOUBLE_EQ(model.watts(7), 457);
  EXPECT_DOUBLE_EQ(model.watts(-1), 52.3);
}

TEST(PowerTable, HasATypicalShapeForRowsWithoutLevels) {
  const PowerShape shape = typical_shape(table());
  EXPECT_EQ(shape.front(), 0);
  EXPECT_EQ(shape.back(), 1);
  EXPECT_TRUE(std::ranges::is_sorted(shape));
  EXPECT_NEAR(shape[1], 0.17, 0.01);  // the first busy core wakes the package
  EXPECT_NEAR(shape[5], 0.44, 0.01);  // a straight line is too high here
  EXPECT_EQ(typical_shape({}), PowerModel().shape);
}

struct Published {
  double sockets, threads, memory_gb, idle, full;
};

/// data/power-models/results.csv by family.
std::map<std::string, std::vector<Published>> published() {
  const auto text = host::read_file(CEEMS_TEST_ROOT "/../data/power-models/results.csv");
  std::map<std::string, std::vector<Published>> families;
  std::string_view rest = text.value();
  while (!rest.empty()) {
    const auto fields = split(take_until(rest, '\n'), ';');
    if (fields.size() != 9 || fields[0] == "family") {
      continue;  // a comment
    }
    const auto number = [&](std::size_t i) { return parse_double(fields.at(i)).value(); };
    families[std::string(fields[0])].push_back(
        {number(3), number(4), number(5), number(6), number(7)});
  }
  return families;
}

TEST(PowerTable, StatesTheErrorThatThePublishedResultsShow) {
  const auto families = published();
  EXPECT_GE(families.size(), 20U);
  std::vector<CpuPower> rows = table();
  double idle_sum = 0;
  double full_sum = 0;
  double count = 0;
  for (CpuPower& row : rows) {
    row.rest_watts = 0;  // the tested systems have none
    const auto family = families.find(std::string(row.name));
    EXPECT_EQ(row.idle_error.has_value(), family != families.end() && family->second.size() >= 5)
        << row.name;
    if (family == families.end()) {
      continue;
    }
    ErrorRange idle{1e9, -1e9};
    ErrorRange full{1e9, -1e9};
    bool quoted = false;
    for (const Published& result : family->second) {
      quoted = quoted || (result.idle == row.idle_watts && result.full == row.full_watts &&
                          result.threads == row.threads && result.sockets == row.sockets &&
                          result.memory_gb == row.memory_gb);
      CpuPower only = row;
      only.match = "*";
      const Machine machine{.cpu = {.sockets = static_cast<std::size_t>(result.sockets)},
                            .cpus = result.threads,
                            .memory_gb = result.memory_gb,
                            .tdp_watts = {}};
      const PowerModel model = make_power_model({only}, machine);
      const double idle_error = 100 * (model.idle_watts / result.idle - 1);
      const double full_error = 100 * (model.full_watts / result.full - 1);
      idle = {std::min(idle.low, idle_error), std::max(idle.high, idle_error)};
      full = {std::min(full.low, full_error), std::max(full.high, full_error)};
      idle_sum += std::abs(idle_error);
      full_sum += std::abs(full_error);
      ++count;
    }
    EXPECT_TRUE(quoted) << row.name << " is not among its family's results";
    if (row.idle_error && row.full_error) {
      EXPECT_NEAR(row.idle_error->low, idle.low, 0.51) << row.name;
      EXPECT_NEAR(row.idle_error->high, idle.high, 0.51) << row.name;
      EXPECT_NEAR(row.full_error->low, full.low, 0.51) << row.name;
      EXPECT_NEAR(row.full_error->high, full.high, 0.51) << row.name;
    }
  }
  // The numbers of docs/energy.md.
  EXPECT_GT(count, 390);
  EXPECT_NEAR(idle_sum / count, 17, 0.5);
  EXPECT_NEAR(full_sum / count, 11, 0.5);
}

TEST(PowerTable, IsThatOfTheDocumentation) {
  const auto page = host::read_file(CEEMS_TEST_ROOT "/../docs/energy.md").value();
  const auto families = published();
  const auto range = [](const ErrorRange& error) {
    const auto number = [](double value) {
      return value < 0 ? fmt::format("−{:.0f}", -value) : fmt::format("+{:.0f}", value);
    };
    return number(error.low) + " to " + number(error.high);
  };
  for (const CpuPower& row : table()) {
    if (row.idle_error && row.full_error) {
      const std::string line =
          fmt::format("| {} | {} | {} | {} | {} |\n", row.name,
                      families.at(std::string(row.name)).size(), range(*row.idle_error),
                      range(*row.full_error), row.shape ? "published" : "mean of others");
      EXPECT_NE(page.find(line), std::string::npos) << line;
    }
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
  const std::string line = "power table, line 3: ";
  EXPECT_EQ(message("a;b"), line + "expected 15 fields, got 'a;b'");
  EXPECT_EQ(message("a;Intel/6/x;1;4;2;8;1;;2;0;;;2020;s;"),
            line + "expected a CPU pattern, got 'Intel/6/x'");
  const std::string watts = line + "expected sockets, threads, memory, watts and a year, got 'a'";
  EXPECT_EQ(message("a;*;1;4;2;8;1;;0.5;0;;;2020;s;"), watts);  // full below idle
  EXPECT_EQ(message("a;*;1;0;2;8;1;;2;0;;;2020;s;"), watts);
  EXPECT_EQ(message("a;*;0;4;2;8;1;;2;0;;;2020;s;"), watts);
  EXPECT_EQ(message("a;*;1;4;2;;1;;2;0;;;2020;s;"), watts);
  EXPECT_EQ(message("a;*;1;4;2;8;1;;2;-1;;;2020;s;"), watts);
  EXPECT_EQ(message("a;*;1;4;2;8;1;;2;;;;2020;s;"), watts);
  const auto levels = [&](const std::string& text) {
    return message("a;*;1;4;2;8;10;" + text + ";20;0;;;2020;s;");
  };
  EXPECT_EQ(levels("11 12 13 14 15 16 17 18 19"), "");
  for (const char* text : {"11 12 13", "11 12 13 14 15 16 17 18 21", "11 12 13 14 15 16 17 18 x",
                           "9 12 13 14 15 16 17 18 19", "11 12 13 14 15 16 17 18 19 20",
                           "11 12 13 12 15 16 17 18 19"}) {
    EXPECT_EQ(levels(text),
              line + "expected nine rising watts between idle and full, got '" + text + "'");
  }
  const auto errors = [&](const std::string& text) {
    return message("a;*;1;4;2;8;10;;20;0;" + text + ";2020;s;");
  };
  EXPECT_EQ(errors("-1..+2;-3..-2"), "");
  EXPECT_EQ(errors("2..1;"), line + "expected errors such as -12..+34, got '2..1' and ''");
  EXPECT_EQ(errors(";12"), line + "expected errors such as -12..+34, got '' and '12'");
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
  EXPECT_EQ(cpu.sockets, 0U);
}

TEST(CpuIdentity, CountsTheSocketsOfAllProcessors) {
  const CpuIdentity cpu = parse_cpu_identity(
      "processor\t: 0\nphysical id\t: 0\n\nprocessor\t: 1\nphysical id\t: 3\n\n"
      "processor\t: 2\nphysical id\t: 0\n");
  EXPECT_EQ(cpu.sockets, 2U);
}

TEST(CpuIdentity, LeavesOutWhatItCannotRead) {
  const CpuIdentity cpu =
      parse_cpu_identity("model : x\nflags\nCPU part : 0x\n:\ncpu family : 99999999999\n\xff\n");
  EXPECT_EQ(cpu.vendor, "");
  EXPECT_EQ(cpu.family, -1);
  EXPECT_EQ(cpu.model, -1);
}

constexpr CpuIdentity genoa(bool hypervisor, bool one_thread_per_core, std::size_t sockets = 0) {
  return {.vendor = "AuthenticAMD",
          .family = 25,
          .model = 17,
          .stepping = 1,
          .hypervisor = hypervisor,
          .one_thread_per_core = one_thread_per_core,
          .sockets = sockets};
}

PowerModel model_of(const CpuIdentity& cpu,
                    double cpus,
                    double memory_gb = 0,
                    std::optional<double> tdp_watts = {}) {
  return make_power_model(
      table(), {.cpu = cpu, .cpus = cpus, .memory_gb = memory_gb, .tdp_watts = tdp_watts});
}

TEST(PowerModel, GivesAVirtualMachineItsSliceOfTheHost) {
  const PowerModel model = model_of(genoa(true, true, 1), 2, 1);
  EXPECT_NEAR(model.idle_watts, (128.0 + 100) * 2 / 384, 1e-9);
  EXPECT_NEAR(model.full_watts, (817.0 + 100) * 2 / 384, 1e-9);
  EXPECT_EQ(model.basis,
            "AMD EPYC Genoa (ASUS RS720A-E12-RS12, 2x EPYC 9654, SPECpower 2022), 2 of 384 "
            "threads; 0 GB more memory, 1 W for the rest");
  // Its slice of the host's memory is 2 GB.
  EXPECT_NEAR(model_of(genoa(true, true, 1), 2, 8).idle_watts,
              (128.0 + 100) * 2 / 384 + 6 * kIdleWattsPerGb, 1e-9);
}

TEST(PowerModel, AddsMemoryAndTheRestOfTheServer) {
  const PowerModel model = model_of(genoa(false, false, 2), 384, 1536);
  EXPECT_NEAR(model.idle_watts, 128 + 100 + 1152 * 0.07, 1e-9);
  EXPECT_NEAR(model.full_watts, 817 + 100 + 1152 * 0.19, 1e-9);
  EXPECT_EQ(model.basis,
            "AMD EPYC Genoa (ASUS RS720A-E12-RS12, 2x EPYC 9654, SPECpower 2022), 384 of 384 "
            "threads, 2 of 2 sockets; 1152 GB more memory, 100 W for the rest");
  // Less memory than the tested system, or unknown, changes nothing.
  EXPECT_NEAR(model_of(genoa(false, false, 2), 384, 64).idle_watts, 228, 1e-9);
}

TEST(PowerModel, CountsIdlePowerBySocketsAndFullLoadHalfByThreads) {
  const PowerModel small = model_of(genoa(false, false, 2), 96);
  EXPECT_NEAR(small.idle_watts, 128 + 100, 1e-9);
  EXPECT_NEAR(small.full_watts, 817 * (0.5 + 0.5 * 96 / 384) + 100, 1e-9);
  const PowerModel one = model_of(genoa(false, false, 1), 192);
  EXPECT_NEAR(one.idle_watts, 64 + 50, 1e-9);
  EXPECT_NEAR(one.full_watts, 408.5 + 50, 1e-9);
  const PowerModel unknown = model_of(genoa(false, false, 0), 96);
  EXPECT_NEAR(unknown.idle_watts, (128 + 100) / 4.0, 1e-9);
  EXPECT_NEAR(unknown.full_watts, (817 + 100) / 4.0, 1e-9);
}

TEST(PowerModel, CountsWholeCoresOnBareMetalWithoutSmt) {
  EXPECT_DOUBLE_EQ(model_of(genoa(false, false, 2), 384).full_watts, 917);
  EXPECT_DOUBLE_EQ(model_of(genoa(false, true, 2), 192).full_watts, 917);
}

TEST(PowerModel, TakesTheTdpOnlyForAnUnknownFamilyOnBareMetal) {
  CpuIdentity unknown{.vendor = "GenuineIntel", .family = 19, .model = 1, .sockets = 2};
  EXPECT_DOUBLE_EQ(model_of(unknown, 64, 0, 400.0).full_watts, 600 + 100);
  EXPECT_DOUBLE_EQ(model_of(unknown, 64, 0, 400.0).idle_watts, 120 + 100);
  EXPECT_EQ(model_of(unknown, 64, 0, 400.0).basis, "400 W TDP of all sockets, 100 W for the rest");
  EXPECT_NEAR(model_of(unknown, 60).full_watts, 817 * (0.5 + 0.5 / 4) + 100, 1e-9);
  EXPECT_DOUBLE_EQ(model_of(genoa(false, false, 2), 384, 0, 400.0).full_watts, 917);
  unknown.hypervisor = true;  // the limit of a host does not apply to its VM
  EXPECT_NEAR(model_of(unknown, 60, 0, 400.0).full_watts, (817 + 100) / 4.0, 1e-9);
  EXPECT_EQ(make_power_model({}, {.tdp_watts = {}}).full_watts, 0);
}

TEST(PowerModel, TellsTheIdlePowerThatIsAssumedUntilItIsLearned) {
  const auto ratios = [](const PowerModel& model) {
    const AssumedIdle assumed = assumed_idle(model);
    return std::array{assumed.packages, assumed.memory, assumed.node};
  };
  const PowerModel family = model_of(genoa(false, false, 2), 384);
  EXPECT_EQ(family.family, "AMD EPYC Genoa");
  EXPECT_EQ(ratios(family), (std::array{228.0 / 917, 0.07 / 0.19, 228.0 / 917}));
  EXPECT_EQ(ratios(calibrated(family, {.idle = 300, .full = 750})),
            (std::array{0.4, 0.07 / 0.19, 0.4}));
  // Nothing is known of another family, nor of a model that does not rise.
  constexpr std::array kHalf = {0.5, 0.5, 0.5};
  EXPECT_EQ(ratios(model_of({.vendor = "AuthenticAMD", .family = 99, .model = 1}, 64)), kHalf);
  EXPECT_EQ(ratios(model_of({.vendor = "GenuineIntel", .family = 19}, 64, 0, 400.0)), kHalf);
  EXPECT_EQ(ratios(calibrated({}, {.idle = 300, .full = 300})), kHalf);
  EXPECT_EQ(ratios({}), kHalf);
}

TEST(PowerModel, ReadsTheHost) {
  const testing::TempDir dir;
  const host::Paths paths{
      .proc = dir.path() / "proc", .sys = dir.path() / "sys", .cgroup = dir.path() / "cgroup"};
  EXPECT_FALSE(host_power_model(paths, {}));
  std::string stat = "cpu  1 2 3 4 5 6 7 8 0 0\n";
  for (int cpu = 0; cpu < 192; ++cpu) {
    stat += fmt::format("cpu{} 1 2 3 4 5 6 7 8 0 0\n", cpu);
  }
  dir.write("proc/stat", stat);
  EXPECT_EQ(host_power_model(paths, {})->full_watts, (619 + 100) * 192 / 160.0);  // unknown CPU
  dir.write("proc/cpuinfo",
            "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\n"
            "physical id\t: 0\nsiblings\t: 192\ncpu cores\t: 96\n");
  dir.write("proc/meminfo", "MemTotal: 536870912 kB\nMemFree: 1 kB\n");
  const auto model = host_power_model(paths, 360.0);
  ASSERT_TRUE(model);
  EXPECT_NEAR(model->idle_watts, 64 + 50 + (512 - 192) * 0.07, 1e-9);
  EXPECT_NEAR(model->full_watts, 408.5 + 50 + (512 - 192) * 0.19, 1e-9);
  EXPECT_EQ(model->idle_error->low, -17);
  EXPECT_EQ(model->full_error->high, 30);
}

TEST(PowerModel, IsReplacedByTwoReadings) {
  Meters meters{std::make_shared<ModelMeter>(model_of(genoa(false, false, 2), 384, 1536))};
  const PowerModel before = find_model(meters)->model();
  calibrate(meters, {.idle = 300, .full = 700});
  ASSERT_EQ(meters.size(), 1U);
  const PowerModel& model = find_model(meters)->model();
  EXPECT_TRUE(model.calibrated);
  EXPECT_DOUBLE_EQ(model.watts(0), 300);
  EXPECT_DOUBLE_EQ(model.watts(1), 700);
  EXPECT_EQ(model.shape, before.shape);
  EXPECT_NEAR(model.watts(0.5), 300 + 400 * (410 - 128) / (817.0 - 128), 1e-9);
  EXPECT_EQ(model.basis, "two readings of a wattmeter");
  EXPECT_FALSE(model.idle_error);
  Meters none;
  calibrate(none, {.idle = 300, .full = 700});
  EXPECT_DOUBLE_EQ(find_model(none)->model().watts(0.25), 400);
}

TEST(ModelMeter, IntegratesPowerOverUtilisation) {
  ModelMeter meter({.idle_watts = 100, .full_watts = 300});
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
