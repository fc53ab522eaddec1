// One fault at a time: what the doctor says is wrong, and what helps.
#include <linux/capability.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exporter/doctor/doctor_test_support.h"

namespace ceems::exporter {
namespace {

using ::testing::HasSubstr;

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
}  // namespace
}  // namespace ceems::exporter
