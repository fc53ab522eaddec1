#include "exporter/gpu/reason_seconds.h"

namespace ceems::exporter::gpu {

void ReasonSeconds::advance(std::vector<DeviceState>& devices, Clock::SteadyTime taken) {
  for (DeviceState& device : devices) {
    auto found = gpus_.find(device.uuid);
    if (found == gpus_.end()) {
      if (device.clock_reasons.empty() || gpus_.size() >= kMaxGpus) {
        continue;
      }
      found = gpus_.try_emplace(device.uuid).first;
    }
    count(found->second, device, taken);
    device.clock_reason_seconds = found->second.seconds;
  }
}

void ReasonSeconds::count(Gpu& gpu, const DeviceState& device, Clock::SteadyTime taken) const {
  if (device.clock_reasons.empty()) {
    gpu.taken.reset();
    return;
  }
  const auto passed = gpu.taken ? taken - *gpu.taken : Clock::SteadyTime::duration(0);
  const bool known = gpu.taken && passed.count() > 0 && passed <= max_gap_;
  const double half = known ? std::chrono::duration<double>(passed).count() / 2 : 0;
  for (const auto& [reason, applies] : device.clock_reasons) {
    auto total = std::ranges::find(gpu.seconds, reason, &decltype(gpu.seconds)::value_type::first);
    if (total == gpu.seconds.end()) {
      total = gpu.seconds.insert(total, {reason, 0});
    }
    const auto before =
        std::ranges::find(gpu.before, reason, &decltype(gpu.before)::value_type::first);
    if (before != gpu.before.end()) {
      total->second += half * (static_cast<double>(applies) + static_cast<double>(before->second));
    }
  }
  gpu.before = device.clock_reasons;
  gpu.taken = taken;
}

}  // namespace ceems::exporter::gpu
