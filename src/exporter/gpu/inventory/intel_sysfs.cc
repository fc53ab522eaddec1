#include "exporter/gpu/inventory/intel_sysfs.h"

#include <algorithm>
#include <string_view>

#include "base/strings.h"
#include "exporter/gpu/inventory/pci_devices.h"
#include "host/read_file.h"

namespace ceems::exporter::gpu {

std::vector<Device> intel_devices(const host::Paths& paths) {
  std::vector<Device> devices;
  for (const PciGpu& gpu : pci_gpus(paths)) {
    const auto address = parse_pci_address(gpu.name);
    if (gpu.vendor != Vendor::kIntel || !address ||
        (address->domain == 0 && address->bus == 0 && address->device == 2)) {
      continue;
    }
    // Without a render node there is no driver, or it is a virtual function for another machine.
    const auto names =
        host::list_directory((paths.sys / "bus/pci/devices" / gpu.name / "drm").string());
    constexpr std::string_view kRender = "renderD";
    for (const std::string& name : names.value_or(std::vector<std::string>{})) {
      const auto minor = name.starts_with(kRender)
                             ? parse_int<unsigned>(std::string_view(name).substr(kRender.size()))
                             : std::nullopt;
      if (!minor) {
        continue;
      }
      Device device;
      device.vendor = Vendor::kIntel;
      device.address = address;
      device.path_name = to_lower(gpu.name);
      device.uuid = device.path_name;
      device.name = "Intel GPU";
      device.render_minor = minor;
      devices.push_back(std::move(device));
      break;
    }
  }
  std::stable_sort(devices.begin(), devices.end(),
                   [](const Device& a, const Device& b) { return a.address < b.address; });
  for (std::size_t i = 0; i < devices.size(); ++i) {
    devices[i].position = i;
    devices[i].index = std::to_string(i);
  }
  return devices;
}

}  // namespace ceems::exporter::gpu
