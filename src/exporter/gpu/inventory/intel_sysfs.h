#pragma once

#include <vector>

#include "exporter/gpu/device.h"
#include "host/paths.h"

namespace ceems::exporter::gpu {

/// GPUs of Intel that a kernel driver uses (i915, xe), numbered by PCI address. Graphics that is
/// part of the processor (device 2 of bus 0) is left out. A GPU is identified by its address. SM
/// counts are unknown.
std::vector<Device> intel_devices(const host::Paths& paths);

}  // namespace ceems::exporter::gpu
