#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "exporter/collector.h"
#include "exporter/gpu/claim/claim.h"
#include "exporter/gpu/claim/gres_conf.h"
#include "exporter/gpu/claim/slurm_claims.h"
#include "exporter/gpu/inventory/inventory.h"
#include "exporter/sub_collector.h"

namespace ceems::exporter::gpu {

/// Options that only SLURM has.
struct MapOptions {
  std::vector<OrderEntry> order = {};  ///< --collector.slurm.gpu-order-map
  std::vector<GresLine> gres = {};     ///< gres.conf
  std::vector<MigMinor> mig_minors = {};
  bool every_gres_file = false;
};

/// Exports ceems_compute_unit_gpu_index_flag (with `help` as its HELP text) and
/// ceems_compute_unit_gpu_sm_count of one manager's units, and publishes Inventory::assignments().
/// Its name as a sub-collector is empty. start() starts the inventory's thread.
Result<std::unique_ptr<SubCollector>> make_map_collector(const CollectorContext& context,
                                                         std::shared_ptr<Inventory> inventory,
                                                         const std::string& help,
                                                         std::unique_ptr<ClaimSource> claims,
                                                         MapOptions options = {});

}  // namespace ceems::exporter::gpu
