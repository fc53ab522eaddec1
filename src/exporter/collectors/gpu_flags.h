#pragma once

#include <memory>
#include <string>

#include "exporter/collector.h"
#include "exporter/gpu/inventory.h"

namespace ceems::exporter {

/// Flags that all who need GPUs share: --collector.gpu.*, all hidden. Added to the command line by
/// the slurm collector.
class GpuFlags {
 public:
  void add_to(config::FlagSet& flags);
  /// The inventory of this node, made at the first call. Not for concurrent use.
  std::shared_ptr<gpu::Inventory> inventory(const CollectorContext& context);

 private:
  std::string type_;
  std::string nvidia_smi_;
  std::string amd_smi_;
  std::string rocm_smi_;
  std::shared_ptr<gpu::Inventory> inventory_;
};

}  // namespace ceems::exporter
