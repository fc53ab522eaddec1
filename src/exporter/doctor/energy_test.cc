#include <sys/stat.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exporter/doctor/doctor.h"
#include "exporter/doctor/validation.h"
#include "testing/temp_dir.h"

namespace ceems::exporter {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

/// A node with one socket of EPYC Genoa and 512 GB, without any meter.
class Node {
 public:
  Node() {
    std::string stat = "cpu  1 2 3 4 5 6 7 8 0 0\n";
    for (int cpu = 0; cpu < 192; ++cpu) {
      stat += fmt::format("cpu{} 1 2 3 4 5 6 7 8 0 0\n", cpu);
    }
    write("proc/stat", stat);
    write("proc/cpuinfo",
          "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\n"
          "physical id\t: 0\nsiblings\t: 192\ncpu cores\t: 96\n");
    write("proc/meminfo", "MemTotal: 536870912 kB\n");
    context.paths = {.proc = at("proc"), .sys = at("sys"), .cgroup = at("cgroup")};
    context.dev = at("dev");
    context.environment = [](const std::string&) { return std::string(); };
    context.may_raise = [this](os::Capability) { return privileged; };
  }

  void rapl(mode_t mode = 0400) const {
    const struct {
      const char* entry;
      const char* name;
    } zones[] = {
        {"intel-rapl:0", "package-0"}, {"intel-rapl:0:0", "dram"}, {"intel-rapl:1", "package-1"}};
    for (const auto& zone : zones) {
      const std::string base = fmt::format("sys/class/powercap/{}/", zone.entry);
      write(base + "name", zone.name);
      write(base + "max_energy_range_uj", "262143328850");
      write(base + "energy_uj", "1", mode);
    }
  }
  void wall_sensor(mode_t mode = 0444) const {
    write("sys/class/hwmon/hwmon0/name", "power_meter\n");
    write("sys/class/hwmon/hwmon0/power1_average", "250000000\n", mode);
  }
  void write(const std::string& path, std::string_view text, mode_t mode = 0644) const {
    dir_.write(path, text);
    ASSERT_EQ(::chmod(at(path).c_str(), mode), 0);
  }
  [[nodiscard]] std::string at(const std::string& path) const {
    return (dir_.path() / path).string();
  }

  /// The causes of the findings on energy, with the fix where there is one.
  [[nodiscard]] std::vector<std::string> causes() const {
    std::vector<std::string> found;
    for (const Finding& finding : examine(context)) {
      if (finding.collector == "energy") {
        found.push_back(finding.cause + (finding.fix.empty() ? "" : " -> " + finding.fix));
      }
    }
    return found;
  }

  DoctorContext context;
  bool privileged = true;

