#include "exporter/doctor/doctor.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exporter/doctor/doctor_test_support.h"

namespace ceems::exporter {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

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
