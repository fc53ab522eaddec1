#include <algorithm>

#include <fmt/format.h>

#include "exporter/doctor/doctor.h"
#include "exporter/doctor/report.h"
#include "exporter/gpu/inventory/sysfs.h"
#include "os/command.h"

namespace ceems::exporter {
namespace {

struct VendorNeeds {
  gpu::Vendor vendor;
  const char* name;
  const char* device;  ///< below /dev; created by the driver
  const char* driver;  ///< what to do if it is missing
  std::vector<std::string> tools;
  const char* package;
};

void examine_vendor(const DoctorContext& context,
                    const VendorNeeds& needs,
                    std::ptrdiff_t count,
                    Report report) {
  if (!exists(context.dev / needs.device)) {
    report.cannot(fmt::format("{} GPUs of {} on the PCI bus, but no {}; the driver is not loaded",
                              count, needs.name, (context.dev / needs.device).string()),
                  needs.driver);
    return;
  }
  if (context.has_library && context.has_library(needs.vendor)) {
    report.works(fmt::format("{} GPUs of {}, read through its library", count, needs.name));
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
    report.works(
        "GPUs of jobs; the environment of a job's processes decides which it holds if "
        "neither a device cgroup nor a process on the GPU shows it",
        fmt::format("have the prolog write {}/JOBID (docs/exporter/collectors.md), or "
                    "--collector.slurm.gpu-evidence=trusted",
                    context.gpu_map_directory.empty() ? "DIRECTORY" : context.gpu_map_directory));
  }
}

}  // namespace

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
    if (count > 0) {
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
