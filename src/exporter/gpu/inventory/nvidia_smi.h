#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "exporter/gpu/device.h"

// Parsers of the output of nvidia-smi. They take text and run nothing.
namespace ceems::exporter::gpu {

/// `nvidia-smi --query --xml-format`. GPUs and MIG devices are numbered in one sequence, in the
/// order of the file. A GPU in MIG mode has no number. kParse: not the XML of nvidia-smi, or a MIG
/// device without its numbers.
Result<std::vector<Device>> parse_nvidia_query(std::string_view xml);

/// A MIG device in `nvidia-smi -L`.
struct MigUuid {
  std::string gpu_uuid;
  std::uint64_t number = 0;  ///< Instance::number
  std::string uuid;
};
std::vector<MigUuid> parse_nvidia_list(std::string_view text);
/// Sets Instance::uuid. Instances that are not listed keep an empty one.
void set_mig_uuids(const std::vector<MigUuid>& uuids, std::vector<Device>& devices);

/// A vGPU in `nvidia-smi vgpu --query`.
struct VgpuEntry {
  PciAddress gpu;
  std::string mdev;
  std::optional<std::uint64_t> gpu_instance = {};
};
std::vector<VgpuEntry> parse_vgpu_query(std::string_view text);
/// Sets the mdevs of all GPUs that have an entry. Other GPUs are left as they are.
void set_mdevs(const std::vector<VgpuEntry>& entries, std::vector<Device>& devices);

}  // namespace ceems::exporter::gpu
