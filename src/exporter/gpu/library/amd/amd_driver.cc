#include "exporter/gpu/library/amd/amd_driver.h"

#include <algorithm>

#include "base/strings.h"
#include "host/read_file.h"

namespace ceems::exporter::gpu {
namespace {

Result<std::string> read_device_file(const std::filesystem::path& sys,
                                     const PciAddress& address,
                                     const char* name,
                                     std::size_t limit) {
  return host::read_file((sys / "bus/pci/devices" / to_string(address) / name).string(), limit);
}

}  // namespace

std::optional<AmdMetrics> read_amd_metrics(const std::filesystem::path& sys,
                                           const std::optional<PciAddress>& address) {
  constexpr std::size_t kMaxTable = 65536;
  if (!address) {
    return std::nullopt;
  }
  const auto table = read_device_file(sys, *address, "gpu_metrics", kMaxTable);
  return table ? parse_amd_metrics(*table) : std::nullopt;
}

void take_amd_metrics(const AmdMetrics& metrics, DeviceState& state) {
  if (!state.power_watts) {
    state.power_watts = metrics.power_watts;
  }
  state.clocks_hertz.clear();
  const auto add = [&](std::string_view name, std::optional<double> hertz) {
    if (hertz) {
      state.clocks_hertz.emplace_back(name, *hertz);
    }
  };
  add("graphics", metrics.graphics_clock_hertz);
  add("memory", metrics.memory_clock_hertz);
  add("video", metrics.video_clock_hertz);
  state.link.received_bytes = metrics.xgmi_read_bytes;
  state.link.sent_bytes = metrics.xgmi_written_bytes;
}

void take_partition_use(const std::optional<AmdMetrics>& metrics,
                        const std::vector<std::optional<double>>& from_library,
                        std::optional<double>& whole,
                        const std::vector<InstanceState*>& partitions) {
  const bool complete = metrics && metrics->partitions.size() == partitions.size();
  const auto& use = complete ? metrics->partitions : from_library;
  const bool all = use.size() == partitions.size() &&
                   std::ranges::all_of(use, [](const auto& one) { return one.has_value(); });
  double sum = 0;
  for (std::size_t i = 0; i < partitions.size(); ++i) {
    InstanceState& state = *partitions[i];
    state.utilisation = (complete || all) && i < use.size() ? use[i] : std::nullopt;
    state.activity.sm_active = state.utilisation;
    sum += state.utilisation.value_or(0);
  }
  if (all && !partitions.empty()) {
    whole = sum / static_cast<double>(partitions.size());
  }
}

std::string amd_serial(const std::filesystem::path& sys, const std::optional<PciAddress>& address) {
  constexpr std::size_t kMaxText = 256;
  if (!address) {
    return {};
  }
  if (const auto text = read_device_file(sys, *address, "serial_number", kMaxText)) {
    if (std::string serial = printable(trim(*text)); !serial.empty()) {
      return serial;
    }
  }
  const auto text = read_device_file(sys, *address, "unique_id", kMaxText);
  const std::string id = text ? printable(trim(*text)) : std::string();
  return id.empty() || id.find_first_not_of('0') == std::string::npos ? std::string() : "0x" + id;
}

}  // namespace ceems::exporter::gpu
