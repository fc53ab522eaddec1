#include "exporter/gpu/library/amd/amd_smi_library.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "exporter/gpu/library/amd/amd_boards.h"
#include "exporter/gpu/library/gpu_library.h"

namespace ceems::exporter::gpu::amdsmi {
namespace {

std::optional<double> memory(GetGpuMemory* get, Handle gpu) {
  std::uint64_t bytes = 0;
  return succeeds(get, gpu, kMemoryVram, &bytes) ? within(static_cast<double>(bytes), kMaxBytes)
                                                 : std::nullopt;
}

std::optional<double> celsius(GetTempMetric* get, Handle gpu, int sensor) {
  std::int64_t value = 0;
  if (!succeeds(get, gpu, sensor, kTemperatureCurrent, &value)) {
    return std::nullopt;
  }
  const auto degrees = static_cast<double>(value);
  return within(degrees > kMaxCelsius ? degrees * 1e-3 : degrees, kMaxCelsius);
}

EngineUsage usage_of(const Api& api, Handle gpu) {
  constexpr std::uint32_t kUnknown = ~std::uint32_t{0};
  EngineUsage usage{};
  if (!succeeds(api.activity, gpu, &usage)) {
    usage.graphics = kUnknown;
    usage.memory = kUnknown;
  }
  return usage;
}

}  // namespace

AmdSmi::AmdSmi(SharedLibrary library, std::filesystem::path sys)
    : library_(std::move(library)), sys_(std::move(sys)) {}

AmdSmi::~AmdSmi() {
  stop();
}

void AmdSmi::stop() {
  boards_.clear();
  if (running_ && api_.shut_down != nullptr) {
    static_cast<void>(api_.shut_down());
  }
  running_ = false;
}

Result<> AmdSmi::start() {
  if (api_.init == nullptr || api_.sockets == nullptr || api_.processors == nullptr ||
      api_.bdf_id == nullptr) {
    return fail(ErrorCode::kNotFound,
                "{}: not AMD SMI: amdsmi_init or the functions that list devices are missing",
                library_.name());
  }
  stop();
  if (const Status status = api_.init(kInitGpus); status != kSuccess) {
    return fail(ErrorCode::kUnavailable, "amdsmi_init returned {}", status);
  }
  running_ = true;
  const auto processors = list_processors();
  if (!processors) {
    stop();
    return fail(processors.error());
  }
  for (Handle handle : *processors) {
    add_processor(handle);
  }
  boards_.finish();
  return {};
}

Result<std::vector<Handle>> AmdSmi::list_processors() const {
  std::uint32_t count = 0;
  Status status = api_.sockets(&count, nullptr);
  std::vector<Handle> sockets(std::min<std::size_t>(count, kMaxDevices));
  count = static_cast<std::uint32_t>(sockets.size());
  if (status == kSuccess && count > 0) {
    status = api_.sockets(&count, sockets.data());
  }
  if (status != kSuccess) {
    return fail(ErrorCode::kUnavailable, "amdsmi_get_socket_handles returned {}", status);
  }
  sockets.resize(std::min<std::size_t>(count, sockets.size()));
  std::vector<Handle> all;
  for (Handle socket : sockets) {
    std::uint32_t size = 0;
    if (api_.processors(socket, &size, nullptr) != kSuccess || size == 0) {
      continue;
    }
    std::vector<Handle> some(std::min<std::size_t>(size, kMaxInstances));
    size = static_cast<std::uint32_t>(some.size());
    if (api_.processors(socket, &size, some.data()) == kSuccess) {
      some.resize(std::min<std::size_t>(size, some.size()));
      std::ranges::copy_if(some, std::back_inserter(all),
                           [](Handle one) { return one != nullptr; });
    }
  }
  all.resize(std::min(all.size(), kMaxDevices * kMaxInstances));
  return all;
}

void AmdSmi::add_processor(Handle handle) {
  std::uint64_t id = 0;
  if (api_.bdf_id(handle, &id) != kSuccess) {
    return;  // a processor of another kind
  }
  const auto place = amd_place(id);
  if (!place) {
    return;
  }
  boards_.add(handle, place, [&](DeviceState& state) {
    state.uuid = amd_serial(sys_, state.address);
    AsicInfo info{};
    if (succeeds(api_.asic_info, handle, &info)) {
      state.name = text_of(info.name, sizeof(info.name));
    }
  });
}

std::vector<DeviceState> AmdSmi::list() {
  return boards_.states();
}

Result<std::vector<DeviceState>> AmdSmi::read(bool everything) {
  if (!running_) {
    return fail(ErrorCode::kUnavailable, "AMD SMI is not started");
  }
  for (Gpu& gpu : boards_.gpus()) {
    read_often(gpu);
    if (everything) {
      read_seldom(gpu);
    }
  }
  return list();
}

void AmdSmi::read_often(Gpu& gpu) const {
  DeviceState& state = gpu.state;
  std::uint64_t count = 0;
  std::uint64_t nanoseconds = 0;
  float each = 0;
  const bool counted = succeeds(api_.energy, gpu.handle, &count, &each, &nanoseconds);
  state.energy_joules = counted ? amd_joules(count, each) : std::nullopt;
  const EngineUsage usage = usage_of(api_, gpu.handle);
  state.utilisation = from_percent(usage.graphics);
  state.memory_utilisation = from_percent(usage.memory);
  const auto metrics = read_amd_metrics(sys_, state.address);
  state.power_watts.reset();
  if (metrics) {
    take_amd_metrics(*metrics, state);
  }
  std::vector<std::optional<double>> use_of_each;
  std::vector<InstanceState*> partitions;
  for (Partition& partition : gpu.partitions) {
    use_of_each.push_back(from_percent(usage_of(api_, partition.handle).graphics));
    partitions.push_back(&partition.state);
  }
  take_partition_use(metrics, use_of_each, state.utilisation, partitions);
}

void AmdSmi::read_seldom(Gpu& gpu) const {
  DeviceState& state = gpu.state;
  if (gpu.partitions.empty()) {
    state.memory_used_bytes = memory(api_.memory_used, gpu.handle);
    state.memory_total_bytes = memory(api_.memory_total, gpu.handle);
  }
  for (Partition& partition : gpu.partitions) {
    partition.state.memory_used_bytes = memory(api_.memory_used, partition.handle);
    partition.state.memory_total_bytes = memory(api_.memory_total, partition.handle);
  }
  state.temperature_celsius = celsius(api_.temperature, gpu.handle, kTemperatureHotspot);
  if (!state.temperature_celsius) {
    state.temperature_celsius = celsius(api_.temperature, gpu.handle, kTemperatureEdge);
  }
  state.memory_temperature_celsius = celsius(api_.temperature, gpu.handle, kTemperatureVram);
  ErrorCount errors{};
  const bool known = succeeds(api_.ecc, gpu.handle, &errors);
  state.ecc_corrected =
      known ? std::optional(static_cast<double>(errors.correctable)) : std::nullopt;
  state.ecc_uncorrected =
      known ? std::optional(static_cast<double>(errors.uncorrectable)) : std::nullopt;
}

}  // namespace ceems::exporter::gpu::amdsmi
