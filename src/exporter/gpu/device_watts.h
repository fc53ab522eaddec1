#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "exporter/energy/account/unit_watts.h"
#include "exporter/energy/meter/device_meters.h"

namespace ceems::exporter::gpu {

/// Learns how many watts each unit on one GPU draws per part of the GPU that it uses: a kernel that
/// multiplies matrices may draw twice as much as one that waits for memory. When units start, stop
/// or rest, the power of the GPU changes with them; a constant per SM does not do (arXiv
/// 2501.17752). The filter is that of the units on a socket (energy::UnitWatts). For split GPUs,
/// whose instances count their activity; sampled use is not exact enough (bench/RESULTS.md). Not
/// thread-safe.
class DeviceWatts {
 public:
  DeviceWatts();

  /// Takes one sample of the GPU, and replaces what units used by the watts that it was worth.
  /// Leaves samples without new energy alone.
  void weigh(energy::DeviceSample& sample);

 private:
  energy::UnitWatts watts_;
  std::map<std::string, std::uint64_t> keys_;  // of the holders, by manager, node and uuid
  std::uint64_t last_key_ = 0;
  std::vector<energy::UnitWatts::Use> uses_;
};

}  // namespace ceems::exporter::gpu
