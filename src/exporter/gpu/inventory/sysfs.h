#pragma once

#include <cstdint>
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

/// The properties of a GPU or partition in <sys>/class/kfd/kfd/topology/nodes/N/properties.
struct KfdNode {
  std::uint64_t render_minor = 0;
  std::uint64_t unique_id = 0;  ///< the same for all partitions of a GPU
  std::uint64_t compute_units = 0;
};

/// Nothing for a CPU, and if a number is missing or impossible.
std::optional<KfdNode> parse_kfd_properties(std::string_view text);

/// Adds CU counts, render minors, ids of partitions and names in sysfs from the topology of the KFD
/// driver. What cannot be found out stays unchanged.
void add_amd_sysfs(const host::Paths& paths, std::vector<Device>& devices);

/// GPUs of Intel that a kernel driver uses (i915, xe), numbered by PCI address. Graphics that is
/// part of the processor (device 2 of bus 0) is left out. A GPU is identified by its address. SM
/// counts are unknown.
std::vector<Device> intel_devices(const host::Paths& paths);

/// A text that changes whenever GPUs appear, disappear, or are split differently: names on the PCI
/// bus, MIG instances that NVIDIA's driver shows below <proc>/driver/nvidia/capabilities, and
/// partitions of AMD GPUs in sysfs (Documentation/gpu/amdgpu). It reads some hundred names at most
/// and runs no tool, so it can be called often.
std::string gpu_layout(const host::Paths& paths);

}  // namespace ceems::exporter::gpu
