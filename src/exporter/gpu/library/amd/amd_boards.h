#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "exporter/gpu/library/gpu_library.h"

// Shared by both of AMD's libraries, which list the partitions of a GPU as devices. Here the
// devices at one PCI address are one GPU with instances. `Handle` is the library's identifier of a
// device. Values that both lack, or have in structures that differ between releases, are read from
// AMD's driver in sysfs.
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

/// Sets DeviceState::module of the dies of modules with two: those with the serial number of one
/// other, or MI250 and MI250X without serial numbers in pairs, in the order of the list. Call it
/// while `uuid` is the serial number that the library gave.
void find_amd_modules(const std::vector<DeviceState*>& states);

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

  /// Call after the last device. Determines which GPUs are split and which are dies of one module,
  /// and makes the uuids unique.
  void finish() {
    std::vector<DeviceState*> states;
    states.reserve(gpus_.size());
    for (Gpu& gpu : gpus_) {
      states.push_back(&gpu.state);
    }
    find_amd_modules(states);
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

/// The content of an AMD GPU's file gpu_metrics in sysfs. Values that a revision lacks, or that the
/// GPU marks as unknown by setting all bits, are absent.
struct AmdMetrics {
  std::optional<double> power_watts = {};
  std::optional<double> graphics_clock_hertz = {};  ///< mean of the dies
  std::optional<double> memory_clock_hertz = {};
  std::optional<double> video_clock_hertz = {};  ///< mean of the engines
  /// Bytes of all xGMI links since the driver was loaded.
  std::optional<double> xgmi_read_bytes = {};
  std::optional<double> xgmi_written_bytes = {};
  /// Utilisation of each partition, 0...1, as the mean of its dies. Empty if unknown.
  std::vector<std::optional<double>> partitions = {};
};

/// Parses that file, a table whose header has its size and revision. Supports format 1 with content
/// 3 to 8 (struct gpu_metrics_v1_N of the kernel's amdgpu driver, natural alignment, in the byte
/// order of the machine). Nothing for other formats or a truncated table.
///
/// PCIe is left out: the table has a rate in whole GB/s of both directions together, and reading
/// the driver's counter (pcie_bw) takes a second.
std::optional<AmdMetrics> parse_amd_metrics(std::string_view table);

/// The table gpu_metrics of the GPU at this address. Nothing if it has none.
std::optional<AmdMetrics> read_amd_metrics(const std::filesystem::path& sys,
                                           const std::optional<PciAddress>& address);

/// Sets the clocks and the traffic of xGMI, and the power if it is unknown.
void take_amd_metrics(const AmdMetrics& metrics, DeviceState& state);

/// Sets the use of the partitions of a split GPU and, if all are known, that of the GPU as their
/// mean. The driver's table is used if it has them, otherwise `from_library`, the library's value
/// for each. If the library has values for some partitions only, no partition gets one: the driver
/// has one file for the whole GPU, so that value is the whole GPU's.
void take_partition_use(const std::optional<AmdMetrics>& metrics,
                        const std::vector<std::optional<double>>& from_library,
                        std::optional<double>& whole,
                        const std::vector<InstanceState*>& partitions);

/// Serial number of the board, or "0x" and the id of the chip. Empty if neither is available.
std::string amd_serial(const std::filesystem::path& sys, const std::optional<PciAddress>& address);

}  // namespace ceems::exporter::gpu
