#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "exporter/gpu/claim/claim.h"
#include "exporter/gpu/claim/gres_conf.h"
#include "exporter/gpu/device.h"

namespace ceems::exporter::gpu {

/// A claim on a GPU or an instance.
struct Holder {
  std::size_t claim = 0;     ///< index in the list of claims
  std::uint64_t shares = 0;  ///< 0 if it is not shared by numbers
};

/// The holders of one GPU or instance.
struct Holders {
  std::vector<Holder> units;
  std::uint64_t shares = 0;  ///< of all units

  /// Value of ceems_compute_unit_gpu_index_flag: its own shares divided by all shares, or 1 if
  /// either is unknown.
  [[nodiscard]] double flag(const Holder& holder) const;
  /// The holder's fraction of the GPU. All fractions sum to 1.
  [[nodiscard]] double part(const Holder& holder) const;
};

struct DeviceHolders {
  Holders device;
  std::vector<Holders> instances;
};

/// Finds the GPUs and instances that the claims name, in the order of the devices, and distributes
/// shares: claims on the fewest GPUs come first, and each gets at most the remaining shares. Claims
/// whose only evidence is the environment get no GPU or instance that another unit holds with
/// better evidence. If it is shared by numbers, they get the shares that the others leave.
std::vector<DeviceHolders> attach(const std::vector<Device>& devices,
                                  const std::vector<Claim>& claims,
                                  const AvailableShares& available);

}  // namespace ceems::exporter::gpu
