#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "exporter/gpu/device.h"
#include "host/paths.h"

namespace ceems::exporter::gpu {

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

}  // namespace ceems::exporter::gpu
