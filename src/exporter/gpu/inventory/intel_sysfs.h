#pragma once

#include <vector>

#include "exporter/gpu/device.h"
#include "host/paths.h"

namespace ceems::exporter::gpu {

/// GPUs of Intel that the kernel drives (i915, xe), numbered by PCI address; graphics that is part
/// of the processor (device 2 of bus 0) is none. The identity is the address, SM counts are
/// unknown.
std::vector<Device> intel_devices(const host::Paths& paths);

}  // namespace ceems::exporter::gpu
