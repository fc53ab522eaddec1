#pragma once

#include <string>

#include "tool/rules/model.h"

// How values of devices become values of units. ceems_compute_unit_gpu_index_flag has a series for
// each unit and device, 1 or, on shared devices, the unit's share. Devices are joined by gpuuuid
// and gpuiid (NVIDIA), or by host, index and gpuiid (AMD), whose exporters do not name a device
// uniquely. A device is one series on its side of the join, however often its exporter reports it.

namespace ceems::tool::rules {

/// `value`, a vector of the GPU exporter, times the share of each unit, with the labels of the
/// flag.
std::string unit_share(const GpuPlan& plan, const std::string& value);

/// The power of each unit on each of its devices, with the labels of the flag. `device_watts` is
/// the record of the power of devices, with device labels.
///
/// The power of a whole GPU is split among its instances that units hold: by SM_ACTIVE ×
/// SM_OCCUPANCY × number of SMs if DCGM exports these for all of them and one is active, otherwise
/// by the number of SMs, otherwise equally.
std::string unit_power(const GpuPlan& plan, const std::string& device_watts);

}  // namespace ceems::tool::rules
