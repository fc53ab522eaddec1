#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "exporter/gpu/device.h"

// What nvidia-smi prints. Text in, structs out; nothing is run.
namespace ceems::exporter::gpu {

/// `nvidia-smi --query --xml-format`. GPUs and MIG devices are numbered through in the order of the
/// file; a GPU in MIG mode has no number of its own. kParse: no XML of nvidia-smi, or a MIG device
/// without its numbers.
Result<std::vector<Device>> parse_nvidia_query(std::string_view xml);

/// A MIG device in `nvidia-smi -L`.
struct MigUuid {
  std::string gpu_uuid;
  std::uint64_t number = 0;  ///< Instance::number
  std::string uuid;
};
std::vector<MigUuid> parse_nvidia_list(std::string_view text);
/// Sets Instance::uuid; instances that are not listed keep an empty one.
void set_mig_uuids(const std::vector<MigUuid>& uuids, std::vector<Device>& devices);

/// A vGPU in `nvidia-smi vgpu --query`.
struct VgpuEntry {
  PciAddress gpu;
  std::string mdev;
  std::optional<std::uint64_t> gpu_instance = {};
};
std::vector<VgpuEntry> parse_vgpu_query(std::string_view text);
/// Sets the mdevs of all GPUs that have an entry; those of other GPUs are kept.
void set_mdevs(const std::vector<VgpuEntry>& entries, std::vector<Device>& devices);

}  // namespace ceems::exporter::gpu
