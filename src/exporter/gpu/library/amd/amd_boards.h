#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "exporter/gpu/library/gpu_library.h"
#include "exporter/gpu/library/plausible.h"

// Shared by both of AMD's libraries, which list the partitions of a GPU as devices. Here the
// devices at one PCI address are one GPU with instances. `Handle` is the library's identifier of a
// device.
namespace ceems::exporter::gpu {

/// The location of a device.
struct AmdPlace {
  PciAddress address;
  std::uint64_t partition = 0;
};

/// Decodes the 64-bit id of a device, which has the same form in both libraries (rocm_smi_api.h).
/// Nothing for a domain that is too large for PciAddress.
std::optional<AmdPlace> amd_place(std::uint64_t id);

/// Energy of a counter that is incremented for each `microjoules`. Nothing for an invalid reading.
std::optional<double> amd_joules(std::uint64_t count, float microjoules);

template <class Handle>
struct AmdPartition {
  Handle handle = {};
  InstanceState state = {};
};

template <class Handle>
struct AmdGpu {
  Handle handle = {};  ///< of the device that represents the whole GPU
  DeviceState state = {};
  std::vector<AmdPartition<Handle>> partitions = {};  ///< empty if it is not split
};

/// Groups the devices of a library into GPUs.
template <class Handle>
class AmdBoards {
 public:
  using Gpu = AmdGpu<Handle>;
  using Partition = AmdPartition<Handle>;

  /// Adds devices one by one, in the library's order. `describe` sets name and uuid of a GPU that
  /// was not known before.
  template <class Describe>
  void add(Handle handle, const std::optional<AmdPlace>& place, const Describe& describe) {
    std::uint64_t partition = place ? place->partition : 0;
    auto gpu = std::ranges::find_if(gpus_, [&](const Gpu& known) {
      // Older releases return the partition as the function of the address.
      const auto& other = known.state.address;
      return place && other && other->domain == place->address.domain &&
             other->bus == place->address.bus && other->device == place->address.device;
    });
    if (gpu == gpus_.end()) {
      Gpu added{.handle = handle};
      added.state.vendor = Vendor::kAmd;
      added.state.address = place ? std::optional(place->address) : std::nullopt;
      describe(added.state);
      gpu = gpus_.insert(gpus_.end(), std::move(added));
    } else if (partition == 0 && place) {
      partition = place->address.function;
    }
    if (gpu->partitions.size() < kMaxInstances) {
      Partition part{.handle = handle};
      part.state.number = partition;
      part.state.gpu_instance = partition;
      gpu->partitions.push_back(std::move(part));
    }
  }

  /// Call after the last device. Determines which GPUs are split and makes the uuids unique.
  void finish() {
    std::set<std::string> uuids;
    for (std::size_t i = 0; i < gpus_.size(); ++i) {
      DeviceState& state = gpus_[i].state;
      if (state.uuid.empty() || uuids.contains(state.uuid)) {
        // Boards without a serial number all return the same text, such as "N/A".
        state.uuid = state.address ? to_string(*state.address) : fmt::format("amd{}", i);
      }
      uuids.insert(state.uuid);
      state.split = gpus_[i].partitions.size() > 1;
      if (!state.split) {
        gpus_[i].partitions.clear();
      }
    }
  }

  /// See GpuLibrary::list().
  [[nodiscard]] std::vector<DeviceState> states() const {
    std::vector<DeviceState> states;
    for (const Gpu& gpu : gpus_) {
      states.push_back(gpu.state);
      for (const Partition& partition : gpu.partitions) {
        states.back().instances.push_back(partition.state);
      }
    }
    return states;
  }

  void clear() { gpus_.clear(); }
  [[nodiscard]] std::vector<Gpu>& gpus() { return gpus_; }

 private:
  std::vector<Gpu> gpus_;
};

}  // namespace ceems::exporter::gpu
