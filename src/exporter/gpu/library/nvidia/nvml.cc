#include "exporter/gpu/library/nvidia/nvml.h"

#include <algorithm>
#include <array>
#include <set>

#include "exporter/gpu/library/gpu_library.h"
#include "exporter/gpu/library/nvidia/nvml_errors.h"

namespace ceems::exporter::gpu::nvml {
namespace {

constexpr std::size_t kTextSize = 96;
constexpr std::size_t kMaxEvents = 64;  // per reading
constexpr std::size_t kMaxXids = 64;    // different numbers
constexpr double kKibi = 1024;

struct Reason {
  unsigned long long bit;
  std::string_view name;
};
/// The values of nvmlClocksEventReasons that slow a GPU down or explain why it is slow.
constexpr std::array kReasons = {
    Reason{0x1, "idle"},
    Reason{0x2, "application_clocks"},
    Reason{0x4, "power_cap"},
    Reason{0x8, "hardware_slowdown"},
    Reason{0x10, "sync_boost"},
    Reason{0x20, "software_thermal"},
    Reason{0x40, "hardware_thermal"},
    Reason{0x80, "power_brake"},
    Reason{0x100, "display"},
};

struct ClockName {
  int type;
  std::string_view name;
};
constexpr std::array kClocks = {
    ClockName{kClockGraphics, "graphics"},
    ClockName{kClockSm, "sm"},
    ClockName{kClockMemory, "memory"},
    ClockName{kClockVideo, "video"},
};

std::string text(DeviceGetText* get, Device device) {
  std::array<char, kTextSize> buffer{};
  if (!succeeds(get, device, buffer.data(), buffer.size())) {
    return {};
  }
  return text_of(buffer.data(), buffer.size());
}

std::optional<unsigned> number(DeviceGetUnsigned* get, Device device) {
  unsigned value = 0;
  if (!succeeds(get, device, &value)) {
    return std::nullopt;
  }
  return value;
}

std::optional<double> scaled(std::optional<unsigned> value, double factor, double max) {
  return value ? within(*value * factor, max) : std::nullopt;
}

}  // namespace

Nvml::Nvml(SharedLibrary library) : library_(std::move(library)) {}

Nvml::~Nvml() {
  stop();
}

void Nvml::stop() {
  gpus_.clear();
  if (events_ != nullptr && api_.event_set_free != nullptr) {
    static_cast<void>(api_.event_set_free(events_));
  }
  events_ = nullptr;
  if (running_ && api_.shutdown != nullptr) {
    static_cast<void>(api_.shutdown());
  }
  running_ = false;
}

Result<> Nvml::start() {
  if (api_.init == nullptr || api_.get_count == nullptr || api_.get_handle == nullptr) {
    return fail(ErrorCode::kNotFound,
                "{}: not NVML: nvmlInit_v2 or the functions that list devices are missing",
                library_.name());
  }
  stop();
  if (const Return result = api_.init(); result != kSuccess) {
    return fail(ErrorCode::kUnavailable, "nvmlInit_v2: {}", describe(result));
  }
  running_ = true;
  unsigned count = 0;
  if (const Return result = api_.get_count(&count); result != kSuccess) {
    stop();
    return fail(ErrorCode::kUnavailable, "nvmlDeviceGetCount_v2: {}", describe(result));
  }
  if (count > kMaxDevices) {
    stop();
    return fail(ErrorCode::kParse, "nvmlDeviceGetCount_v2 returned {} devices", count);
  }
  if (!succeeds(api_.event_set_create, &events_)) {
    events_ = nullptr;
  }
  std::set<std::string> uuids;
  for (unsigned i = 0; i < count; ++i) {
    Gpu gpu;
    Return result = api_.get_handle(i, &gpu.handle);
    if (result == kSuccess) {
      result = identify(i, gpu);
    }
    if (is_failure(result)) {  // it keeps its number
      gpu = {};
      gpu.state.uuid = fmt::format("nvidia{}", i);
      gpu.state.lost = describe(result);
    } else if (gpu.state.uuid.empty()) {
      continue;  // not available in this container
    }
    if (!uuids.insert(gpu.state.uuid).second) {
      gpu.state.uuid += fmt::format("#{}", i);
      uuids.insert(gpu.state.uuid);
    }
    gpus_.push_back(std::move(gpu));
  }
  return {};
}

/// The error of a GPU that does not even say which it is.
Return Nvml::identify(unsigned index, Gpu& gpu) {
  DeviceState& state = gpu.state;
  state.vendor = Vendor::kNvidia;
  std::array<char, kTextSize> buffer{};
  if (api_.get_uuid != nullptr) {
    const Return result = api_.get_uuid(gpu.handle, buffer.data(), buffer.size());
    if (is_failure(result)) {
      return result;
    }
    state.uuid = result == kSuccess ? text_of(buffer.data(), buffer.size()) : std::string();
  }
  if (state.uuid.empty()) {
    state.uuid = fmt::format("nvidia{}", index);
  }
  state.name = text(api_.get_name, gpu.handle);
  state.driver_minor = number(api_.get_minor, gpu.handle);
  const unsigned mode = number(api_.get_virtualization, gpu.handle).value_or(0);
  state.vgpu = mode == kVirtualizationVgpu || mode == kVirtualizationHostVgpu;
  PciInfo pci{};
  if (succeeds(api_.get_pci_info, gpu.handle, &pci)) {
    state.address = parse_pci_address(text_of(pci.bus_id, sizeof(pci.bus_id)));
  }
  gpu.has_gpm = Gpm::supported(api_.gpm, gpu.handle);
  if (events_ != nullptr && api_.register_events != nullptr) {
    // Consumer GPUs refuse this and then have no such series.
    static_cast<void>(api_.register_events(gpu.handle, kEventXid, events_));
  }
  return kSuccess;
}

std::vector<DeviceState> Nvml::list() {
  std::vector<DeviceState> states;
  for (Gpu& gpu : gpus_) {
    if (gpu.handle != nullptr) {
      list_instances(gpu);
    }
    states.push_back(with_instances(gpu));
  }
  return states;
}

DeviceState Nvml::with_instances(const Gpu& gpu) {
  DeviceState state = gpu.state;
  for (const MigDevice& instance : gpu.instances) {
    state.instances.push_back(instance.state);
  }
  return state;
}

Result<std::vector<DeviceState>> Nvml::read(bool everything) {
  if (!running_) {
    return fail(ErrorCode::kUnavailable, "NVML is not started");
  }
  std::vector<DeviceState> states;
  states.reserve(gpus_.size());
  for (Gpu& gpu : gpus_) {
    states.push_back(gpu.handle == nullptr ? gpu.state : read_device(gpu, everything));
  }
  read_events();
  for (DeviceState& state : states) {
    if (const auto known = xids_.find(state.uuid); known != xids_.end()) {
      state.xids = known->second;
    }
    if (const auto known = errors_.find(state.uuid); known != errors_.end()) {
      state.errors = known->second;
    }
  }
  return states;
}

/// A GPU of which a call says so is lost, and one that fails at every call.
DeviceState Nvml::read_device(Gpu& gpu, bool everything) {
  gpu.answered = false;
  gpu.failure = kSuccess;
  const auto counted = gpu.state.energy_joules;
  if (everything) {
    list_instances(gpu);
  }
  read_often(gpu);
  const bool fatal = gpu.failure == kGpuIsLost || gpu.failure == kUninitialized;
  if (fatal || (gpu.failure != kSuccess && !gpu.answered)) {
    gpu.state.energy_joules = counted;
    return as_lost(with_instances(gpu), describe(gpu.failure));
  }
  if (everything) {
    read_seldom(gpu);
  }
  read_instances(gpu);
  read_processes(gpu);
  return with_instances(gpu);
}

/// Whether the call succeeded. Counts failures.
bool Nvml::took(Gpu& gpu, Return result) const {
  if (result == kSuccess) {
    gpu.answered = true;
  } else if (is_failure(result)) {
    gpu.failure = result;
    Errors& errors = errors_[gpu.state.uuid];
    const auto name = error_name(result);
    const auto known = std::ranges::find(errors, name, &Errors::value_type::first);
    if (known != errors.end()) {
      ++known->second;
    } else if (errors.size() < kMaxXids) {
      errors.emplace_back(name, 1);
    }
  }
  return result == kSuccess;
}

void Nvml::read_often(Gpu& gpu) const {
  DeviceState& state = gpu.state;
  unsigned milliwatts = 0;
  const bool powered = took(gpu, api_.get_power, gpu.handle, &milliwatts);
  state.power_watts = powered ? within(milliwatts * 1e-3, kMaxWatts) : std::nullopt;
  unsigned long long millijoules = kNoValue;
  const bool counted =
      took(gpu, api_.get_energy, gpu.handle, &millijoules) && millijoules != kNoValue;
  state.energy_joules =
      counted ? std::optional(static_cast<double>(millijoules) * 1e-3) : std::nullopt;
  Utilization utilization{};
  const bool known = took(gpu, api_.get_utilization, gpu.handle, &utilization);
  state.utilisation = known ? from_percent(utilization.gpu) : std::nullopt;
  state.memory_utilisation = known ? from_percent(utilization.memory) : std::nullopt;
  if (gpu.has_gpm && !state.split) {
    if (gpu.gpm == nullptr) {
      gpu.gpm = std::make_unique<Gpm>(api_.gpm, gpu.handle, std::nullopt);
    }
    state.activity = gpu.gpm->read();
  } else {
    gpu.gpm.reset();
    state.activity = {};
  }
  const auto sampled = gpu.busy.read(api_.get_samples, gpu.handle);
  state.busy = state.activity.graphics ? state.activity.graphics : sampled;
}

void Nvml::read_seldom(Gpu& gpu) const {
  DeviceState& state = gpu.state;
  state.power_limit_watts = scaled(number(api_.get_power_limit, gpu.handle), 1e-3, kMaxWatts);
  state.memory_used_bytes.reset();
  state.memory_total_bytes.reset();
  MemoryV2 memory_v2{.version = kMemoryV2Version, .total = 0, .reserved = 0, .free = 0, .used = 0};
  Memory memory{};
  // `used` of version 2 excludes the reserved memory.
  if (succeeds(api_.get_memory_v2, gpu.handle, &memory_v2)) {
    state.memory_used_bytes = within(static_cast<double>(memory_v2.used), kMaxBytes);
    state.memory_total_bytes = within(static_cast<double>(memory_v2.total), kMaxBytes);
  } else if (succeeds(api_.get_memory, gpu.handle, &memory)) {
    state.memory_used_bytes = within(static_cast<double>(memory.used), kMaxBytes);
    state.memory_total_bytes = within(static_cast<double>(memory.total), kMaxBytes);
  }
  unsigned celsius = 0;
  const bool warm = took(gpu, api_.get_temperature, gpu.handle, kTemperatureGpu, &celsius);
  state.temperature_celsius = warm ? within(celsius, kMaxCelsius) : std::nullopt;
  read_clocks(gpu);
  for (const int type : {kEccCorrected, kEccUncorrected}) {
    unsigned long long errors = 0;
    const bool known = took(gpu, api_.get_ecc_errors, gpu.handle, type, kEccAggregate, &errors) &&
                       errors != kNoValue;
    (type == kEccCorrected ? state.ecc_corrected : state.ecc_uncorrected) =
        known ? std::optional(static_cast<double>(errors)) : std::nullopt;
  }
  read_fields(gpu);
}

void Nvml::read_clocks(Gpu& gpu) const {
  DeviceState& state = gpu.state;
  state.clocks_hertz.clear();
  for (const ClockName& clock : kClocks) {
    unsigned megahertz = 0;
    if (took(gpu, api_.get_clock, gpu.handle, clock.type, &megahertz)) {
      if (const auto hertz = within(megahertz * 1e6, kMaxHertz)) {
        state.clocks_hertz.emplace_back(clock.name, *hertz);
      }
    }
  }
  state.clock_reasons.clear();
  unsigned long long reasons = 0;
  if (succeeds(api_.get_clock_reasons, gpu.handle, &reasons)) {
    for (const Reason& reason : kReasons) {
      state.clock_reasons.emplace_back(reason.name, (reasons & reason.bit) != 0);
    }
  }
}

std::optional<double> Nvml::field(const FieldValue& value, double factor) const {
  if (value.result != kSuccess) {
    return std::nullopt;
  }
  switch (value.value_type) {
    case kDouble:
      return within(value.value.d * factor, 1e18);
    case kUnsigned:
      return value.value.ui * factor;
    case kUnsignedLong:
      return static_cast<double>(value.value.ul) * factor;
    case kUnsignedLongLong:
      return value.value.ull == kNoValue
                 ? std::nullopt
                 : std::optional(static_cast<double>(value.value.ull) * factor);
    case kSigned64:
      return within(static_cast<double>(value.value.sll) * factor, 1e18);
    case kInt:
      return within(value.value.si * factor, 1e18);
    default:
      return std::nullopt;
  }
}

void Nvml::read_fields(Gpu& gpu) const {
  DeviceState& state = gpu.state;
  state.link = {};
  state.pcie = {};
  state.memory_temperature_celsius.reset();
  if (api_.get_fields == nullptr) {
    read_pcie_rates(gpu);
    return;
  }
  std::array<FieldValue, 5> values{};
  constexpr std::array<unsigned, 5> kIds = {kFieldMemoryTemperature, kFieldNvlinkDataSent,
                                            kFieldNvlinkDataReceived, kFieldPcieSent,
                                            kFieldPcieReceived};
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i].field_id = kIds[i];
    values[i].result = kNotSupported;  // for a library that does not set them
  }
  values[1].scope_id = kAllLinks;
  values[2].scope_id = kAllLinks;
  if (api_.get_fields(gpu.handle, static_cast<int>(values.size()), values.data()) == kSuccess) {
    if (const auto celsius = field(values[0], 1)) {
      state.memory_temperature_celsius = within(*celsius, kMaxCelsius);
    }
    state.link.sent_bytes = field(values[1], kKibi);
    state.link.received_bytes = field(values[2], kKibi);
    state.pcie.sent_bytes = field(values[3], 1);
    state.pcie.received_bytes = field(values[4], 1);
  }
  if (!state.pcie.sent_bytes && !state.pcie.received_bytes) {
    read_pcie_rates(gpu);
  }
}

