#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "exporter/gpu/device.h"

namespace ceems::exporter::gpu {

/// One entry of --collector.slurm.gpu-order-map: SLURM's index of a GPU or of an instance.
struct OrderEntry {
  std::string slurm_index;
  std::uint64_t position = 0;                      ///< Device::position
  std::optional<std::uint64_t> gpu_instance = {};  ///< Instance::gpu_instance
};

/// Parses "0:0,1:3.5": comma-separated entries of SLURM index, ":", position, and optionally "."
/// with the id of an instance. Entries of any other form are skipped.
std::vector<OrderEntry> parse_order_map(std::string_view text);

/// Sets the SLURM index of the devices and instances in `order`. The others keep theirs.
void apply_order_map(const std::vector<OrderEntry>& order, std::vector<Device>& devices);

}  // namespace ceems::exporter::gpu
