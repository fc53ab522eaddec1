#include <algorithm>
#include <chrono>
#include <cstddef>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "exporter/doctor/doctor.h"
#include "exporter/doctor/report.h"
#include "exporter/energy/meter/source_gate.h"
#include "exporter/gpu/device_energy.h"
#include "exporter/gpu/inventory/device_names.h"
#include "exporter/gpu/inventory/lost.h"
#include "exporter/gpu/inventory/sysfs.h"
#include "os/command.h"

namespace ceems::exporter {
namespace {

constexpr auto kGpuPause = std::chrono::milliseconds(1500);

struct VendorNeeds {
  gpu::Vendor vendor;
  const char* name;
  const char* device;  ///< below /dev; created by the driver
  const char* driver;  ///< what to do if it is missing
  std::vector<std::string> tools;
  const char* package;
};

/// "0", or the uuid of a GPU without a number.
std::string name_of(const gpu::DeviceState& device) {
  return device.index.empty() ? device.uuid : device.index;
}

bool stands_still(const gpu::DeviceState& before, const gpu::DeviceState& now) {
  constexpr double kBusyWatts = 5;  // less may be below the counter's step
  return now.energy_joules && now.energy_joules == before.energy_joules &&
         std::min(now.power_watts.value_or(0), before.power_watts.value_or(0)) > kBusyWatts;
}

/// What the service does not believe of a GPU.
struct Disbelief {
  std::string power;     ///< why its power is not believed; empty: it is, or there is none
  bool mirrors = false;  ///< its counter is that of another GPU
  /// Nothing is left that shows its energy.
  bool all = false;
};

Disbelief disbelief(const GpuReadings& readings, std::size_t place) {
  const gpu::DeviceState& device = readings.second[place];
  gpu::DeviceCounter counter;
  energy::DeviceSample sample;
  const Clock::SteadyTime begin{};
  if (place < readings.first.size()) {
    counter.advance(readings.first[place], begin, sample);
  }
  counter.advance(device, begin + kGpuPause, sample);
  const auto doubt = counter.doubt();
  Disbelief found{.power = doubt ? std::string(energy::explain(*doubt)) : "",
                  .mirrors = gpu::mirrors(readings.second, place)};
  const bool counts = device.energy_joules && !found.mirrors;
  found.all = !counts && (!found.power.empty() || (found.mirrors && !device.power_watts));
  return found;
}

/// What is odd about GPUs that work, each beginning with "; ".
std::string oddities(const GpuReadings& readings) {
  std::vector<std::string> still;
  std::vector<std::string> doubted;
  std::set<std::string> modules;
  bool ordered = true;
  const bool split = std::ranges::any_of(readings.second, &gpu::DeviceState::split);
  for (std::size_t i = 0; i < readings.second.size(); ++i) {
    const gpu::DeviceState& device = readings.second[i];
    if (i < readings.first.size() && stands_still(readings.first[i], device)) {
      still.push_back(name_of(device));
    }
    if (const auto found = disbelief(readings, i); device.lost.empty() && !found.all) {
      if (!found.power.empty()) {
        doubted.push_back(fmt::format("the power of {} is not believed ({}): its counter is used",
                                      name_of(device), found.power));
      } else if (found.mirrors) {
        doubted.push_back(fmt::format(
            "the energy counter of {} is that of another GPU: its power is used", name_of(device)));
      }
    }
    if (!device.module.empty()) {
      modules.insert(device.module);
    }
    ordered = ordered && device.driver_minor.value_or(i) == i;
  }
  std::string text;
  if (!still.empty()) {
    text += fmt::format("; the energy counter of {} stands still: its power is used",
                        fmt::join(still, ", "));
  }
  for (const std::string& doubt : doubted) {
    text += "; " + doubt;
  }
  if (!ordered) {
    text += split ? "; /dev/nvidia<N> are in another order, so the instances of a job are known "
                    "by device files, UUIDs and processes, not by SLURM's numbers alone"
                  : "; /dev/nvidia<N> are in another order, which SLURM's numbers follow";
  }
  if (std::ranges::any_of(readings.second, &gpu::DeviceState::mps)) {
    text += "; MPS shares GPUs, and its clients count as their users";
  }
  if (!modules.empty()) {
    text += fmt::format("; {} modules of two dies have one meter each", modules.size());
  }
  return text;
}

/// False if there is no library.
bool examine_library(const DoctorContext& context, const VendorNeeds& needs, Report& report) {
  const auto readings = context.read_gpus
                            ? context.read_gpus(needs.vendor)
                            : Result<GpuReadings>(fail(ErrorCode::kNotFound, "no library"));
  if (!readings) {
    if (readings.error().code != ErrorCode::kNotFound) {
      report.cannot(
          fmt::format("the library of {} does not work: {}", needs.name, readings.error().message),
          "see docs/runbooks/gpu.md#ceemsgpumissing");
      return true;
    }
    return false;
  }
  std::size_t count = 0;
  for (std::size_t i = 0; i < readings->second.size(); ++i) {
    const gpu::DeviceState& device = readings->second[i];
    if (device.lost.empty()) {
      const Disbelief found = disbelief(*readings, i);
      count += found.all ? 0 : 1;
      if (found.all) {
        report.cannot(
            fmt::format("GPU {} ({}) of {} is not believed: {}", name_of(device), device.uuid,
                        needs.name,
                        found.power.empty() ? "its energy counter is that of another GPU, and it "
                                              "shows no power"
                                            : found.power),
            "update the driver; until then its energy is missing "
            "(docs/energy.md#which-readings-are-believed)");
      }
      continue;
    }
    report.cannot(fmt::format("GPU {} ({}) of {} does not answer: {}", name_of(device), device.uuid,
                              needs.name, device.lost),
                  "look for Xid in dmesg, drain the node, and reset the GPU or reboot "
                  "(docs/runbooks/gpu.md#ceemsgpumissing)");
  }
  if (count > 0) {
    report.works(fmt::format("{} GPUs of {}, read through its library{}", count, needs.name,
                             oddities(*readings)));
  }
  return count > 0 || !readings->second.empty();
}

void examine_vendor(const DoctorContext& context,
                    const VendorNeeds& needs,
                    std::ptrdiff_t count,
                    Report report) {
  if (examine_library(context, needs, report) || count == 0) {
    return;
  }
  if (!exists(context.dev / needs.device)) {
    report.cannot(fmt::format("{} GPUs of {} on the PCI bus, but no {}; the driver is not loaded",
                              count, needs.name, (context.dev / needs.device).string()),
                  needs.driver);
    return;
  }
  for (const std::string& tool : needs.tools) {
    if (const auto path = os::find_program(tool, context.search_path)) {
      report.works(fmt::format("{} GPUs of {}, {}", count, needs.name, *path));
      return;
    }
  }
  report.cannot(fmt::format("{} GPUs of {}, but its library cannot be loaded, and the PATH has no "
                            "program {}",
                            count, needs.name, fmt::join(needs.tools, " or ")),
                needs.package);
}

/// Whether the environment of jobs, which users control, counts if there is no better evidence.
void examine_evidence(const DoctorContext& context, Report report) {
  if (report.wanted() && context.gpu_hints_count && !exists(context.gpu_map_directory)) {
    const bool unified = exists(context.paths.cgroup / "cgroup.controllers");
    report.works(
        fmt::format(
            "GPUs of jobs; the environment of a job's processes decides which it holds if {}",
            unified ? "no process on the GPU shows it, because the devices that a job may open "
                      "cannot be read with cgroup v2"
                    : "neither a device cgroup nor a process on the GPU shows it"),
        fmt::format("have the prolog write {}/JOBID (docs/exporter/collectors.md), or "
                    "--collector.slurm.gpu-evidence=trusted",
                    context.gpu_map_directory.empty() ? "DIRECTORY" : context.gpu_map_directory));
  }
}

}  // namespace

Result<GpuReadings> read_gpus(const host::Paths& paths,
                              gpu::Vendor vendor,
                              const std::string& path) {
  CEEMS_TRY(library, gpu::load_library(vendor, path, paths.sys));
  CEEMS_TRY(library->start());
  GpuReadings readings;
  CEEMS_TRY(first, library->read(true));
  std::this_thread::sleep_for(kGpuPause);
  CEEMS_TRY(second, library->read(true));
  readings.first = std::move(first);
  readings.second = std::move(second);
  gpu::identify_lost(paths, readings.first);
  gpu::identify_lost(paths, readings.second);
  gpu::name_devices({}, readings.second);
  return readings;
}

void examine_gpus(const DoctorContext& context, Findings& findings) {
  const auto gpus = gpu::pci_gpus(context.paths);
  const std::vector<VendorNeeds> all{
      {.vendor = gpu::Vendor::kNvidia,
       .name = "NVIDIA",
       .device = "nvidiactl",
       .driver = "modprobe nvidia (install the driver, or use --collector.gpu.type=nogpu)",
       .tools = {"nvidia-smi"},
       .package = "install nvidia-smi, or give its path with --collector.gpu.nvidia-smi-path"},
      {.vendor = gpu::Vendor::kAmd,
       .name = "AMD",
       .device = "kfd",
       .driver = "modprobe amdgpu (or use --collector.gpu.type=nogpu for a plain display)",
       .tools = {"amd-smi", "rocm-smi"},
       .package = "install amd-smi-lib, or give its path with --collector.gpu.amd-smi-path"},
  };
  bool any = false;
  for (const VendorNeeds& needs : all) {
    const auto count = std::ranges::count(gpus, needs.vendor, &gpu::PciGpu::vendor);
    if (count > 0 || context.gpu_libraries.contains(needs.vendor)) {
      any = true;
      examine_vendor(context, needs, count, Report(context, findings, "gpu"));
    }
  }
  if (any) {
    examine_evidence(context, Report(context, findings, "slurm"));
  } else {
    Report(context, findings, "gpu")
        .absent("no NVIDIA or AMD GPU on the PCI bus", "remove --collector.gpu");
  }
}

}  // namespace ceems::exporter
