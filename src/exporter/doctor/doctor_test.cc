#include "exporter/doctor/doctor.h"

#include <linux/capability.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/temp_dir.h"

namespace ceems::exporter {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

constexpr const char* kStat = "cpu  1 2 3 4 5 6 7 8 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\n";
constexpr const char* kCpuinfo =
    "processor\t: 0\nvendor_id\t: GenuineIntel\nphysical id\t: 0\ncpu cores\t: 1\nflags\t\t: fpu "
    "vme\n";

/// A bare-metal SLURM node made of files, on which everything works. Tests break it.
class Host {
 public:
  Host() {
    write("proc/stat", kStat);
    write("proc/cpuinfo", kCpuinfo);
    write("proc/meminfo", "MemTotal: 100 kB\n");
    write("proc/net/dev", "a\nb\n");
    write("proc/pressure/cpu", "");
    write("proc/sys/kernel/perf_event_paranoid", "2\n");
    const std::string zone = "sys/class/powercap/intel-rapl:0/";
    write(zone + "name", "package-0\n");
    write(zone + "energy_uj", "5\n", 0400);
    write(zone + "max_energy_range_uj", "100\n");
    write("sys/class/hwmon/hwmon0/name", "acpi_power\n");
    write("sys/class/hwmon/hwmon0/power1_input", "1000000\n");
    write("sys/class/infiniband/mlx5_0/fw_ver", "1.2\n");
    write("sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
    write("sys/class/infiniband/mlx5_0/ports/1/phys_state", "5: LinkUp\n");
    write("sys/class/infiniband/mlx5_0/ports/1/rate", "100 Gb/sec (4X EDR)\n");
    write("sys/bus/pci/devices/0000:3b:00.0/class", "0x030200\n");
    write("sys/bus/pci/devices/0000:3b:00.0/vendor", "0x10de\n");
    write("cgroup/cgroup.controllers", "cpuset cpu io memory pids\n");
    write("cgroup/system.slice/slurmstepd.scope/cgroup.controllers", "cpu memory\n");
    write("cgroup/system.slice/slurmstepd.scope/job_1/cgroup.controllers", "cpu memory\n");
    write(R"(cgroup/machine.slice/machine-qemu\x2d1\x2dinstance\x2d01.scope/cgroup.procs)", "");
    write("cgroup/kubepods.slice/kubepods-pod1.slice/cgroup.procs", "");
    write("etc/gres.conf", "Name=gpu\n");
    write("etc/qemu/instance-00000001.xml", "<domain/>");
    write("etc/redfish.yml", "redfish_collector:\n  protocol: https\n  hostname: bmc\n");
    write("etc/web.yml", "{}\n");
    write("run/kubelet.sock", "");
    write("dev/ipmi0", "");
    write("dev/hsmp", "");
    write("dev/nvidiactl", "");
    write("bin/nvidia-smi", "", 0755);
    context.paths = {.proc = at("proc"), .sys = at("sys"), .cgroup = at("cgroup")};
    context.dev = at("dev");
    context.run = at("run");
    context.search_path = at("bin");
    context.cgroup_version = "v2";
    context.xml_directories = {at("etc/qemu"), at("run/qemu")};
    context.kubelet_socket = at("run/kubelet.sock");
    context.redfish_config = at("etc/redfish.yml");
    context.web_config = at("etc/web.yml");
    context.gres_config = at("etc/gres.conf");
    context.wanted = {"rapl",      "hwmon",  "infiniband", "ipmi_dcmi", "amd_hsmp", "redfish",
                      "emissions", "netdev", "slurm",      "libvirt",   "k8s",      "gpu"};
    write("sys/kernel/btf/vmlinux", "");
    write("sys/kernel/security/lockdown", "none [integrity] confidentiality\n");
    context.perf_wanted = true;
    context.rdma_wanted = true;
    context.emission_providers = {"emaps", "wt"};
    context.run_as_user = "root";
    context.environment = [this](const std::string& name) { return environment[name]; };
    context.may_raise = [this](os::Capability capability) {
      return privileged || capability == extra_capability;
    };
    environment = {{"EMAPS_API_TOKEN", "t"},
                   {"WT_USERNAME", "u"},
                   {"WT_PASSWORD", "p"},
                   {"WT_REGION", "r"},
                   {"NODE_NAME", "n1"}};
  }

  [[nodiscard]] std::string at(const std::string& relative) const {
    return (dir_.path() / relative).string();
  }
  void write(const std::string& relative, std::string_view text, mode_t mode = 0644) const {
    dir_.write(relative, text);
    ASSERT_EQ(::chmod(at(relative).c_str(), mode), 0);
  }
  void remove(const std::string& relative) const { fs::remove_all(at(relative)); }

  DoctorContext context;
  std::map<std::string, std::string> environment;
  bool privileged = true;
  os::Capability extra_capability = -1;

 private:
  testing::TempDir dir_;
};

Findings faults_of(const Host& host) {
  Findings faults;
  for (const Finding& finding : examine(host.context)) {
    if (finding.state == Finding::State::kCannot) {
      faults.push_back(finding);
    }
  }
  return faults;
}

TEST(Doctor, SaysWhatTheBmcReportsAndThatCoresAreUnknown) {
  Host host;
  host.context.read_redfish = [](const redfish::Config&) -> Result<ChassisPower> {
    return ChassisPower{.chassis = 1, .node_watts = 341};
  };
  host.write("proc/cpuinfo", "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n");
  const std::string text = as_text(examine(host.context));
  EXPECT_THAT(text, HasSubstr("the node draws 341 W"));
  EXPECT_THAT(text, HasSubstr("1 CPUs online, unknown number of physical cores"));
}

TEST(Doctor, LeavesOutExcludedInfinibandDevices) {
  Host host;
  host.write("sys/class/infiniband/mana_0/node_type", "1: CA\n");
  EXPECT_THAT(as_text(examine(host.context)), HasSubstr("infiniband.device-exclude leaves"));
  host.context.infiniband_exclude = "mana_.*";
  EXPECT_THAT(as_text(examine(host.context)), HasSubstr("1 devices, 1 ports, 1 of them active"));
}

TEST(Doctor, FindsNothingOnAHealthyHost) {
  const Host host;
  EXPECT_EQ(as_text(faults_of(host)), "\n0 work, 0 off, 0 cannot work\n");
  EXPECT_EQ(exit_status(examine(host.context)), 0);
}

TEST(Doctor, FindsPodsWhereverTheKubeletHasThem) {
  Host host;
  host.remove("cgroup/kubepods.slice");
  host.write(
      "cgroup/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod12.slice/cgroup.procs", "");
  EXPECT_EQ(exit_status(examine(host.context)), 0);
  EXPECT_THAT(as_text(examine(host.context)), HasSubstr("cgroups of 1 pods, the first in"));
}

TEST(Doctor, ReportsHowManyFilesConnectionsLeave) {
  Host host;
  host.context.file_limit = 8192;
  EXPECT_THAT(as_text(examine(host.context)),
              HasSubstr("up to 8192 files may be open, and connections use at most 2048 of them"));
}

TEST(Doctor, FindsNothingOnABareVirtualMachine) {
  Host host;
  for (const char* path : {"sys/class", "sys/bus", "dev", "cgroup/system.slice",
                           "cgroup/machine.slice", "cgroup/kubepods.slice", "etc", "run", "bin"}) {
    host.remove(path);
  }
  host.write("proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu hypervisor\n");
  host.context.wanted.clear();
  host.context.perf_wanted = host.context.rdma_wanted = false;
  host.context.web_config.clear();
  host.privileged = false;
  EXPECT_EQ(as_text(faults_of(host)), "\n0 work, 0 off, 0 cannot work\n");
}

TEST(Doctor, ReportsThatUsersCanForgeGpusWithoutAProlog) {
  Host host;
  host.context.gpu_map_directory = host.at("run/slurm-gpu-map");
  const auto advice = [&host] {
    const auto findings = examine(host.context);
    return std::ranges::count_if(findings, [](const Finding& finding) {
      return finding.collector == "slurm" && finding.state == Finding::State::kWorks &&
             finding.fix.find("prolog") != std::string::npos;
    });
  };
  EXPECT_EQ(advice(), 1);
  host.context.gpu_hints_count = false;
  EXPECT_EQ(advice(), 0);
  host.context.gpu_hints_count = true;
  host.write("run/slurm-gpu-map/7", "0\n");
  EXPECT_EQ(advice(), 0);
}

TEST(Doctor, NeedsNoToolIfTheGpusHaveTheirLibrary) {
  Host host;
  host.remove("bin/nvidia-smi");
  host.context.read_gpus = [](gpu::Vendor /*vendor*/) -> Result<GpuReadings> {
    return GpuReadings{.first = std::vector<gpu::DeviceState>(1),
                       .second = std::vector<gpu::DeviceState>(1)};
  };
  EXPECT_EQ(as_text(faults_of(host)), "\n0 work, 0 off, 0 cannot work\n");
}

TEST(Doctor, NamesWhatIsWrongWithGpus) {
  Host host;
  host.remove("bin/nvidia-smi");
  std::vector<gpu::DeviceState> gpus(2);
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    gpus[i].uuid = "GPU-" + std::to_string(i);
    gpus[i].index = std::to_string(i);
    gpus[i].power_watts = 300;
    gpus[i].energy_joules = 5;
    gpus[i].driver_minor = 1 - i;
  }
  GpuReadings readings{.first = gpus, .second = gpus};
  readings.second[1].energy_joules = 305;
  host.context.read_gpus = [&](gpu::Vendor /*vendor*/) -> Result<GpuReadings> { return readings; };
  const auto of_gpus = [&host](Finding::State state) {
    std::string text;
    for (const Finding& finding : examine(host.context)) {
      if (finding.collector == "gpu" && finding.state == state) {
        text += finding.cause + " | " + finding.fix + "\n";
      }
    }
    return text;
  };
  EXPECT_EQ(
      of_gpus(Finding::State::kWorks),
      "2 GPUs of NVIDIA, read through its library; the energy counter of 0 stands still: its "
      "power is used; /dev/nvidia<N> are in another order, which SLURM's numbers follow | \n");
  readings.second[0] = gpu::as_lost(gpus[0], "the GPU has fallen off the bus (15); reboot");
  EXPECT_EQ(
      of_gpus(Finding::State::kCannot),
      "GPU 0 (GPU-0) of NVIDIA does not answer: the GPU has fallen off the bus (15); reboot | "
      "look for Xid in dmesg, drain the node, and reset the GPU or reboot "
      "(docs/runbooks/gpu.md#ceemsgpumissing)\n");
  host.context.read_gpus = [](gpu::Vendor /*vendor*/) -> Result<GpuReadings> {
    return fail(ErrorCode::kUnavailable, "nvmlInit_v2: versions differ (18)");
  };
  EXPECT_EQ(of_gpus(Finding::State::kCannot).substr(0, 66),
            "the library of NVIDIA does not work: nvmlInit_v2: versions differ ");
}

TEST(Doctor, DoubtsGpusAsTheServiceDoes) {
  Host host;
  host.remove("bin/nvidia-smi");
  GpuReadings readings;
  for (const char* const index : {"0", "1"}) {
    gpu::DeviceState& gpu = readings.first.emplace_back();
    gpu.uuid = std::string("GPU-") + index;
    gpu.index = index;
    gpu.power_watts = 65'535;
    gpu.energy_joules = *index;
    readings.second.push_back(gpu);
    readings.second.back().energy_joules = 450 + *index;
  }
  host.context.read_gpus = [&](gpu::Vendor /*vendor*/) -> Result<GpuReadings> { return readings; };
  const auto of_gpus = [&host] {
    std::vector<std::string> texts;
    for (const Finding& finding : examine(host.context)) {
      if (finding.collector == "gpu") {
        texts.push_back(std::string(to_string(finding.state)) + ": " + finding.cause);
      }
    }
    return texts;
  };
  const std::string works = "works: 2 GPUs of NVIDIA, read through its library";
  const std::string doubt =
      " is not believed (all its bits are set, so it has no value): its counter is used";
  EXPECT_THAT(of_gpus(),
              ElementsAre(works + "; the power of 0" + doubt + "; the power of 1" + doubt));
  readings.second[1].energy_joules.reset();
  EXPECT_THAT(of_gpus(), ElementsAre("cannot: GPU 1 (GPU-1) of NVIDIA is not believed: all its "
                                     "bits are set, so it has no value",
                                     HasSubstr("works: 1 GPUs of NVIDIA")));
  for (std::size_t i = 0; i < 2; ++i) {
    readings.first[i].power_watts = readings.second[i].power_watts = 300;
    readings.second[i].energy_joules = 900;
  }
  EXPECT_THAT(of_gpus(), ElementsAre(works + "; the energy counter of 1 is that of another GPU: "
                                             "its power is used"));
  readings.second[1].power_watts.reset();
  EXPECT_THAT(of_gpus(), ElementsAre("cannot: GPU 1 (GPU-1) of NVIDIA is not believed: its energy "
                                     "counter is that of another GPU, and it shows no power",
                                     HasSubstr("works: 1 GPUs of NVIDIA")));
}

TEST(Doctor, SaysWhatSensorsAndSocketsShow) {
  Host host;
  host.write("sys/class/hwmon/hwmon0/power2_input", "0\n");
  host.write("sys/class/hwmon/hwmon0/power2_input_lowest", "0\n");
  EXPECT_THAT(as_text(examine(host.context)),
              HasSubstr("; without a power now: " + host.at("sys/class/hwmon/hwmon0/power2_input") +
                        " (0 uW)\n"));
  host.context.read_hsmp = []() -> Result<std::vector<hsmp::Socket>> {
    return std::vector<hsmp::Socket>{{.number = 0, .power_watts = 181.5},
                                     {.number = 1, .power_watts = 160}};
  };
  EXPECT_THAT(as_text(examine(host.context)), HasSubstr("2 sockets draw 342 W\n"));
}

TEST(Doctor, SaysHowInstancesOfPermutedGpusAreKnown) {
  Host host;
  std::vector<gpu::DeviceState> gpus(2);
  gpus[0].driver_minor = 1;
  gpus[1].driver_minor = 0;
  gpus[1].split = true;
  host.context.read_gpus = [&](gpu::Vendor) -> Result<GpuReadings> {
    return GpuReadings{.first = gpus, .second = gpus};
  };
  EXPECT_THAT(as_text(examine(host.context)),
              HasSubstr("/dev/nvidia<N> are in another order, so the instances of a job are known "
                        "by device files, UUIDs and processes, not by SLURM's numbers alone\n"));
}

TEST(Doctor, SaysWhichReleaseHasTheSameFlags) {
  Host host;
  const auto release = [&host] {
    const Findings findings = examine(host.context);
    EXPECT_EQ(findings.front().collector, "release");
    EXPECT_EQ(findings.front().state, Finding::State::kWorks);
    return findings.front().cause + " | " + findings.front().fix;
  };
  EXPECT_EQ(release(), "CEEMS 0.10.2 to 0.16.1 would start with these flags | ");
  host.context.flags = {"collector.slurm", "collector.ipmi_dcmi"};
  EXPECT_EQ(release(),
            "CEEMS 0.10.2 would start with these flags | --collector.ipmi_dcmi: refused since "
            "0.11.0, which calls it --collector.ipmi");
  host.context.flags = {"collector.ipmi", "collector.energy"};
  EXPECT_EQ(release(),
            "CEEMS 0.11.0 to 0.16.1 would start with these flags, except those that only this "
            "program has | --collector.ipmi: unknown before 0.11.0; --collector.energy: this "
            "program has it, CEEMS does not");
}

struct Fault {
  const char* name;
  std::function<void(Host&)> seed;
  const char* collector;
  const char* cause;
  const char* fix;
};

class DoctorFault : public ::testing::TestWithParam<Fault> {};

TEST_P(DoctorFault, IsNamedWithCauseAndFix) {
  Host host;
  GetParam().seed(host);
  const Findings faults = faults_of(host);
  ASSERT_EQ(faults.size(), 1U) << as_text(faults);
  EXPECT_EQ(faults[0].collector, GetParam().collector);
  EXPECT_THAT(faults[0].cause, HasSubstr(GetParam().cause));
  EXPECT_THAT(faults[0].fix, HasSubstr(GetParam().fix));
  EXPECT_EQ(exit_status(faults), 1);
}

const std::vector<Fault> kFaults{
    {"NoProcStat", [](Host& host) { host.remove("proc/stat"); }, "cpu", "proc/stat",
     "--path.procfs"},
    {"StatOfSomethingElse", [](Host& host) { host.write("proc/stat", "hello\n"); }, "cpu",
     "proc/stat", "--path.procfs"},
    {"NoCpuinfo", [](Host& host) { host.remove("proc/cpuinfo"); }, "cpu", "proc/cpuinfo",
     "--path.procfs"},
    {"MalformedMeminfo", [](Host& host) { host.write("proc/meminfo", "a b c d\n"); }, "meminfo",
     "proc/meminfo", "--path.procfs"},
    {"FewOpenFiles", [](Host& host) { host.context.file_limit = 1024; }, "exporter",
     "1024 files may be open, of which connections use up to 256", "LimitNOFILE"},
    {"UnknownUser", [](Host& host) { host.context.run_as_user = "nobody-of-that-name"; },
     "exporter", "unknown user nobody-of-that-name", "useradd"},
    {"TypoInWebConfig", [](Host& host) { host.write("etc/web.yml", "\nbasic_auth_user: {}\n"); },
     "exporter", "web.yml:2: ", "web-config.md"},
    {"NoWebConfig", [](Host& host) { host.remove("etc/web.yml"); }, "exporter", "web.yml",
     "--web.config.file"},
    {"RaplModuleNotLoaded", [](Host& host) { host.remove("sys/class/powercap"); }, "rapl",
     "powercap", "modprobe intel_rapl_msr"},
    {"RaplForRootOnly",
     [](Host& host) {
       host.privileged = false;
       host.extra_capability = CAP_DAC_OVERRIDE;  // for IPMI
     },
     "rapl", "intel-rapl:0/energy_uj", "CAP_DAC_READ_SEARCH"},
    {"RaplWithoutCounter",
     [](Host& host) { host.remove("sys/class/powercap/intel-rapl:0/energy_uj"); }, "rapl",
     "no zone has a counter", "modprobe"},
    {"RaplZoneUnreadable",
     [](Host& host) {
       const std::string zone = "sys/class/powercap/intel-rapl:1/";
       host.write(zone + "name", "package-1\n");
       host.write(zone + "energy_uj", "garbage\n");
       host.write(zone + "max_energy_range_uj", "100\n");
     },
     "rapl", "1 of 2 zones cannot be read: ", "energy of this part is missing"},
    {"RaplFrozen", [](Host& host) { host.context.rapl_watch = std::chrono::milliseconds(1); },
     "rapl", "stand still while the node works: ", "modprobe"},
    {"BmcDeactivated",
     [](Host& host) {
       host.context.read_ipmi = []() -> Result<double> {
         return fail(ErrorCode::kUnavailable, "power measurement is deactivated");
       };
     },
     "ipmi_dcmi", "but it shows no power: power measurement is deactivated", "activate"},
    {"BmcWithoutReading",
     [](Host& host) { host.context.read_ipmi = []() -> Result<double> { return 0.0; }; },
     "ipmi_dcmi", "the BMC reports no current power", "--collector.redfish"},
    {"PerfEventMissing",
     [](Host& host) {
       host.context.missing_perf_events = [] {
         return std::vector<std::string>{"CpuCycles", "CpuInstr"};
       };
     },
     "perf", "does not have the selected events CpuCycles, CpuInstr", "PMU"},
    {"RedfishWithoutPower",
     [](Host& host) {
       host.context.read_redfish = [](redfish::Config config) -> Result<ChassisPower> {
         return fail(ErrorCode::kNoData, "{}: the service reports no power", config.hostname);
       };
     },
     "redfish", "bmc: the service reports no power", "--collector.ipmi_dcmi"},
    {"NoPowerSensor", [](Host& host) { host.remove("sys/class/hwmon/hwmon0/power1_input"); },
     "hwmon", "hwmon", "--collector.hwmon"},
    {"SensorForRootOnly",
     [](Host& host) { host.write("sys/class/hwmon/hwmon0/power1_input", "1\n", 0400); }, "hwmon",
     "power1_input, and the exporter does not run as root", "chmod a+r"},
    {"SensorWithoutPower",
     [](Host& host) {
       host.write("sys/class/hwmon/hwmon0/power1_input", "4294967295000000\n");
       host.write("sys/class/hwmon/hwmon0/power2_input", "none\n");
     },
     "hwmon", "power1_input (4294967295000000 uW); ", "update the firmware"},
    {"HsmpSilent",
     [](Host& host) {
       host.context.read_hsmp = []() -> Result<std::vector<hsmp::Socket>> {
         return fail(ErrorCode::kUnavailable, "no socket reports its power");
       };
     },
     "amd_hsmp", "no socket reports its power", "enable HSMP in the BIOS"},
    {"CrayWanted", [](Host& host) { host.context.wanted.insert("cray_pm_counters"); },
     "cray_pm_counters", "pm_counters", "--collector.cray_pm_counters"},
    {"CrayGarbage",
     [](Host& host) {
       host.write("sys/cray/pm_counters/power", "none\n");
       host.write("sys/cray/pm_counters/energy", "1 J 1 us\n");
     },
     "cray_pm_counters", "power", "node controller"},
    {"NoHsmp", [](Host& host) { host.remove("dev/hsmp"); }, "amd_hsmp", "no device",
     "modprobe amd_hsmp"},
    {"NoBmc", [](Host& host) { host.remove("dev/ipmi0"); }, "ipmi_dcmi", "no IPMI device",
     "modprobe ipmi_si ipmi_devintf"},
    {"BmcForRootOnly",
     [](Host& host) {
       host.privileged = false;
       host.extra_capability = CAP_DAC_READ_SEARCH;
     },
     "ipmi_dcmi", "only root may open", "CAP_DAC_OVERRIDE"},
    {"NoRedfishConfig", [](Host& host) { host.context.redfish_config.clear(); }, "redfish",
     "no configuration file", "--collector.redfish.config.file"},
    {"RedfishConfigGone", [](Host& host) { host.remove("etc/redfish.yml"); }, "redfish",
     "redfish.yml", "correct the path"},
    {"TypoInRedfishConfig",
     [](Host& host) {
       host.write("etc/redfish.yml", "redfish_collector:\n  protocol: https\n  hostnam: bmc\n");
     },
     "redfish", "redfish.yml:3: ", "correct the file"},
    {"NoTokenForEmaps", [](Host& host) { host.environment.erase("EMAPS_API_TOKEN"); }, "emissions",
     "EMAPS_API_TOKEN", "Environment=EMAPS_API_TOKEN"},
    {"NoRegionForWattTime", [](Host& host) { host.environment.erase("WT_REGION"); }, "emissions",
     "WT_REGION", "Environment=WT_REGION"},
    {"NoNetDev", [](Host& host) { host.remove("proc/net"); }, "netdev", "net/dev",
     "--collector.netdev"},
    {"InfinibandPortUnreadable",
     [](Host& host) { host.write("sys/class/infiniband/mlx5_0/ports/1/state", "what\n"); },
     "infiniband", "mlx5_0", "dmesg"},
    {"MemoryControllerOff",
     [](Host& host) { host.write("cgroup/cgroup.controllers", "cpuset cpu io pids\n"); }, "cgroup",
     "no controller memory", "cgroup_disable=memory"},
    {"NoCgroups", [](Host& host) { host.remove("cgroup"); }, "cgroup", "cgroup does not exist",
     "mount -t cgroup2"},
    {"WrongSubsystem",
     [](Host& host) {
       host.context.cgroup_version = "v1";
       host.context.active_subsystem = "nothing";
     },
     "cgroup", "no hierarchy 'nothing'", "--collector.cgroups.active-subsystem"},
    {"MemoryHierarchyOff",
     [](Host& host) {
       host.context.cgroup_version = "v1";
       host.write("cgroup/cpuacct/tasks", "");
     },
     "cgroup", "no hierarchy 'memory'", "cgroup_enable=memory"},
    {"SlurmWithoutCgroups", [](Host& host) { host.remove("cgroup/system.slice"); }, "slurm",
     "no cgroups of SLURM", "proctrack/cgroup"},
    {"SlurmWithoutMemory",
     [](Host& host) {
       host.write("cgroup/system.slice/slurmstepd.scope/cgroup.controllers", "cpu\n");
     },
     "slurm", "no controller memory", "ConstrainRAMSpace"},
    {"GresForRootOnly",
     [](Host& host) {
       host.write("etc/gres.conf", "", 0600);
       host.write("sys/class/powercap/intel-rapl:0/energy_uj", "5\n", 0444);
       host.privileged = false;
       host.extra_capability = CAP_DAC_OVERRIDE;
     },
     "slurm", "gres.conf is not readable", "chmod a+r"},
    {"LsfWithoutCgroups", [](Host& host) { host.context.wanted.insert("lsf"); }, "lsf",
     "no cgroups of LSF", "LSF_PROCESS_TRACKING"},
    {"OpenpbsWithoutCgroups", [](Host& host) { host.context.wanted.insert("openpbs"); }, "openpbs",
     "no cgroups of OpenPBS", "pbs_cgroups"},
    {"NoVirtualMachines", [](Host& host) { host.remove("cgroup/machine.slice"); }, "libvirt",
     "no cgroups of libvirt", "systemd-machined"},
    {"NoDomainXml", [](Host& host) { host.remove("etc/qemu"); }, "libvirt", "VMs have no UUID",
     "mount the directory"},
    {"NotANodeOfTheCluster",
     [](Host& host) {
       host.remove("cgroup/kubepods.slice");
       host.remove("run/kubelet.sock");
     },
     "k8s", "no cgroups of the kubelet", "/sys/fs/cgroup"},
    {"KubeletWithoutPods",
     [](Host& host) {
       host.remove("cgroup/kubepods.slice/kubepods-pod1.slice");
       host.write("cgroup/kubepods.slice/cgroup.procs", "");
       host.write("proc/812/comm", "kubelet\n");
     },
     "k8s", "/cgroup/kubepods.slice, although this runs: kubelet (process 812)", "systemd-cgls"},
    {"KubeletSocketWithoutPods", [](Host& host) { host.remove("cgroup/kubepods.slice"); }, "k8s",
     "/cgroup, although this runs: /", "systemd-cgls"},
    {"SlurmdWithoutCgroups",
     [](Host& host) {
       host.remove("cgroup/system.slice");
       host.write("proc/77/comm", "slurmd\n");
     },
     "slurm", "/cgroup, although this runs: slurmd (process 77)", "proctrack/cgroup"},
    {"LibvirtWithoutVms",
     [](Host& host) {
       host.remove("cgroup/machine.slice");
       host.write("run/libvirt/virtqemud-sock", "");
     },
     "libvirt", "/run/libvirt/virtqemud-sock", "instance-"},
    {"NoKubeletSocket", [](Host& host) { host.remove("run/kubelet.sock"); }, "k8s",
     "GPUs of pods are unknown", "pod-resources"},
    {"ParanoidKernel",
     [](Host& host) {
       host.write("proc/sys/kernel/perf_event_paranoid", "4\n");
       host.write("sys/class/powercap/intel-rapl:0/energy_uj", "5\n", 0444);
       host.privileged = false;
       host.extra_capability = CAP_DAC_OVERRIDE;
     },
     "perf", "perf_event_paranoid is 4", "sysctl kernel.perf_event_paranoid=2"},
    {"KernelOfDebian",
     [](Host& host) {
       host.write("proc/sys/kernel/perf_event_paranoid", "3\n");
       host.write("proc/version",
                  "Linux version 6.1.0-56-amd64 (debian-kernel@lists.debian.org)\n");
     },
     "perf", "even with CAP_PERFMON", "sysctl kernel.perf_event_paranoid=2"},
    {"KernelOfDebianForTheProfiler",
     [](Host& host) {
       host.context.profiling_wanted = true;
       host.context.perf_wanted = false;
       host.write("proc/sys/kernel/perf_event_paranoid", "3\n");
       host.write("proc/version", "Linux version 6.8.0-31-generic (buildd@lcy02) #31-Ubuntu SMP\n");
     },
     "profiling", "even with CAP_PERFMON", "sysctl kernel.perf_event_paranoid=2"},
    {"NoTypeInformation",
     [](Host& host) {
       host.context.ebpf_wanted = true;
       host.remove("sys/kernel/btf");
     },
     "ebpf", "no type information", "CONFIG_DEBUG_INFO_BTF"},
    {"LockedDown",
     [](Host& host) {
       host.context.ebpf_wanted = true;
       host.write("sys/kernel/security/lockdown", "none integrity [confidentiality]\n");
     },
     "ebpf", "locked down", "lockdown=integrity"},
    {"NoCapabilityForPrograms",
     [](Host& host) {
       host.context.ebpf_wanted = true;
       host.context.perf_wanted = false;
       host.write("sys/class/powercap/intel-rapl:0/energy_uj", "5\n", 0444);
       host.privileged = false;
       host.extra_capability = CAP_DAC_OVERRIDE;
     },
     "ebpf", "capabilities to load programs", "ebpf.conf"},
    {"NoTypeInformationForTheProfiler",
     [](Host& host) {
       host.context.profiling_wanted = true;
       host.remove("sys/kernel/btf");
     },
     "profiling", "no type information", "CONFIG_DEBUG_INFO_BTF"},
    {"NoCapabilityForTheProfiler",
     [](Host& host) {
       host.write("sys/class/powercap/intel-rapl:0/energy_uj", "5\n", 0444);
       host.privileged = false;
       host.extra_capability = CAP_DAC_OVERRIDE;
       host.context.profiling_wanted = true;
       host.context.perf_wanted = false;
     },
     "profiling", "capabilities to load programs", "profiling.conf"},
    {"NvidiaDriverNotLoaded", [](Host& host) { host.remove("dev/nvidiactl"); }, "gpu",
     "1 GPUs of NVIDIA", "modprobe nvidia"},
    {"NoNvidiaSmi", [](Host& host) { host.remove("bin/nvidia-smi"); }, "gpu",
     "no program nvidia-smi", "--collector.gpu.nvidia-smi-path"},
    {"AmdDriverNotLoaded",
     [](Host& host) { host.write("sys/bus/pci/devices/0000:3b:00.0/vendor", "0x1002\n"); }, "gpu",
     "1 GPUs of AMD", "modprobe amdgpu"},
};

INSTANTIATE_TEST_SUITE_P(All, DoctorFault, ::testing::ValuesIn(kFaults), [](const auto& param) {
  return std::string(param.param.name);
});

TEST(Doctor, EbpfWorksOnAKernelWithTypeInformation) {
  Host host;
  host.context.ebpf_wanted = true;
  for (const Finding& finding : examine(host.context)) {
    if (finding.collector == "ebpf") {
      EXPECT_EQ(finding.state, Finding::State::kWorks) << finding.cause;
      return;
    }
  }
  FAIL() << "no finding on eBPF";
}

TEST(Doctor, PrintsJson) {
  const Findings findings{{"rapl", Finding::State::kCannot, "a \"b\"\n", "c\\d"},
                          {"cpu", Finding::State::kWorks, "fine", ""}};
  EXPECT_EQ(as_json(findings),
            R"({"findings":[{"collector":"rapl","state":"cannot","cause":"a \"b\"\n",)"
            R"("fix":"c\\d"},{"collector":"cpu","state":"works","cause":"fine","fix":""}],)"
            "\"cannot\":1}\n");
}

TEST(Doctor, PrintsALineForEachFindingAndOneForItsFix) {
  const Findings findings{{"rapl", Finding::State::kCannot, "no counter", "modprobe x"},
                          {"cpu", Finding::State::kWorks, "fine", ""}};
  EXPECT_EQ(as_text(findings),
            "rapl  cannot  no counter\n"
            "              -> modprobe x\n"
            "cpu   works   fine\n"
            "\n1 work, 0 off, 1 cannot work\n");
}

}  // namespace
}  // namespace ceems::exporter
