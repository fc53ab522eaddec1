#include "exporter/gpu/inventory/device_names.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace ceems::exporter::gpu {
namespace {

constexpr std::array kModels =
    std::to_array<std::pair<std::string_view, std::uint64_t>>({{"V100", 80},
                                                               {"A2", 10},
                                                               {"A10", 72},
                                                               {"A16", 10},
                                                               {"A30", 56},
                                                               {"A40", 84},
                                                               {"A100", 108},
                                                               {"A800", 108},
                                                               {"H100", 132},
                                                               {"H200", 132},
                                                               {"H800", 114},
                                                               {"B100", 132},
                                                               {"B200", 132}});

bool same_device(const Device& known, const DeviceState& state) {
  return known.vendor == state.vendor &&
         (known.uuid == state.uuid || (known.address && known.address == state.address));
}

const Instance* find_instance(const Device& device, const InstanceState& state) {
  const Instance* by_gpu_instance = nullptr;
  for (const Instance& instance : device.instances) {
    if (!instance.uuid.empty() && instance.uuid == state.uuid) {
      return &instance;
    }
    if (instance.gpu_instance == state.gpu_instance &&
        (by_gpu_instance == nullptr || instance.compute_instance == state.compute_instance)) {
      by_gpu_instance = &instance;
    }
  }
  return by_gpu_instance;
}

void take_names(const Device& known, DeviceState& state) {
  state.index = known.index;
  state.uuid = known.uuid;
  state.sm_count = known.sm_count;
  for (InstanceState& instance : state.instances) {
    if (const Instance* found = find_instance(known, instance)) {
      instance.index = found->index;
      if (instance.sm_count == 0) {
        instance.sm_count = found->sm_count;
      }
    }
  }
}

void number(std::uint64_t& next, DeviceState& state) {
  if (!state.split) {
    state.index = std::to_string(next++);
  }
  for (InstanceState& instance : state.instances) {
    instance.index = std::to_string(next++);
  }
}

}  // namespace

std::uint64_t sm_count_of(std::string_view product_name) {
  while (!product_name.empty()) {
    const std::size_t end = std::min(product_name.find_first_of(" -"), product_name.size());
    const auto word = product_name.substr(0, end);
    const auto* const found = std::find_if(kModels.begin(), kModels.end(),
                                           [&](const auto& model) { return model.first == word; });
    if (found != kModels.end()) {
      return found->second;
    }
    product_name.remove_prefix(std::min(end + 1, product_name.size()));
  }
  return 0;
}

void name_devices(const std::vector<Device>& known, std::vector<DeviceState>& devices) {
  std::array<std::uint64_t, 3> next{};
  for (DeviceState& state : devices) {
    const auto found = std::find_if(known.begin(), known.end(), [&](const Device& device) {
      return same_device(device, state);
    });
    const bool vendor_known = std::any_of(
        known.begin(), known.end(), [&](const Device& d) { return d.vendor == state.vendor; });
    if (found != known.end()) {
      take_names(*found, state);
    } else if (!vendor_known) {
      number(next.at(static_cast<std::size_t>(state.vendor)), state);
    }
    if (state.sm_count == 0 && state.vendor == Vendor::kNvidia) {
      state.sm_count = sm_count_of(state.name);
    }
  }
}

std::vector<Device> inventory_devices(const std::vector<DeviceState>& devices, Vendor vendor) {
  std::vector<Device> list;
  for (const DeviceState& state : devices) {
    if (state.vendor != vendor) {
      continue;
    }
    Device& device = list.emplace_back();
    device.vendor = vendor;
    device.position = list.size() - 1;
    device.driver_minor = state.driver_minor;
    device.index = state.index;
    device.uuid = state.uuid;
    device.name = state.name;
    device.address = state.address;
    device.path_name = state.address ? to_string(*state.address) : std::string();
    device.sm_count = state.sm_count;
    device.split = state.split;
    device.vgpu = state.vgpu;
    device.lost = !state.lost.empty();
    for (const InstanceState& part : state.instances) {
      Instance& instance = device.instances.emplace_back();
      instance.index = part.index;
      instance.number = part.number;
      instance.uuid = part.uuid;
      instance.gpu_instance = part.gpu_instance;
      instance.compute_instance = part.compute_instance;
      instance.sm_count = part.sm_count;
    }
  }
  return list;
}

}  // namespace ceems::exporter::gpu
