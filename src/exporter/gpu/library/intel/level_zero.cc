#include "exporter/gpu/library/intel/level_zero.h"

#include <algorithm>
#include <array>

#include "exporter/gpu/library/gpu_library.h"

namespace ceems::exporter::gpu::level_zero {
namespace {

constexpr std::size_t kMaxHandles = 256;  // of one device
constexpr double kMicro = 1e-6;
constexpr double kMega = 1e6;

struct Reason {
  std::uint32_t bit;
  std::string_view name;
};
/// zes_freq_throttle_reason_flags_t.
constexpr std::array kReasons = {
    Reason{0x1, "power_cap"},        Reason{0x2, "burst_power_cap"}, Reason{0x4, "current_limit"},
    Reason{0x8, "hardware_thermal"}, Reason{0x10, "power_brake"},    Reason{0x20, "software_range"},
    Reason{0x40, "hardware_range"},
};

/// The handles that a function lists. Empty if it fails; at most kMaxHandles.
std::vector<Handle> handles_of(Enumerate* function, Handle of) {
  std::uint32_t count = 0;
  if (!succeeds(function, of, &count, nullptr) || count == 0) {
    return {};
  }
  std::vector<Handle> handles(std::min<std::size_t>(count, kMaxHandles));
  count = static_cast<std::uint32_t>(handles.size());
  if (function(of, &count, handles.data()) != kSuccess) {
    return {};
  }
  handles.resize(std::min<std::size_t>(count, handles.size()));
  std::erase(handles, nullptr);
  return handles;
}

}  // namespace

LevelZero::LevelZero(SharedLibrary library) : library_(std::move(library)) {}

ceems::Result<> LevelZero::start() {
  if (api_.init == nullptr || api_.get_drivers == nullptr || api_.get_devices == nullptr) {
    return fail(ErrorCode::kNotFound,
                "{}: no Sysman: zesInit or the functions that list devices are missing",
                library_.name());
  }
  running_ = false;
  gpus_.clear();
  if (const Status status = api_.init(0); status != kSuccess) {
    return fail(ErrorCode::kUnavailable, "zesInit returned {:#x}", status);
  }
  std::array<Handle, 16> drivers{};
  std::uint32_t count = drivers.size();
  if (const Status status = api_.get_drivers(&count, drivers.data()); status != kSuccess) {
    return fail(ErrorCode::kUnavailable, "zesDriverGet returned {:#x}", status);
  }
  if (count > drivers.size()) {
    return fail(ErrorCode::kParse, "zesDriverGet returned {} drivers", count);
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    for (Handle device : handles_of(api_.get_devices, drivers.at(i))) {
      if (gpus_.size() < kMaxDevices) {
        add_device(device);
      }
    }
  }
  // In the order of the inventory.
  std::ranges::stable_sort(gpus_, {}, [](const Gpu& gpu) { return gpu.state.address; });
  running_ = true;
  return {};
}

void LevelZero::add_device(Handle device) {
  PciProperties pci{};
  pci.type = kPciProperties;
  if (!succeeds(api_.get_pci_properties, device, &pci)) {
    return;  // could be graphics of the processor
  }
  const auto& address = pci.address;
  const bool of_processor = address.bus == 0 && address.device == 2;
  if (of_processor ||
      std::max({address.domain, address.bus, address.device, address.function}) > 0xffff) {
    return;
  }
  Gpu gpu;
  gpu.handle = device;
  gpu.state.vendor = Vendor::kIntel;
  gpu.state.address = PciAddress{.domain = static_cast<std::uint16_t>(address.domain),
                                 .bus = static_cast<std::uint16_t>(address.bus),
                                 .device = static_cast<std::uint16_t>(address.device),
                                 .function = static_cast<std::uint16_t>(address.function)};
  gpu.state.uuid = to_string(*gpu.state.address);
  const bool known = std::any_of(gpus_.begin(), gpus_.end(), [&](const Gpu& other) {
    return other.state.uuid == gpu.state.uuid;
  });
  if (known) {
    return;  // two drivers show the same card
  }
  DeviceProperties properties{};
  properties.type = kDeviceProperties;
  properties.core.type = kCoreDeviceProperties;
  if (succeeds(api_.get_properties, device, &properties)) {
    gpu.state.name = text_of(properties.core.name, sizeof(properties.core.name));
    if (gpu.state.name.empty()) {
      gpu.state.name = text_of(properties.model_name, sizeof(properties.model_name));
    }
  }
  find_parts(gpu);
  gpus_.push_back(std::move(gpu));
}

void LevelZero::find_parts(Gpu& gpu) const {
  for (Handle domain : handles_of(api_.list_power_domains, gpu.handle)) {
    PowerProperties properties{};
    properties.type = kPowerProperties;
    if (api_.get_power_properties != nullptr && gpu.power == nullptr &&
        api_.get_power_properties(domain, &properties) == kSuccess &&
        properties.on_subdevice == 0) {
      gpu.power = domain;
      if (properties.default_limit_milliwatts > 0) {
        gpu.state.power_limit_watts = within(properties.default_limit_milliwatts * 1e-3, kMaxWatts);
      }
    }
  }
  find_engines(gpu);
  gpu.memories = handles_of(api_.list_memories, gpu.handle);
  gpu.ports = handles_of(api_.list_fabric_ports, gpu.handle);
  for (Handle sensor : handles_of(api_.list_sensors, gpu.handle)) {
    TemperatureProperties properties{};
    properties.type = kTemperatureProperties;
    if (succeeds(api_.get_sensor_properties, sensor, &properties)) {
      gpu.sensors.emplace_back(sensor, properties.sensor);
    }
  }
  for (Handle domain : handles_of(api_.list_frequencies, gpu.handle)) {
    FrequencyProperties properties{};
    properties.type = kFrequencyProperties;
    if (succeeds(api_.get_frequency_properties, domain, &properties)) {
      gpu.frequencies.emplace_back(domain, properties.domain);
    }
  }
}

void LevelZero::find_engines(Gpu& gpu) const {
  struct Found {
    Handle handle;
    EngineProperties properties;
  };
  std::vector<Found> found;
  for (Handle engine : handles_of(api_.list_engines, gpu.handle)) {
    EngineProperties properties{};
    properties.type = kEngineProperties;
    if (succeeds(api_.get_engine_properties, engine, &properties)) {
      found.push_back({engine, properties});
    }
  }
  // The group of all engines of the card, or of all tiles, or the same of compute engines only.
  for (const std::int32_t kind : {kEngineAll, kEngineComputeAll}) {
    for (const bool tiles : {false, true}) {
      for (const Found& engine : found) {
        if (engine.properties.engine == kind && (engine.properties.on_subdevice != 0) == tiles) {
          gpu.engines.push_back({.handle = engine.handle, .last = {}});
        }
      }
      if (!gpu.engines.empty()) {
        return;
      }
    }
  }
}

std::vector<DeviceState> LevelZero::list() {
  std::vector<DeviceState> states;
  states.reserve(gpus_.size());
  for (const Gpu& gpu : gpus_) {
    states.push_back(gpu.state);
  }
  return states;
}

ceems::Result<std::vector<DeviceState>> LevelZero::read(bool everything) {
  if (!running_) {
    return fail(ErrorCode::kUnavailable, "Level Zero is not started");
  }
  for (Gpu& gpu : gpus_) {
    read_power(gpu);
    read_engines(gpu);
    read_processes(gpu);
    if (everything) {
      read_seldom(gpu);
    }
  }
  return list();
}

void LevelZero::read_power(Gpu& gpu) const {
  gpu.state.energy_joules.reset();
  gpu.state.power_watts.reset();
  EnergyCounter now{};
  if (gpu.power == nullptr || !succeeds(api_.get_energy, gpu.power, &now)) {
    gpu.last_energy.reset();
    return;
  }
  gpu.state.energy_joules = within(static_cast<double>(now.microjoules) * kMicro, 1e18);
  const auto last = std::exchange(gpu.last_energy, now);
  if (last && now.microseconds > last->microseconds && now.microjoules >= last->microjoules) {
    gpu.state.power_watts = within(static_cast<double>(now.microjoules - last->microjoules) /
                                       static_cast<double>(now.microseconds - last->microseconds),
                                   kMaxWatts);
  }
}

void LevelZero::read_engines(Gpu& gpu) const {
  double sum = 0;
  int known = 0;
  for (Engine& engine : gpu.engines) {
    EngineStats now{};
    if (!succeeds(api_.get_engine_activity, engine.handle, &now)) {
      engine.last.reset();
      continue;
    }
    const auto last = std::exchange(engine.last, now);
    if (last && now.timestamp_microseconds > last->timestamp_microseconds &&
        now.active_microseconds >= last->active_microseconds) {
      const double part =
          static_cast<double>(now.active_microseconds - last->active_microseconds) /
          static_cast<double>(now.timestamp_microseconds - last->timestamp_microseconds);
      sum += std::min(part, 1.0);
      ++known;
    }
  }
  gpu.state.utilisation = known > 0 ? std::optional(sum / known) : std::nullopt;
}

void LevelZero::read_processes(Gpu& gpu) const {
  gpu.state.processes.clear();
  std::uint32_t count = 0;
  if (!succeeds(api_.get_processes, gpu.handle, &count, nullptr) || count == 0) {
    return;
  }
  std::vector<ProcessState> processes(
      std::min<std::size_t>(std::size_t{count} + 16, kMaxProcesses));
  for (ProcessState& process : processes) {
    process.type = kProcessState;
  }
  count = static_cast<std::uint32_t>(processes.size());
  if (api_.get_processes(gpu.handle, &count, processes.data()) != kSuccess) {
    return;
  }
  processes.resize(std::min<std::size_t>(count, processes.size()));
  for (const ProcessState& process : processes) {
    if (static_cast<int>(process.pid) > 0) {
      ProcessUse use{.pid = static_cast<int>(process.pid)};
      use.memory_bytes = within(static_cast<double>(process.memory_bytes), kMaxBytes);
      gpu.state.processes.push_back(use);
    }
  }
}

void LevelZero::read_seldom(Gpu& gpu) const {
  DeviceState& state = gpu.state;
  double size = 0;
  double free = 0;
  for (Handle memory : gpu.memories) {
    MemoryState now{};
    now.type = kMemoryState;
    if (succeeds(api_.get_memory_state, memory, &now) && now.free <= now.size) {
      size += static_cast<double>(now.size);
      free += static_cast<double>(now.free);
    }
  }
  state.memory_total_bytes = size > 0 ? within(size, kMaxBytes) : std::nullopt;
  state.memory_used_bytes =
      state.memory_total_bytes ? within(size - free, kMaxBytes) : std::nullopt;
  state.temperature_celsius.reset();
  state.memory_temperature_celsius.reset();
  for (const auto& [sensor, kind] : gpu.sensors) {
    double celsius = 0;
    const bool wanted = kind == kSensorGpu || kind == kSensorMemory || kind == kSensorGlobal;
    if (!wanted || !succeeds(api_.get_temperature, sensor, &celsius)) {
      continue;
    }
    auto& place =
        kind == kSensorMemory ? state.memory_temperature_celsius : state.temperature_celsius;
    // The highest value counts.
    if (const auto value = within(celsius, kMaxCelsius); value > place) {
      place = value;
    }
  }
  read_frequencies(gpu);
  read_traffic(gpu);
}

void LevelZero::read_traffic(Gpu& gpu) const {
  DeviceState& state = gpu.state;
  PciStats pcie{};
  state.pcie = {};
  if (succeeds(api_.get_pci_stats, gpu.handle, &pcie)) {
    state.pcie.sent_bytes = static_cast<double>(pcie.sent_bytes);
    state.pcie.received_bytes = static_cast<double>(pcie.received_bytes);
  }
  state.link = {};
  for (Handle port : gpu.ports) {
    FabricPortThroughput moved{};
    if (succeeds(api_.get_fabric_throughput, port, &moved)) {
      state.link.sent_bytes =
          state.link.sent_bytes.value_or(0) + static_cast<double>(moved.sent_bytes);
      state.link.received_bytes =
          state.link.received_bytes.value_or(0) + static_cast<double>(moved.received_bytes);
    }
  }
}

void LevelZero::read_frequencies(Gpu& gpu) const {
  gpu.state.clocks_hertz.clear();
  gpu.state.clock_reasons.clear();
  for (const auto& [domain, kind] : gpu.frequencies) {
    FrequencyState now{};
    now.type = kFrequencyState;
    if (!succeeds(api_.get_frequency_state, domain, &now)) {
      continue;
    }
    if (kind != kFrequencyGpu && kind != kFrequencyMemory) {
      continue;
    }
    const std::string_view name = kind == kFrequencyGpu ? "graphics" : "memory";
    auto& clocks = gpu.state.clocks_hertz;
    const bool listed = std::any_of(clocks.begin(), clocks.end(),
                                    [&](const auto& clock) { return clock.first == name; });
    if (listed) {
      continue;  // of another tile
    }
    if (const auto hertz = within(now.actual * kMega, kMaxHertz)) {
      clocks.emplace_back(name, *hertz);
    }
    if (kind == kFrequencyGpu) {
      for (const Reason& reason : kReasons) {
        gpu.state.clock_reasons.emplace_back(reason.name, (now.throttle_reasons & reason.bit) != 0);
      }
    }
  }
}

}  // namespace ceems::exporter::gpu::level_zero
