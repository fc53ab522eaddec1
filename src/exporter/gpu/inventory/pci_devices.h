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
  std::string name;  ///< of its directory below <sys>/bus/pci/devices
  Vendor vendor = Vendor::kNvidia;
};

/// Vendor of a device by the texts of its files `class` and `vendor`; nothing for what is no GPU.
std::optional<Vendor> gpu_vendor(std::string_view device_class, std::string_view vendor);

/// GPUs of the known vendors by name; devices whose files cannot be read are left out.
std::vector<PciGpu> pci_gpus(const host::Paths& paths);

}  // namespace ceems::exporter::gpu
