#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "exporter/gpu/device.h"

// The lines of SLURM's gres.conf(5) that share GPUs: those with Name=shard or Name=mps.
namespace ceems::exporter::gpu {

/// One such line.
struct GresLine {
  std::string type;                ///< "shard" or "mps"
  std::vector<std::string> nodes;  ///< NodeName, expanded, lower case; empty: every node
  std::vector<std::string> files;  ///< device files in order, brackets not expanded
  std::uint64_t count = 0;         ///< shares of each device; 0 if it is not a plain number
};

/// Strips comments. Keys and values are case-insensitive. Other lines are ignored, whatever they
/// contain.
std::vector<GresLine> parse_gres_conf(std::string_view text);

/// /proc/driver/nvidia-caps/mig-minors: the instance that the capability device with this minor
/// opens.
struct MigMinor {
  std::uint64_t capability = 0;        ///< N of /dev/nvidia-caps/nvidia-cap<N>
  std::uint64_t gpu = 0;               ///< driver minor of the GPU
  std::uint64_t gpu_instance = 0;      ///
  std::uint64_t compute_instance = 0;  ///< 0 if the line is for the GPU instance
};
std::vector<MigMinor> parse_mig_minors(std::string_view text);

/// The names of nodes in a host list such as "n[1-3,07],login" (at most 65536), in lower case.
/// Unbalanced brackets and invalid ranges are taken literally.
std::vector<std::string> expand_nodes(std::string_view text);

/// The numbers in a list such as "0-3,8" (at most 4096). Empty for an invalid list.
std::vector<std::uint64_t> expand_numbers(std::string_view text);

/// The shares that each device and instance has, in the order of the devices.
struct AvailableShares {
  bool sharing = false;  ///< shards or MPS are configured for this node
  struct OfDevice {
    std::uint64_t device = 0;
    std::vector<std::uint64_t> instances;
  };
  std::vector<OfDevice> devices;
};

/// `node_names` are the names of this host in lower case; if empty, every line counts. Of several
/// /dev/nvidiaN parts in one list only the last counts, as in the reference, unless `every_file`.
AvailableShares available_shares(const std::vector<GresLine>& lines,
                                 const std::vector<MigMinor>& mig_minors,
                                 const std::vector<std::string>& node_names,
                                 const std::vector<Device>& devices,
                                 bool every_file = false);

}  // namespace ceems::exporter::gpu
