#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "exporter/gpu/device.h"

// Parsers of the output of NVIDIA's and AMD's tools. They take text and run nothing. CU counts and
// ids of AMD's partitions are not in it; see sysfs.h.
namespace ceems::exporter::gpu {

/// `amd-smi static -a -B -b -p --json`: an array of GPUs and partitions, or an object with this
/// array as a member. Numbers may be text, and "N/A" counts as absent. Errors: kParse.
Result<std::vector<Device>> parse_amd_smi(std::string_view text);

/// `rocm-smi --showproductname ... --json`: an object with a member card<N> for each GPU or
/// partition, or an array of such objects. Errors: kParse.
Result<std::vector<Device>> parse_rocm_smi(std::string_view text);

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
