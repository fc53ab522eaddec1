#include <algorithm>

#include <fmt/format.h>

#include "exporter/doctor/doctor.h"
#include "exporter/doctor/report.h"
#include "exporter/gpu/pci_devices.h"
#include "os/command.h"

namespace ceems::exporter {
namespace {

struct VendorNeeds {
  gpu::Vendor vendor;
  const char* name;
  const char* device;  ///< below /dev: made by the driver
  const char* driver;  ///< what to do without it
  std::vector<std::string> tools;
  const char* package;
};

void examine_vendor(const DoctorContext& context,
                    const VendorNeeds& needs,
                    std::ptrdiff_t count,
                    Report report) {
  if (!exists(context.dev / needs.device)) {
    report.cannot(fmt::format("{} GPUs of {} on the PCI bus, but no {}: the driver is not loaded",
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
  report.cannot(fmt::format("{} GPUs of {}, but no program {} on the PATH", count, needs.name,
                            fmt::join(needs.tools, " or ")),
                needs.package);
}

}  // namespace

void examine_gpus(const DoctorContext& context, Findings& findings) {
  const auto gpus = gpu::pci_gpus(context.paths);
  const std::vector<VendorNeeds> all{
      {.vendor = gpu::Vendor::kNvidia,
       .name = "NVIDIA",
       .device = "nvidiactl",
       .driver = "modprobe nvidia (install the driver, or --collector.gpu.type=nogpu)",
       .tools = {"nvidia-smi"},
       .package = "install nvidia-smi, or --collector.gpu.nvidia-smi-path"},
      {.vendor = gpu::Vendor::kAmd,
       .name = "AMD",
       .device = "kfd",
       .driver = "modprobe amdgpu (or --collector.gpu.type=nogpu for a plain display)",
       .tools = {"amd-smi", "rocm-smi"},
       .package = "install amd-smi-lib, or --collector.gpu.amd-smi-path"},
  };
  bool any = false;
  for (const VendorNeeds& needs : all) {
    const auto count = std::ranges::count(gpus, needs.vendor, &gpu::PciGpu::vendor);
    if (count > 0) {
      any = true;
      examine_vendor(context, needs, count, Report(context, findings, "gpu"));
    }
  }
  if (!any) {
    Report(context, findings, "gpu")
        .absent("there is no GPU of NVIDIA or AMD on the PCI bus", "leave --collector.gpu away");
  }
}

}  // namespace ceems::exporter
