#include "exporter/run/own_devices.h"

#include <algorithm>
#include <set>
#include <utility>

#include "exporter/gpu/device.h"
#include "exporter/gpu/inventory/sysfs.h"
#include "host/read_file.h"

namespace ceems::exporter::run {

std::vector<std::unique_ptr<gpu::GpuLibrary>> load_gpu_libraries(const host::Paths& paths) {
  std::set<gpu::Vendor> vendors;
  for (const gpu::PciGpu& device : gpu::pci_gpus(paths)) {
    const auto address = gpu::parse_pci_address(device.name);
    // Graphics that is part of an Intel processor is always there.
    const bool of_processor = device.vendor == gpu::Vendor::kIntel && address &&
                              address->domain == 0 && address->bus == 0 && address->device == 2;
    if (!of_processor) {
      vendors.insert(device.vendor);
    }
  }
  if (host::is_directory((paths.proc / "driver/nvidia/gpus").string())) {
    vendors.insert(gpu::Vendor::kNvidia);
  }
  std::vector<std::unique_ptr<gpu::GpuLibrary>> libraries;
  for (const gpu::Vendor vendor : vendors) {
    if (auto library = gpu::load_library(vendor, {}, paths.sys)) {
      libraries.push_back(*std::move(library));
    }
  }
  return libraries;
}

bool is_reserved(const Job& job, const gpu::DeviceState& device, std::size_t visible) {
  if (!job.managed() || job.gpus.empty() || device.split || !device.lost.empty()) {
    return false;
  }
  const auto is_named = [&](const std::string& name) {
    return name == device.index || name == device.uuid;
  };
  return visible == job.gpus.size() || std::ranges::any_of(job.gpus, is_named);
}

std::vector<const gpu::DeviceState*> OwnDevices::reserved(const gpu::Reading& reading) const {
  std::vector<const gpu::DeviceState*> found;
  for (const gpu::DeviceState& device : reading.devices) {
    if (is_reserved(job_, device, reading.devices.size())) {
      found.push_back(&device);
    }
  }
  return found;
}

void OwnDevices::read(const energy::MeterContext& context,
                      std::span<const energy::ManagerUnits> managers,
                      std::vector<energy::DeviceSample>& samples) {
  const std::size_t first = samples.size();
  energy_.read(context, managers, samples);
  const auto reading = monitor_->latest();
  if (reading == nullptr) {
    return;
  }
  for (const gpu::DeviceState* device : reserved(*reading)) {
    for (energy::DeviceSample& sample : std::span(samples).subspan(first)) {
      if (sample.source.name == device->uuid && sample.holders.empty()) {
        sample.holders.push_back(
            {.manager = job_.manager, .cgrouphostname = {}, .uuid = job_.id, .alloc = 1, .use = 1});
        sample.total_use = std::max(sample.total_use, 1.0);
      }
    }
  }
}

bool OwnDevices::read_use(std::span<const energy::ManagerUnits> managers,
                          std::vector<energy::DeviceUse>& uses) {
  const std::size_t first = uses.size();
  const auto reading = monitor_->latest();
  if (!energy_.read_use(managers, uses) || reading == nullptr) {
    return false;
  }
  const auto before = std::exchange(used_, reading->taken);
  const double seconds =
      before ? std::chrono::duration<double>(reading->taken - *before).count() : 0;
  for (const gpu::DeviceState* device : reserved(*reading)) {
    const auto known = std::span(uses).subspan(first);
    if (std::ranges::find(known, device->uuid, &energy::DeviceUse::device) == known.end()) {
      uses.push_back({.manager = job_.manager,
                      .cgrouphostname = {},
                      .uuid = job_.id,
                      .device = device->uuid,
                      .instance = {},
                      .index = device->index,
                      .seconds = seconds,
                      .busy = device->busy ? device->busy : device->utilisation,
                      .sms = device->activity.sm_active,
                      .memory_bytes = device->memory_used_bytes});
    }
  }
  return true;
}

}  // namespace ceems::exporter::run
