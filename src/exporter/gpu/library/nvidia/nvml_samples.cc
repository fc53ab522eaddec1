#include "exporter/gpu/library/nvidia/nvml_samples.h"

#include <algorithm>

namespace ceems::exporter::gpu::nvml {

std::optional<double> BusySamples::read(DeviceGetSamples* get, Device device) {
  if (get == nullptr) {
    return std::nullopt;
  }
  int type = 0;
  auto count = static_cast<unsigned>(samples_.size());
  if (get(device, kGpuUtilizationSamples, last_, &type, &count, samples_.data()) != kSuccess ||
      type != kUnsignedValue) {
    return std::nullopt;
  }
  const unsigned long long before = last_;
  double sum = 0;
  int number = 0;
  for (std::size_t i = 0; i < std::min<std::size_t>(count, samples_.size()); ++i) {
    const Sample& sample = samples_[i];
    last_ = std::max(last_, sample.time_stamp);
    if (sample.time_stamp > before && sample.value.number <= 100) {
      sum += sample.value.number;
      ++number;
    }
  }
  // The first call gets samples from before any unit was charged.
  return before > 0 && number > 0 ? std::optional(sum / 100 / number) : std::nullopt;
}

}  // namespace ceems::exporter::gpu::nvml
