#pragma once

#include <vector>

#include "exporter/gpu/device.h"
#include "exporter/gpu/library/gpu_library.h"

namespace ceems::exporter::gpu {

/// Gives the GPUs and instances that a library lists the labels that the map of units to GPUs has
/// for them, so that series can be joined: sets `index`, `uuid` and `sm_count`. `known` are the
/// devices of the inventory; a GPU is found there by its uuid or PCI address, an instance by its
/// uuid or ids. GPUs of a vendor of which the inventory has none are numbered through as the
/// vendors' tools do.
void name_devices(const std::vector<Device>& known, std::vector<DeviceState>& devices);

/// The GPUs of one vendor, named before, as the inventory has them.
std::vector<Device> inventory_devices(const std::vector<DeviceState>& devices, Vendor vendor);

}  // namespace ceems::exporter::gpu
