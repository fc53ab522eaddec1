#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "exporter/gpu/device.h"
#include "exporter/gpu/library/gpu_library.h"

namespace ceems::exporter::gpu {

/// Number of streaming multiprocessors of an NVIDIA GPU by its product name ("NVIDIA
/// A100-PCIE-40GB"), with the values of CEEMS 0.10.2. 0 for a model that is not in the table.
std::uint64_t sm_count_of(std::string_view product_name);

/// Sets `index`, `uuid` and `sm_count` of the GPUs and instances that a library lists to those in
/// the map of units to GPUs, so that series can be joined. `known` are the devices of the
/// inventory. A GPU is found there by its uuid or PCI address, and an instance by its uuid or ids.
/// If the inventory has no GPU of a vendor, that vendor's are numbered as its tools do.
void name_devices(const std::vector<Device>& known, std::vector<DeviceState>& devices);

/// The GPUs of one vendor, already named, in the inventory's form.
std::vector<Device> inventory_devices(const std::vector<DeviceState>& devices, Vendor vendor);

}  // namespace ceems::exporter::gpu
