#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "exporter/gpu/device.h"

namespace ceems::exporter::gpu {

/// One entry of --collector.slurm.gpu-order-map: SLURM's index of a GPU or of an instance of one.
struct OrderEntry {
  std::string slurm_index;
  std::uint64_t position = 0;                      ///< Device::position
  std::optional<std::uint64_t> gpu_instance = {};  ///< Instance::gpu_instance
};

/// "0:0,1:3.5": comma-separated SLURM index, ":", position, and "." with the id of an instance.
/// Entries of another form are skipped.
std::vector<OrderEntry> parse_order_map(std::string_view text);

/// Gives the named devices and instances their SLURM index; the others keep theirs.
void apply_order_map(const std::vector<OrderEntry>& order, std::vector<Device>& devices);

}  // namespace ceems::exporter::gpu
