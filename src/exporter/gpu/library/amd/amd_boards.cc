#include "exporter/gpu/library/amd/amd_boards.h"

#include <array>
#include <cstring>
#include <limits>

#include "base/strings.h"
#include "exporter/gpu/library/amd/rocm_smi_api.h"
#include "host/read_file.h"

namespace ceems::exporter::gpu {
namespace {

constexpr double kMega = 1e6;
constexpr double kKibi = 1024;
constexpr std::size_t kLinks = 8;
constexpr std::size_t kDies = 8;  // per GPU, and in the table of each partition
constexpr std::size_t kEngines = 4;
constexpr std::size_t kMaxPartitions = 8;

/// Offsets of the values in a revision; 0 if it does not have the value.
struct Layout {
  unsigned content;
  std::size_t size;
  std::size_t power;
  std::size_t graphics_clocks;
  std::size_t number_of_graphics_clocks;
  std::size_t video_clocks;
  std::size_t number_of_video_clocks;
  std::size_t memory_clock;
  std::size_t xgmi_read;
  std::size_t xgmi_written;
  std::size_t number_of_partitions;
  std::size_t partitions;
  std::size_t partition_size;
};

constexpr std::array kLayouts = {
    Layout{3, 120, 22, 54, 1, 60, 1, 58, 0, 0, 0, 0, 0},
    Layout{4, 288, 10, 240, kDies, 264, kEngines, 280, 104, 168, 0, 0, 0},
    Layout{5, 328, 10, 280, kDies, 304, kEngines, 320, 144, 208, 0, 0, 0},
    Layout{6, 1664, 10, 264, kDies, 288, kEngines, 304, 128, 192, 306, 312, 168},
    Layout{7, 2208, 10, 296, kDies, 320, kEngines, 336, 136, 200, 338, 344, 232},
    Layout{8, 3360, 10, 296, kDies, 320, kEngines, 336, 136, 200, 338, 344, 376},
};

/// A number of the table. Nothing if all its bits are set.
template <class Number>
std::optional<double> number(std::string_view table, std::size_t place) {
  Number value{};
  std::memcpy(&value, table.data() + place, sizeof(value));
  return value == std::numeric_limits<Number>::max() ? std::nullopt
                                                     : std::optional(static_cast<double>(value));
}

/// The mean of the known values.
template <class Number>
std::optional<double> mean(std::string_view table, std::size_t place, std::size_t count) {
  double sum = 0;
  int known = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (const auto value = number<Number>(table, place + i * sizeof(Number))) {
      sum += *value;
      ++known;
    }
  }
  return known > 0 ? std::optional(sum / known) : std::nullopt;
}

/// Converts MHz to Hz. A clock of 0 does not exist in this GPU.
std::optional<double> hertz(std::optional<double> megahertz) {
  return megahertz && *megahertz > 0 ? within(*megahertz * kMega, kMaxHertz) : std::nullopt;
}

std::optional<double> sum_of_links(std::string_view table, std::size_t place) {
  if (place == 0) {
    return std::nullopt;
  }
  std::optional<double> sum;
  for (std::size_t i = 0; i < kLinks; ++i) {
    if (const auto kibibytes = number<std::uint64_t>(table, place + i * sizeof(std::uint64_t))) {
      sum = sum.value_or(0) + *kibibytes * kKibi;
    }
  }
  return sum;
}

Result<std::string> read_device_file(const std::filesystem::path& sys,
                                     const PciAddress& address,
                                     const char* name,
                                     std::size_t limit) {
  return host::read_file((sys / "bus/pci/devices" / to_string(address) / name).string(), limit);
}

}  // namespace

std::optional<AmdPlace> amd_place(std::uint64_t id) {
  if (rocm::pci_domain(id) > 0xffff) {
    return std::nullopt;
  }
  return AmdPlace{.address = {.domain = static_cast<std::uint16_t>(rocm::pci_domain(id)),
                              .bus = static_cast<std::uint16_t>(rocm::pci_bus(id)),
                              .device = static_cast<std::uint16_t>(rocm::pci_device(id)),
                              .function = static_cast<std::uint16_t>(rocm::pci_function(id))},
                  .partition = rocm::pci_partition(id)};
}

std::optional<double> amd_joules(std::uint64_t count, float microjoules) {
  constexpr double kMicro = 1e-6;
  constexpr double kMaxJoules = 1e18;
  const bool counted = count != ~std::uint64_t{0} && microjoules > 0;
  return counted ? within(static_cast<double>(count) * double{microjoules} * kMicro, kMaxJoules)
                 : std::nullopt;
}

void find_amd_modules(const std::vector<DeviceState*>& states) {
  std::vector<DeviceState*> single;  // dies of MI250 and MI250X whose other die is not known
  for (DeviceState* state : states) {
    const auto same = std::ranges::count(states, state->uuid, &DeviceState::uuid);
    const bool serial =
        std::ranges::any_of(state->uuid, [](char c) { return c >= '0' && c <= '9'; });
    const std::string name = to_lower(state->name);
    const bool mi250 =
        name.find("mi250") != std::string::npos || name == "0x7408" || name == "0x740c";  // PCI ids
    if (serial && same == 2) {
      state->module = state->uuid;
    } else if (mi250) {
      single.push_back(state);
    }
  }
  for (std::size_t i = 0; single.size() % 2 == 0 && i < single.size(); ++i) {
    const auto& address = single[i - i % 2]->address;
    single[i]->module = address ? to_string(*address) : fmt::format("module{}", i / 2);
  }
}

std::optional<AmdMetrics> parse_amd_metrics(std::string_view table) {
  struct {
    std::uint16_t size;
    std::uint8_t format;
    std::uint8_t content;
  } head{};
  if (table.size() < sizeof(head)) {
    return std::nullopt;
  }
  std::memcpy(&head, table.data(), sizeof(head));
  const auto* layout = std::ranges::find(kLayouts, unsigned{head.content}, &Layout::content);
  if (head.format != 1 || layout == kLayouts.end() || table.size() < layout->size) {
    return std::nullopt;
  }
  AmdMetrics metrics;
  if (const auto watts = number<std::uint16_t>(table, layout->power)) {
    metrics.power_watts = within(*watts, kMaxWatts);
  }
  metrics.graphics_clock_hertz =
      hertz(mean<std::uint16_t>(table, layout->graphics_clocks, layout->number_of_graphics_clocks));
  metrics.memory_clock_hertz = hertz(number<std::uint16_t>(table, layout->memory_clock));
  metrics.video_clock_hertz =
      hertz(mean<std::uint16_t>(table, layout->video_clocks, layout->number_of_video_clocks));
  metrics.xgmi_read_bytes = sum_of_links(table, layout->xgmi_read);
  metrics.xgmi_written_bytes = sum_of_links(table, layout->xgmi_written);
  if (layout->partitions != 0) {
    const double reported = number<std::uint16_t>(table, layout->number_of_partitions).value_or(0);
    const auto count = std::min(static_cast<std::size_t>(reported), kMaxPartitions);
    for (std::size_t i = 0; i < count; ++i) {
      const auto percent =
          mean<std::uint32_t>(table, layout->partitions + i * layout->partition_size, kDies);
      metrics.partitions.push_back(percent ? from_percent(*percent) : std::nullopt);
    }
  }
  return metrics;
}

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