/// Takes 20 ms for each direction, so it is only used if there are no counters.
void Nvml::read_pcie_rates(Gpu& gpu) const {
  if (api_.get_pcie_throughput == nullptr) {
    return;
  }
  for (const int direction : {kPcieSent, kPcieReceived}) {
    unsigned rate = 0;
    if (api_.get_pcie_throughput(gpu.handle, direction, &rate) == kSuccess) {
      Traffic& pcie = gpu.state.pcie;
      (direction == kPcieSent ? pcie.sent_bytes_per_second : pcie.received_bytes_per_second) =
          rate * kKibi;
    }
  }
}

void Nvml::list_instances(Gpu& gpu) const {
  unsigned mode = 0;
  unsigned pending = 0;
  const Return answer =
      api_.get_mig_mode == nullptr ? kNotSupported : api_.get_mig_mode(gpu.handle, &mode, &pending);
  if (is_failure(answer)) {
    return;  // the instances keep their numbers
  }
  gpu.state.split = answer == kSuccess && mode == 1;
  std::vector<MigDevice> found;
  const auto count = gpu.state.split ? number(api_.get_max_instances, gpu.handle) : std::nullopt;
  for (unsigned i = 0;
       api_.get_instance != nullptr && i < std::min<std::size_t>(count.value_or(0), kMaxInstances);
       ++i) {
    MigDevice instance;
    if (const Return result = api_.get_instance(gpu.handle, i, &instance.handle);
        is_failure(result)) {
      return;
    } else if (result != kSuccess) {
      continue;  // an unused index
    }
    instance.state.number = i;
    instance.state.uuid = text(api_.get_uuid, instance.handle);
    instance.gpu_instance = number(api_.get_gpu_instance_id, instance.handle).value_or(kNoInstance);
    instance.state.gpu_instance = instance.gpu_instance;
    instance.state.compute_instance =
        number(api_.get_compute_instance_id, instance.handle).value_or(0);
    DeviceAttributes attributes{};
    if (succeeds(api_.get_attributes, instance.handle, &attributes)) {
      instance.state.sm_count = attributes.multiprocessor_count;
    }
    found.push_back(std::move(instance));
  }
  std::erase_if(gpu.instance_gpm, [&](const auto& known) {
    return std::none_of(found.begin(), found.end(), [&](const MigDevice& instance) {
      return instance.gpu_instance == known.first;
    });
  });
  gpu.instances = std::move(found);
}

