#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "exporter/gpu/device.h"
#include "host/paths.h"

namespace ceems::exporter::gpu {

/// A display controller or accelerator on the PCI bus.
struct PciGpu {
  std::string name;  ///< name of its directory below <sys>/bus/pci/devices
  Vendor vendor = Vendor::kNvidia;
};

/// Vendor of a device by the contents of its files `class` and `vendor`. Nothing if it is not a
/// GPU.
std::optional<Vendor> gpu_vendor(std::string_view device_class, std::string_view vendor);

/// GPUs of the known vendors, sorted by name. Devices whose files cannot be read are left out.
std::vector<PciGpu> pci_gpus(const host::Paths& paths);

}  // namespace ceems::exporter::gpu
