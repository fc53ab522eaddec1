#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "exporter/gpu/claim/claim.h"
#include "exporter/gpu/claim/gres_conf.h"
#include "exporter/gpu/device.h"

namespace ceems::exporter::gpu {

/// A claim that fits a GPU or an instance.
struct Holder {
  std::size_t claim = 0;     ///< position in the list of claims
  std::uint64_t shares = 0;  ///< 0: not shared by numbers
};

/// Who holds one GPU or instance.
struct Holders {
  std::vector<Holder> units;
  std::uint64_t shares = 0;  ///< of all units

  /// Value of ceems_compute_unit_gpu_index_flag: own shares by all, or 1 where either is unknown.
  [[nodiscard]] double flag(const Holder& holder) const;
  /// Part of the GPU that is the holder's; all parts add up to 1.
  [[nodiscard]] double part(const Holder& holder) const;
};

struct DeviceHolders {
  Holders device;
  std::vector<Holders> instances;
};

/// Finds the GPUs and instances that claims name, in the order of the devices, and distributes
/// shares: claims of the fewest GPUs come first, and each gets at most what is left. Claims that
/// are known from the environment alone get no GPU or instance that another unit holds for a better
/// reason; where that one is shared by numbers, they get of the shares what the others leave.
std::vector<DeviceHolders> attach(const std::vector<Device>& devices,
                                  const std::vector<Claim>& claims,
                                  const AvailableShares& available);

}  // namespace ceems::exporter::gpu