 private:
  testing::TempDir dir_;
};

std::string errors_with(MeterSet meters) {
  return "expected error, on simulated nodes: " + expected_error(kEnergyErrorsCsv, meters).value();
}

TEST(DoctorEnergy, ExplainsTheModelWhereNothingIsMeasured) {
  const Node node;
  EXPECT_THAT(
      node.causes(),
      ElementsAre("no meter; the node's energy is that of the power model (modelled)",
                  "power model, not calibrated: 136 W idle, 519 W at full load; AMD EPYC Genoa "
                  "(ASUS RS720A-E12-RS12, 2x EPYC 9654, SPECpower 2022), 192 of 384 threads, 1 of "
                  "2 sockets; 320 GB more memory, 50 W for the rest -> read a wattmeter twice, "
                  "when the node is idle and under full load (stress-ng --cpu 0 --cpu-method "
                  "matrixprod), and start with "
                  "--collector.energy.model-watts=idle=WATTS,full=WATTS",
                  "idle power is that of the power model",
                  "expected error of the node's power: -17 to +11 % when idle, -2 to +30 % at full "
                  "load, more on an untuned or virtual machine (published results of this CPU "
                  "family)"));
}

TEST(DoctorEnergy, AsksForTheHostsWattmeterInAVirtualMachine) {
  const Node node;
  node.write("proc/cpuinfo",
             "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\n"
             "flags\t\t: fpu hypervisor\n");
  EXPECT_THAT(node.causes()[1],
              HasSubstr("-> read a wattmeter of the host twice, when it is idle and under full "
                        "load (stress-ng --cpu 0 --cpu-method matrixprod), and start with "
                        "--collector.energy.model-watts=idle=WATTS,full=WATTS, this machine's "
                        "part of it by CPUs"));
}

TEST(DoctorEnergy, SaysThatTheModelIsCalibrated) {
  Node node;
  node.context.model_watts = "idle=95,full=410.5";
  const auto causes = node.causes();
  ASSERT_EQ(causes.size(), 4U);
  EXPECT_EQ(causes[1], "power model calibrated by two readings: 95 W idle, 410.5 W at full load");
  EXPECT_EQ(causes[3], "expected error: that of the wattmeter when idle and at full load");
}

TEST(DoctorEnergy, HasNoErrorForAnUnknownCpu) {
  const Node node;
  node.write("proc/cpuinfo", "processor\t: 0\nvendor_id\t: Other\n");
  EXPECT_EQ(node.causes().back(),
            "expected error of the node's power: unknown for this CPU family, easily half");
}

TEST(DoctorEnergy, ListsTheMetersByDomain) {
  Node node;
  node.rapl();
  node.write("dev/ipmi0", "");
  EXPECT_THAT(
      node.causes(),
      ElementsAre("package: rapl-package-0, rapl-package-1; dram: rapl-dram-0; the node's energy "
                  "is the sum of these (derived), without fans, disks and losses -> "
                  "--collector.ipmi_dcmi measures the whole node",
                  "idle power is learned; nothing is stored yet. Until the use varies, it is "
                  "assumed from the model of AMD EPYC Genoa: 26 % of the power at full load; error "
                  "-17 to +11 % over the published results of the family",
                  errors_with(MeterSet::kPackages)));
}

TEST(DoctorEnergy, NamesTheSourceThatDecides) {
  Node node;
  node.rapl();
  node.wall_sensor();
  auto causes = node.causes();
  EXPECT_THAT(causes[0], HasSubstr("; node: hwmon-power_meter-power1; the node's energy is that of "
                                   "hwmon-power_meter-power1 (measured)"));
  EXPECT_EQ(causes.back(), errors_with(MeterSet::kPackagesAndWall));
  node.write("dev/ipmi0", "");
  node.context.wanted = {"ipmi_dcmi"};
  causes = node.causes();
  EXPECT_THAT(causes[0],
              HasSubstr("node: hwmon-power_meter-power1, ipmi_dcmi; the node's energy is "
                        "that of ipmi_dcmi (measured)"));
  EXPECT_EQ(causes.back(), errors_with(MeterSet::kPackagesAndBmc));
}

/// "COLLECTOR: CAUSE" of what is there and cannot work.
std::vector<std::string> causes_of_faults(const Node& node) {
  std::vector<std::string> faults;
  for (const Finding& finding : examine(node.context)) {
    const bool absent = finding.collector == "cgroup" || finding.cause.contains("No such file");
    if (finding.state == Finding::State::kCannot && !absent) {
      faults.push_back(finding.collector + ": " + finding.cause);
    }
  }
  return faults;
}

TEST(DoctorEnergy, DoesNotCallAPowerMeterThatTheServiceDoubtsWorking) {
  const Node node;
  const std::string sensor = "sys/class/hwmon/hwmon0/power1_average";
  node.wall_sensor();
  EXPECT_THAT(causes_of_faults(node), IsEmpty());
  struct Lie {
    const char* text;
    const char* collector;  // that has the finding; hwmon is off if no sensor shows a power
    const char* why;
  };
  const std::vector<Lie> lies{
      {"0\n", "energy: ", "it shows zero or no valid power"},
      {"65535000000\n", "energy: ", "all its bits are set, so it has no value"},
      {"9000000000\n", "hwmon: ", "it shows more than this node can draw"},
      {"5000000\n", "hwmon: ", "it shows less than a node or the parts of this one draw"},
      {"none\n", "energy: ", "it cannot be read"}};
  for (const auto& [text, collector, why] : lies) {
    node.write(sensor, text, 0444);
    EXPECT_THAT(causes_of_faults(node),
                ElementsAre(AllOf(
                    StartsWith(collector),
                    EndsWith(std::string("hwmon-power_meter-power1 is not believed: ") + why))))
        << text;
    EXPECT_THAT(node.causes(),
                Contains("no meter; the node's energy is that of the power model (modelled)"))
        << text;
  }
}

TEST(DoctorEnergy, JudgesWhatTheBmcShows) {
  Node node;
  node.write("dev/ipmi0", "");
  node.context.wanted = {"ipmi_dcmi"};
  double watts = 341;
  node.context.read_ipmi = [&watts]() -> Result<double> { return watts; };
  EXPECT_THAT(causes_of_faults(node), IsEmpty());
  EXPECT_THAT(node.causes()[0], HasSubstr("that of ipmi_dcmi (measured)"));
  EXPECT_EQ(node.causes().back(), errors_with(MeterSet::kBmc));
  watts = 4;
  EXPECT_THAT(causes_of_faults(node),
              ElementsAre("ipmi_dcmi: the IPMI device can be opened; the node draws 4 W; ipmi_dcmi "
                          "is not believed: it shows less than a node or the parts of this one "
                          "draw"));
  EXPECT_THAT(node.causes()[0], HasSubstr("power model (modelled)"));
  watts = 32767;
  EXPECT_THAT(causes_of_faults(node), ElementsAre(HasSubstr("all its bits are set")));
}

TEST(DoctorEnergy, SaysWhichCountersDidNotMove) {
  Node node;
  node.rapl();
  node.context.rapl_watch = std::chrono::milliseconds(5);
  EXPECT_THAT(node.causes()[0],
              HasSubstr("; unknown: whether rapl-package-0, rapl-dram-0, rapl-package-1 stands "
                        "still, which did not move for 5 ms (the service decides after 5 s)"));
  EXPECT_THAT(causes_of_faults(node), ElementsAre(HasSubstr("rapl: counters stand still")));
}

TEST(DoctorEnergy, ReadsTheCounterOfTheNodeControllerTwice) {
  Node node;
  node.write("sys/cray/pm_counters/power", "300 W 1 us\n");
  node.write("sys/cray/pm_counters/energy", "1000 J 1 us\n");
  node.context.wanted = {"cray_pm_counters"};
  EXPECT_THAT(causes_of_faults(node), IsEmpty());
  EXPECT_THAT(node.causes()[0], HasSubstr("that of cray (measured)"));
  node.context.rapl_watch = std::chrono::milliseconds(5);
  EXPECT_THAT(as_text(examine(node.context)),
              HasSubstr("1 domains; unknown: whether the energy counter of the node stands still, "
                        "which did not move for 5 ms"));
  for (const char* const text : {"0 J 1 us\n", "18446744073709551615 J 1 us\n", "n/a\n"}) {
    node.write("sys/cray/pm_counters/energy", text);
    EXPECT_THAT(causes_of_faults(node),
                ElementsAre(HasSubstr("cray_pm_counters: the energy counter of the node has no "
                                      "value")))
        << text;
    EXPECT_THAT(node.causes()[0], HasSubstr("no meter")) << text;
  }
}

TEST(DoctorEnergy, LeavesOutWhatTheExporterCannotRead) {
  Node node;
  node.rapl();
  node.wall_sensor(0400);
  node.privileged = false;
  EXPECT_EQ(node.causes()[0], "no meter; the node's energy is that of the power model (modelled)");
  node.wall_sensor();
  EXPECT_EQ(node.causes()[0],
            "node: hwmon-power_meter-power1; the node's energy is that of hwmon-power_meter-power1 "
            "(measured)");
  EXPECT_EQ(node.causes().back(), errors_with(MeterSet::kBmc));
  node.rapl(0444);
  EXPECT_THAT(node.causes()[0], HasSubstr("package: rapl-package-0, rapl-package-1"));
}

TEST(DoctorEnergy, PrintsIdlePowerReadyToPaste) {
  Node node;
  node.rapl();
  node.context.learned.idle = {
      {.domain = energy::Domain::kPackage,
       .bins = {{.use = 0, .watts = 91, .windows = 90}},
       .estimate = energy::PowerEstimate{.watts = 90.46, .deviation = 3.6}},
      {.domain = energy::Domain::kDram, .bins = {{.use = 0, .watts = 12, .windows = 90}}}};
  EXPECT_EQ(node.causes()[1],
            "idle power was learned: package=90.5,dram=12.0, error about 4 % -> for other nodes of "
            "this kind: "
            "--collector.energy.idle-watts=package=90.5,dram=12.0");
  node.context.idle_watts = "package=80";
  EXPECT_EQ(node.causes()[1],
            "idle power is configured: package=80.0; learned was package=90.5,dram=12.0");
}

TEST(DoctorEnergy, TellsAssumedIdlePowerFromLearned) {
  Node node;
  node.rapl();
  node.context.learned.idle = {
      {.domain = energy::Domain::kPackage,
       .bins = {{.use = 1, .watts = 400, .windows = 90}},
       .estimate = energy::PowerEstimate{.watts = 118, .deviation = 59}},
      {.domain = energy::Domain::kDram, .bins = {{.use = 0, .watts = 12, .windows = 90}}}};
  auto causes = node.causes();
  EXPECT_EQ(causes[1],
            "idle power was learned: dram=12.0, error about 1 % -> for other nodes of this kind: "
            "--collector.energy.idle-watts=dram=12.0");
  EXPECT_EQ(causes[2],
            "idle power while the use has hardly varied: package=118.0, assumed from the model of "
            "AMD EPYC Genoa: 26 % of the power at full load; error -17 to +11 % over the published "
            "results of the family");
  node.write("proc/cpuinfo", "processor\t: 0\nvendor_id\t: Other\n");
  causes = node.causes();
  EXPECT_THAT(causes[2], HasSubstr("assumed without a model of the CPU family: 50 % of the power "
                                   "at full load; the error is unknown, easily half"));
}

TEST(DoctorEnergy, NamesInvalidFlags) {
  Node node;
  node.context.idle_watts = "psys=5";
  node.context.model_watts = "idle=5";
  std::vector<std::string> faults;
  for (const Finding& finding : examine(node.context)) {
    if (finding.collector == "energy" && finding.state == Finding::State::kCannot) {
      faults.push_back(finding.cause);
    }
  }
  EXPECT_THAT(faults,
              ElementsAre(HasSubstr("--collector.energy.model-watts: expected two readings"),
                          HasSubstr("--collector.energy.idle-watts: expected a number of watts")));
}

TEST(DoctorEnergy, CanBeSwitchedOff) {
  Node node;
  node.rapl();
  node.context.energy_refused = true;
  EXPECT_THAT(node.causes(), ElementsAre("switched off by --no-collector.energy"));
}

TEST(DoctorEnergy, IsPartOfTheJson) {
  const Node node;
  EXPECT_THAT(
      as_json(examine(node.context)),
      HasSubstr(
          "{\"collector\":\"energy\",\"state\":\"works\",\"cause\":\"no meter; the node's energy "
          "is that of the power model (modelled)\",\"fix\":\"\"}"));
}

}  // namespace
}  // namespace ceems::exporter