void Nvml::read_instances(Gpu& gpu) const {
  std::map<unsigned, Activity> done;  // compute instances can share a GPU instance
  for (MigDevice& instance : gpu.instances) {
    Memory memory{};
    if (succeeds(api_.get_memory, instance.handle, &memory)) {
      instance.state.memory_used_bytes = within(static_cast<double>(memory.used), kMaxBytes);
      instance.state.memory_total_bytes = within(static_cast<double>(memory.total), kMaxBytes);
    }
    if (!gpu.has_gpm || instance.gpu_instance == kNoInstance) {
      continue;
    }
    auto [activity, first] = done.try_emplace(instance.gpu_instance);
    if (first) {
      auto& gpm = gpu.instance_gpm[instance.gpu_instance];
      if (gpm == nullptr) {
        gpm = std::make_unique<Gpm>(api_.gpm, gpu.handle, instance.gpu_instance);
      }
      activity->second = gpm->read();
    }
    instance.state.activity = activity->second;
    instance.state.utilisation = activity->second.sm_active;
  }
}

void Nvml::read_events() {
  if (events_ == nullptr || api_.event_set_wait == nullptr) {
    return;
  }
  for (std::size_t i = 0; i < kMaxEvents; ++i) {
    EventData event{};
    if (api_.event_set_wait(events_, &event, 0) != kSuccess) {
      return;  // kTimeout: no event is waiting
    }
    const auto gpu = std::find_if(gpus_.begin(), gpus_.end(), [&](const Gpu& candidate) {
      return candidate.handle == event.device;
    });
    if (event.event_type != kEventXid || gpu == gpus_.end()) {
      continue;
    }
    auto& xids = xids_[gpu->state.uuid];
    const auto known = std::find_if(xids.begin(), xids.end(),
                                    [&](const auto& xid) { return xid.first == event.event_data; });
    if (known != xids.end()) {
      ++known->second;
    } else if (xids.size() < kMaxXids) {
      xids.emplace_back(event.event_data, 1);
    }
  }
}

}  // namespace ceems::exporter::gpu::nvml
