#pragma once

#include <string>

#include "exporter/gpu/claim/claim.h"

namespace ceems::exporter::gpu {

/// A unit of SLURM that holds this share of GPU-a, or of a GPU instance of it.
inline Assignment assignment(const std::string& unit,
                             double share,
                             const std::string& instance = "") {
  Assignment result;
  result.manager = "slurm";
  result.uuid = unit;
  result.device_uuid = "GPU-a";
  result.index = instance.empty() ? "0" : instance;
  result.gpu_instance = instance;
  result.share = share;
  return result;
}

}  // namespace ceems::exporter::gpu
