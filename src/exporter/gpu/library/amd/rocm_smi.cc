#include "exporter/gpu/library/amd/rocm_smi.h"

#include <algorithm>
#include <array>
#include <utility>

#include "exporter/gpu/library/amd/amd_boards.h"
#include "exporter/gpu/library/gpu_library.h"

namespace ceems::exporter::gpu::rocm {
namespace {

constexpr std::size_t kTextSize = 128;
constexpr double kMicro = 1e-6;

std::optional<double> percent(DevPercentGet* get, std::uint32_t device) {
  std::uint32_t value = 0;
  return succeeds(get, device, &value) ? from_percent(value) : std::nullopt;
}

std::optional<double> memory(DevMemoryGet* get, std::uint32_t device) {
  std::uint64_t bytes = 0;
  return succeeds(get, device, kMemoryVram, &bytes) ? within(static_cast<double>(bytes), kMaxBytes)
                                                    : std::nullopt;
}

std::optional<double> celsius(DevTempMetricGet* get, std::uint32_t device, std::uint32_t sensor) {
  std::int64_t value = 0;
  return succeeds(get, device, sensor, kTemperatureCurrent, &value)
             ? within(static_cast<double>(value) * 1e-3, kMaxCelsius)
             : std::nullopt;
}

std::string serial_number(const Api& api, std::uint32_t device) {
  std::array<char, kTextSize> buffer{};
  if (succeeds(api.serial, device, buffer.data(), buffer.size())) {
    if (auto text = text_of(buffer.data(), buffer.size()); !text.empty()) {
      return text;
    }
  }
  std::uint64_t id = 0;
  if (succeeds(api.unique_id, device, &id) && id != 0) {
    return fmt::format("{:#018x}", id);
  }
  return {};
}

}  // namespace

RocmSmi::RocmSmi(SharedLibrary library, std::filesystem::path sys)
    : library_(std::move(library)), sys_(std::move(sys)) {}

RocmSmi::~RocmSmi() {
  stop();
}

void RocmSmi::stop() {
  boards_.clear();
  if (running_ && api_.shut_down != nullptr) {
    static_cast<void>(api_.shut_down());
  }
  running_ = false;
}

Result<> RocmSmi::start() {
  if (api_.init == nullptr || api_.count == nullptr) {
    return fail(ErrorCode::kNotFound,
                "{}: not ROCm SMI: rsmi_init or the functions that list devices are missing",
                library_.name());
  }
  stop();
  if (const Status status = api_.init(0); status != kSuccess) {
    return fail(ErrorCode::kUnavailable, "rsmi_init returned {}", status);
  }
  running_ = true;
  std::uint32_t count = 0;
  if (const Status status = api_.count(&count); status != kSuccess) {
    stop();
    return fail(ErrorCode::kUnavailable, "rsmi_num_monitor_devices returned {}", status);
  }
  if (count > kMaxDevices) {
    stop();
    return fail(ErrorCode::kParse, "rsmi_num_monitor_devices returned {} devices", count);
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    add_device(i);
  }
  boards_.finish();
  return {};
}

void RocmSmi::add_device(std::uint32_t number) {
  std::uint64_t id = 0;
  const bool has_id = succeeds(api_.pci_id, number, &id);
  boards_.add(number, has_id ? amd_place(id) : std::nullopt, [&](DeviceState& state) {
    state.uuid = serial_number(api_, number);
    std::array<char, kTextSize> buffer{};
    if (succeeds(api_.name, number, buffer.data(), buffer.size())) {
      state.name = text_of(buffer.data(), buffer.size());
    }
  });
}

std::vector<DeviceState> RocmSmi::list() {
  return boards_.states();
}

Result<std::vector<DeviceState>> RocmSmi::read(bool everything) {
  if (!running_) {
    return fail(ErrorCode::kUnavailable, "ROCm SMI is not started");
  }
  for (Gpu& gpu : boards_.gpus()) {
    read_often(gpu);
    if (everything) {
      read_seldom(gpu);
    }
  }
  read_processes();
  return list();
}

void RocmSmi::read_often(Gpu& gpu) const {
  DeviceState& state = gpu.state;
  std::uint64_t microwatts = 0;
  int type = 0;
  const bool powered = succeeds(api_.power, gpu.handle, &microwatts, &type) ||
                       succeeds(api_.average_power, gpu.handle, 0, &microwatts);
  state.power_watts =
      powered ? within(static_cast<double>(microwatts) * kMicro, kMaxWatts) : std::nullopt;
  std::uint64_t count = 0;
  std::uint64_t nanoseconds = 0;
  float each = 0;
  const bool counted = succeeds(api_.energy, gpu.handle, &count, &each, &nanoseconds);
  state.energy_joules = counted ? amd_joules(count, each) : std::nullopt;
  state.memory_utilisation = percent(api_.memory_busy, gpu.handle);
  state.utilisation = percent(api_.busy, gpu.handle);
  const auto metrics = read_amd_metrics(sys_, state.address);
  if (metrics) {
    take_amd_metrics(*metrics, state);
  }
  std::vector<std::optional<double>> use_of_each;
  std::vector<InstanceState*> partitions;
  for (Partition& partition : gpu.partitions) {
    use_of_each.push_back(percent(api_.busy, partition.handle));
    partitions.push_back(&partition.state);
  }
  take_partition_use(metrics, use_of_each, state.utilisation, partitions);
}

void RocmSmi::read_seldom(Gpu& gpu) const {
  DeviceState& state = gpu.state;
  if (gpu.partitions.empty()) {  // otherwise the memory of the GPU is the sum of its partitions'
    state.memory_used_bytes = memory(api_.memory_used, gpu.handle);
    state.memory_total_bytes = memory(api_.memory_total, gpu.handle);
  }
  for (Partition& partition : gpu.partitions) {
    partition.state.memory_used_bytes = memory(api_.memory_used, partition.handle);
    partition.state.memory_total_bytes = memory(api_.memory_total, partition.handle);
  }
  std::uint64_t cap = 0;
  state.power_limit_watts = succeeds(api_.power_cap, gpu.handle, 0, &cap)
                                ? within(static_cast<double>(cap) * kMicro, kMaxWatts)
                                : std::nullopt;
  // Accelerators report the junction temperature, older cards only the edge temperature.
  state.temperature_celsius = celsius(api_.temperature, gpu.handle, kSensorJunction);
  if (!state.temperature_celsius) {
    state.temperature_celsius = celsius(api_.temperature, gpu.handle, kSensorEdge);
  }
  state.memory_temperature_celsius = celsius(api_.temperature, gpu.handle, kSensorMemory);
  state.ecc_corrected.reset();
  state.ecc_uncorrected.reset();
  for (const std::uint64_t block : kEccBlocks) {
    ErrorCount errors{};
    if (succeeds(api_.ecc, gpu.handle, block, &errors)) {
      state.ecc_corrected =
          state.ecc_corrected.value_or(0) + static_cast<double>(errors.correctable);
      state.ecc_uncorrected =
          state.ecc_uncorrected.value_or(0) + static_cast<double>(errors.uncorrectable);
    }
  }
}

void RocmSmi::read_processes() {
  for (Gpu& gpu : boards_.gpus()) {
    gpu.state.processes.clear();
  }
  if (api_.processes == nullptr || api_.process_on_device == nullptr) {
    return;
  }
  std::uint32_t count = 0;
  if (api_.processes(nullptr, &count) != kSuccess || count == 0) {
    return;
  }
  std::vector<ProcessInfo> infos(std::min<std::size_t>(std::size_t{count} + 16, kMaxProcesses));
  count = static_cast<std::uint32_t>(infos.size());
  const Status status = api_.processes(infos.data(), &count);
  if (status != kSuccess && count < infos.size()) {
    return;
  }
  infos.resize(std::min<std::size_t>(count, infos.size()));
  const auto add = [&](DeviceState& state, std::uint32_t device, std::uint32_t pid,
                       std::optional<std::uint64_t> partition) {
    RoomyProcessInfo found{};
    if (api_.process_on_device(pid, device, &found) != kSuccess) {
      return;  // the process does not use this GPU
    }
    ProcessUse use{.pid = static_cast<int>(pid)};
    use.memory_bytes = within(static_cast<double>(found.info.vram_bytes), kMaxBytes);
    use.gpu_instance = partition;
    state.processes.push_back(use);
  };
  for (const ProcessInfo& info : infos) {
    if (static_cast<int>(info.pid) <= 0) {
      continue;
    }
    for (Gpu& gpu : boards_.gpus()) {
      if (gpu.partitions.empty()) {
        add(gpu.state, gpu.handle, info.pid, std::nullopt);
      }
      for (const Partition& partition : gpu.partitions) {
        add(gpu.state, partition.handle, info.pid, partition.state.gpu_instance);
      }
    }
  }
}

}  // namespace ceems::exporter::gpu::rocm
