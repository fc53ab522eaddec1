#include "exporter/gpu/inventory/order_map.h"

#include <algorithm>

#include "base/strings.h"

namespace ceems::exporter::gpu {

std::vector<OrderEntry> parse_order_map(std::string_view text) {
  std::vector<OrderEntry> entries;
  while (!text.empty()) {
    std::string_view target = take_until(text, ',');
    if (target.find(':') == std::string_view::npos) {
      continue;
    }
    const auto index = trim(take_until(target, ':'));
    if (index.empty()) {
      continue;
    }
    const bool one_dot = std::count(target.begin(), target.end(), '.') == 1;
    const auto position = parse_int(trim(take_until(target, '.')));
    const auto instance = parse_int(trim(target));
    if (!position || (one_dot && !instance)) {
      continue;
    }
    entries.push_back({.slurm_index = std::string(index),
                       .position = *position,
                       .gpu_instance = one_dot ? instance : std::nullopt});
  }
  return entries;
}

void apply_order_map(const std::vector<OrderEntry>& order, std::vector<Device>& devices) {
  for (const OrderEntry& entry : order) {
    for (Device& device : devices) {
      if (device.position != entry.position) {
        continue;
      }
      if (!entry.gpu_instance) {
        device.index = entry.slurm_index;
        continue;
      }
      const auto found = std::find_if(
          device.instances.begin(), device.instances.end(),
          [&](const Instance& instance) { return instance.gpu_instance == *entry.gpu_instance; });
      if (found != device.instances.end()) {
        found->index = entry.slurm_index;
      }
    }
  }
}

}  // namespace ceems::exporter::gpu
