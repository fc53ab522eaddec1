#pragma once

#include <string>

#include "host/paths.h"

namespace ceems::exporter::gpu {

/// A text that changes whenever GPUs come, go, or are split otherwise: names on the PCI bus, MIG
/// instances as NVIDIA's driver shows them below <proc>/driver/nvidia/capabilities, partitions of
/// AMD GPUs in sysfs (Documentation/gpu/amdgpu). Some hundred names at most are read and no tool is
/// run, so it can be asked for often.
std::string gpu_layout(const host::Paths& paths);

}  // namespace ceems::exporter::gpu
