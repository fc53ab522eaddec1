#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// Properties of GPUs, independent of how they were found (inventory.h). Plain values.
namespace ceems::exporter::gpu {

enum class Vendor { kNvidia, kAmd, kIntel };

/// "nvidia", "amd" or "intel", for the log.
std::string_view to_string(Vendor vendor);

/// Address of a device on the PCI bus.
struct PciAddress {
  std::uint16_t domain = 0;
  std::uint16_t bus = 0;
  std::uint16_t device = 0;
  std::uint16_t function = 0;

  auto operator<=>(const PciAddress&) const = default;
};

/// The first occurrence of hex:hex:hex.hex in the text, each number within 16 bits
/// ("00000000:AD:00.0" equals "0:ad:0.0"). Nothing for any other text.
std::optional<PciAddress> parse_pci_address(std::string_view text);

/// "0000:3b:00.0".
std::string to_string(const PciAddress& address);

/// A part of a GPU that is assigned separately: a MIG device or a partition of an AMD GPU.
struct Instance {
  std::string index = {};          ///< label `index`: number among all GPUs and instances
  std::uint64_t number = 0;        ///< MIG device index or partition id within the GPU
  std::string uuid = {};           ///< MIG-..., or the id of AMD's device plugin; empty if unknown
  std::uint64_t gpu_instance = 0;  ///< MIG GPU instance id or partition id: label `gpuiid`
  std::uint64_t compute_instance = 0;         ///< MIG only
  std::uint64_t sm_count = 0;                 ///< SMs or CUs; 0: unknown
  std::optional<unsigned> render_minor = {};  ///< N of /dev/dri/renderD<N>
  std::vector<std::string> mdevs = {};        ///< UUIDs of its vGPUs

  bool operator==(const Instance&) const = default;
};

/// A physical GPU.
struct Device {
  Vendor vendor = Vendor::kNvidia;
  std::uint64_t position = 0;  ///< in the vendor's list, from 0; the reference calls it minor
  std::optional<std::uint64_t> driver_minor = {};  ///< N of /dev/nvidia<N>
  std::string index = {};                          ///< label `index`; empty for a split GPU
  std::string uuid = {};  ///< label `gpuuuid`: GPU-..., serial of an AMD board, or the address
  std::string name = {};  ///< product name
  std::optional<PciAddress> address = {};
  std::string path_name = {};  ///< address as written by its vendor, lower case; or name in sysfs
  std::uint64_t sm_count = 0;  ///< SMs or CUs; 0: unknown
  std::optional<unsigned> render_minor = {};
  bool split = false;                   ///< only its instances are assigned
  bool vgpu = false;                    ///< can have vGPUs
  bool lost = false;                    ///< present or known, but it does not answer
  std::vector<std::string> mdevs = {};  ///< UUIDs of vGPUs that are not on an instance
  std::vector<Instance> instances = {};

  bool operator==(const Device&) const = default;
};

}  // namespace ceems::exporter::gpu
