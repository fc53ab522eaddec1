#pragma once

// A node made of files, on which everything works until a test breaks it.

#include <linux/capability.h>
#include <sys/stat.h>

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "exporter/doctor/doctor.h"
#include "testing/temp_dir.h"

namespace ceems::exporter {

inline constexpr const char* kStat = "cpu  1 2 3 4 5 6 7 8 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\n";
inline constexpr const char* kCpuinfo =
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
  void remove(const std::string& relative) const { std::filesystem::remove_all(at(relative)); }

  DoctorContext context;
  std::map<std::string, std::string> environment;
  bool privileged = true;
  os::Capability extra_capability = -1;

 private:
  testing::TempDir dir_;
};

inline Findings faults_of(const Host& host) {
  Findings faults;
  for (const Finding& finding : examine(host.context)) {
    if (finding.state == Finding::State::kCannot) {
      faults.push_back(finding);
    }
  }
  return faults;
}
}  // namespace ceems::exporter
