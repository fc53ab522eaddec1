#pragma once

#include <optional>
#include <vector>

#include "exporter/gpu/library/nvidia/nvml_api.h"

namespace ceems::exporter::gpu::nvml {

/// The part of the time in which one GPU had a kernel, from the samples that the driver takes
/// several times a second and keeps for some seconds. `nvmlDeviceGetUtilizationRates` is only the
/// newest of them: a load whose period is that of the readings looks always busy there, or never.
class BusySamples {
 public:
  /// The mean, 0...1, of the samples since the call before. Nothing at the first call, without a
  /// new sample, and if `get` is null or fails.
  std::optional<double> read(DeviceGetSamples* get, Device device);

 private:
  std::vector<Sample> samples_ = std::vector<Sample>(256);
  unsigned long long last_ = 0;  // microseconds
};

}  // namespace ceems::exporter::gpu::nvml
