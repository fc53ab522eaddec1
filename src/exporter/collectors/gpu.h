#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "exporter/collector.h"
#include "exporter/gpu/claim/claim.h"
#include "exporter/gpu/inventory/inventory.h"
#include "exporter/gpu/library/gpu_library.h"

namespace ceems::exporter {

struct GpuCollectorOptions {
  std::chrono::milliseconds interval{1000};
  std::chrono::milliseconds max_age{30'000};
  std::chrono::milliseconds patience{2000};    ///< time to wait at the end for a call in progress
  std::chrono::milliseconds first_wait{2000};  ///< time to wait at the start for the first reading
};

/// Serves the libraries' readings of the GPUs and of the processes on them, and the units among
/// `units` to which these belong. Provides the GPUs as devices. `inventory` may be null; GPUs then
/// have the numbers of the libraries.
std::unique_ptr<Collector> make_gpu_collector(
    const CollectorContext& context,
    const std::vector<std::shared_ptr<UnitSource>>& units,
    const GpuCollectorOptions& options,
    std::vector<std::unique_ptr<gpu::GpuLibrary>> libraries,
    std::shared_ptr<gpu::Inventory> inventory,
    std::shared_ptr<gpu::ProcessList> processes);

}  // namespace ceems::exporter
