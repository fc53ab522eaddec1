#pragma once

#include <string>

#include "host/paths.h"

namespace ceems::exporter::gpu {

/// A text that changes whenever GPUs appear, disappear, or are split differently: names on the PCI
/// bus, MIG instances that NVIDIA's driver shows below <proc>/driver/nvidia/capabilities, and
/// partitions of AMD GPUs in sysfs (Documentation/gpu/amdgpu). It reads some hundred names at most
/// and runs no tool, so it can be called often.
std::string gpu_layout(const host::Paths& paths);

}  // namespace ceems::exporter::gpu
