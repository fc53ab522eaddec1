#pragma once

#include <vector>

#include "exporter/gpu/device.h"
#include "exporter/gpu/library/gpu_library.h"
#include "host/paths.h"

// GPUs that do not answer keep their places, because the batch system numbers GPUs by place or by
// device file, and the jobs on the others must not move.
namespace ceems::exporter::gpu {

/// Names the lost GPUs of NVIDIA that `devices` has without an address, and adds those that it
/// lacks, each at its place by PCI address. They are what the driver knows below
/// <proc>/driver/nvidia/gpus (directories by address, with the file `information`). Without that
/// folder, GPUs on the PCI bus that no other device is at stand in for the nameless ones, in order.
void identify_lost(const host::Paths& paths, std::vector<Device>& devices);
void identify_lost(const host::Paths& paths, std::vector<DeviceState>& devices);

/// Adds the devices of `before` that `now` lacks, as lost, each at its old place. Both are the
/// devices of one vendor. A lost device without a name becomes the one that had its place. Devices
/// are the same if their addresses are, or their uuids.
void recall(const std::vector<DeviceState>& before, std::vector<DeviceState>& now);

}  // namespace ceems::exporter::gpu
