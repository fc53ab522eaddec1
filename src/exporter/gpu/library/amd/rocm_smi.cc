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
  return get != nullptr && get(device, &value) == kSuccess ? from_percent(value) : std::nullopt;
}

std::optional<double> celsius(DevTempMetricGet* get, std::uint32_t device, std::uint32_t sensor) {
  std::int64_t value = 0;
  return get != nullptr && get(device, sensor, kTemperatureCurrent, &value) == kSuccess
             ? within(static_cast<double>(value) * 1e-3, kMaxCelsius)
             : std::nullopt;
}

std::string serial_number(const Api& api, std::uint32_t device) {
  std::array<char, kTextSize> buffer{};
  if (api.serial != nullptr && api.serial(device, buffer.data(), buffer.size()) == kSuccess) {
    if (auto text = text_of(buffer.data(), buffer.size()); !text.empty()) {
      return text;
    }
  }
  std::uint64_t id = 0;
  if (api.unique_id != nullptr && api.unique_id(device, &id) == kSuccess && id != 0) {
    return fmt::format("{:#018x}", id);
  }
  return {};
}

}  // namespace

Api::Api(const SharedLibrary& l)
    : init(l.symbol<Init>("rsmi_init")),
      shut_down(l.symbol<ShutDown>("rsmi_shut_down")),
      count(l.symbol<NumMonitorDevices>("rsmi_num_monitor_devices")),
      pci_id(l.symbol<DevNumberGet>("rsmi_dev_pci_id_get")),
      unique_id(l.symbol<DevNumberGet>("rsmi_dev_unique_id_get")),
      serial(l.symbol<DevSerialNumberGet>("rsmi_dev_serial_number_get")),
      name(l.symbol<DevNameGet>("rsmi_dev_name_get")),
      power(l.symbol<DevPowerGet>("rsmi_dev_power_get")),
      average_power(l.symbol<DevSensorPowerGet>("rsmi_dev_power_ave_get")),
      power_cap(l.symbol<DevSensorPowerGet>("rsmi_dev_power_cap_get")),
      energy(l.symbol<DevEnergyCountGet>("rsmi_dev_energy_count_get")),
      busy(l.symbol<DevPercentGet>("rsmi_dev_busy_percent_get")),
      memory_busy(l.symbol<DevPercentGet>("rsmi_dev_memory_busy_percent_get")),
      memory_used(l.symbol<DevMemoryGet>("rsmi_dev_memory_usage_get")),
      memory_total(l.symbol<DevMemoryGet>("rsmi_dev_memory_total_get")),
      temperature(l.symbol<DevTempMetricGet>("rsmi_dev_temp_metric_get")),
      ecc(l.symbol<DevEccCountGet>("rsmi_dev_ecc_count_get")),
      processes(l.symbol<ComputeProcessInfoGet>("rsmi_compute_process_info_get")),
      process_on_device(
          l.symbol<ComputeProcessInfoByDeviceGet>("rsmi_compute_process_info_by_device_get")) {}

RocmSmi::RocmSmi(SharedLibrary library, std::filesystem::path sys)
    : library_(std::move(library)), sys_(std::move(sys)), api_(library_) {}

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
  const bool has_id = api_.pci_id != nullptr && api_.pci_id(number, &id) == kSuccess;
  boards_.add(number, has_id ? amd_place(id) : std::nullopt, [&](DeviceState& state) {
    state.uuid = serial_number(api_, number);
    std::array<char, kTextSize> buffer{};
    if (api_.name != nullptr && api_.name(number, buffer.data(), buffer.size()) == kSuccess) {
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
  const bool powered =
      (api_.power != nullptr && api_.power(gpu.handle, &microwatts, &type) == kSuccess) ||
      (api_.average_power != nullptr && api_.average_power(gpu.handle, 0, &microwatts) == kSuccess);
  state.power_watts =
      powered ? within(static_cast<double>(microwatts) * kMicro, kMaxWatts) : std::nullopt;
  std::uint64_t count = 0;
  std::uint64_t nanoseconds = 0;
  float each = 0;
  const bool counted =
      api_.energy != nullptr && api_.energy(gpu.handle, &count, &each, &nanoseconds) == kSuccess;
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

void RocmSmi::read_memory(std::uint32_t number,
                          std::optional<double>& used,
                          std::optional<double>& total) const {
  std::uint64_t bytes = 0;
  used = api_.memory_used != nullptr && api_.memory_used(number, kMemoryVram, &bytes) == kSuccess
             ? within(static_cast<double>(bytes), kMaxBytes)
             : std::nullopt;
  total = api_.memory_total != nullptr && api_.memory_total(number, kMemoryVram, &bytes) == kSuccess
              ? within(static_cast<double>(bytes), kMaxBytes)
              : std::nullopt;
}

void RocmSmi::read_seldom(Gpu& gpu) const {
  DeviceState& state = gpu.state;
  read_memory(gpu.handle, state.memory_used_bytes, state.memory_total_bytes);
  for (Partition& partition : gpu.partitions) {
    read_memory(partition.handle, partition.state.memory_used_bytes,
                partition.state.memory_total_bytes);
  }
  if (!gpu.partitions.empty()) {  // the memory of the GPU is the sum of its partitions'
    state.memory_used_bytes.reset();
    state.memory_total_bytes.reset();
  }
  std::uint64_t cap = 0;
  state.power_limit_watts =
      api_.power_cap != nullptr && api_.power_cap(gpu.handle, 0, &cap) == kSuccess
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
    if (api_.ecc != nullptr && api_.ecc(gpu.handle, block, &errors) == kSuccess) {
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
