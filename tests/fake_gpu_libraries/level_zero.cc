// Stands in for libze_loader.so.1 in tests; see scenario.h. Handles: device i is (i + 1) * 1000; a
// part of it adds its kind (100: power, 200: engine, 300: memory, 400: temperature, 500: frequency,
// 600: fabric port)
// and its number + 1.
#include <algorithm>
#include <cstdint>
#include <string>

#include "exporter/gpu/library/intel/level_zero_api.h"
#include "scenario.h"

namespace {

using namespace ceems::exporter::gpu::level_zero;  // NOLINT(google-build-using-namespace): its part
using fake_gpu::Call;
using fake_gpu::pairs;
using fake_gpu::Scenario;

std::uintptr_t id(Handle handle) {
  return reinterpret_cast<std::uintptr_t>(handle);
}

std::string device_of(Handle handle) {
  return std::to_string(id(handle) / 1000 - 1);
}

/// "0.engine1" of the handle of engine 1 of device 0.
std::string part_of(Handle handle, const char* name) {
  return device_of(handle) + "." + name + std::to_string(id(handle) % 100 - 1);
}

Status list(std::uint64_t known, std::uintptr_t first, std::uint32_t* count, Handle* handles) {
  if (handles == nullptr) {
    *count = static_cast<std::uint32_t>(known);
    return kSuccess;
  }
  for (std::uint32_t i = 0; i < *count && i < known; ++i) {
    handles[i] = reinterpret_cast<Handle>(first + i);
  }
  *count = static_cast<std::uint32_t>(std::min<std::uint64_t>(known, *count));
  return kSuccess;
}

Status list_parts(
    Handle device, const char* name, std::uintptr_t kind, std::uint32_t* count, Handle* handles) {
  const Scenario scenario;
  return list(scenario.whole(device_of(device) + "." + name).value_or(0), id(device) + kind + 1,
              count, handles);
}

double number(const std::string& key) {
  return Scenario().number(key).value_or(0);
}

std::uint64_t whole(const std::string& key) {
  return Scenario().whole(key).value_or(0);
}

Status answer(const char* function) {
  return Call(function).answer;
}

}  // namespace

extern "C" {

Status zesInit(std::uint32_t /*flags*/) {
  return answer("zesInit");
}
Status zesDriverGet(std::uint32_t* count, Handle* drivers) {
  const std::uint64_t known = Scenario().whole("drivers").value_or(1);
  if (drivers != nullptr && *count > 0) {
    drivers[0] = reinterpret_cast<Handle>(std::uintptr_t{1});
  }
  *count = static_cast<std::uint32_t>(known);
  return answer("zesDriverGet");
}
Status zesDeviceGet(Handle /*driver*/, std::uint32_t* count, Handle* devices) {
  const std::uint64_t known = whole("count");
  for (std::uint32_t i = 0; devices != nullptr && i < *count; ++i) {
    devices[i] = reinterpret_cast<Handle>((std::uintptr_t{i} + 1) * 1000);
  }
  *count = static_cast<std::uint32_t>(known);
  return answer("zesDeviceGet");
}
Status zesDeviceGetProperties(Handle device, DeviceProperties* properties) {
  if (const auto name = Scenario().text(device_of(device) + ".name")) {
    fake_gpu::put(*name, properties->core.name, sizeof(properties->core.name));
  }
  return properties->type == kDeviceProperties && properties->core.type == kCoreDeviceProperties
             ? answer("zesDeviceGetProperties")
             : 1;
}
Status zesDeviceEnumFabricPorts(Handle device, std::uint32_t* count, Handle* handles) {
  return list_parts(device, "ports", 600, count, handles);
}
Status zesFabricPortGetThroughput(Handle port, FabricPortThroughput* throughput) {
  throughput->sent_bytes = whole(part_of(port, "link_sent"));
  throughput->received_bytes = whole(part_of(port, "link_received"));
  return answer("zesFabricPortGetThroughput");
}
Status zesDevicePciGetProperties(Handle device, PciProperties* properties) {
  properties->address = {.domain = 0,
                         .bus = static_cast<std::uint32_t>(whole(device_of(device) + ".bus")),
                         .device = static_cast<std::uint32_t>(whole(device_of(device) + ".slot")),
                         .function = 0};
  return properties->type == kPciProperties ? answer("zesDevicePciGetProperties") : 1;
}
Status zesDevicePciGetStats(Handle device, PciStats* stats) {
  stats->sent_bytes = whole(device_of(device) + ".sent");
  stats->received_bytes = whole(device_of(device) + ".received");
  return answer("zesDevicePciGetStats");
}
Status zesDeviceEnumPowerDomains(Handle device, std::uint32_t* count, Handle* handles) {
  return list_parts(device, "powers", 100, count, handles);
}
/// All but the last are of tiles.
Status zesPowerGetProperties(Handle domain, PowerProperties* properties) {
  const auto number_of = id(domain) % 100;
  properties->on_subdevice = number_of < whole(device_of(domain) + ".powers") ? 1 : 0;
  properties->default_limit_milliwatts =
      static_cast<std::int32_t>(whole(device_of(domain) + ".limit"));
  return properties->type == kPowerProperties ? kSuccess : 1;
}
Status zesPowerGetEnergyCounter(Handle domain, EnergyCounter* counter) {
  counter->microjoules = whole(part_of(domain, "energy"));
  counter->microseconds = whole("time");
  return answer("zesPowerGetEnergyCounter");
}
Status zesDeviceEnumEngineGroups(Handle device, std::uint32_t* count, Handle* handles) {
  return list_parts(device, "engines", 200, count, handles);
}
Status zesEngineGetProperties(Handle engine, EngineProperties* properties) {
  properties->engine = static_cast<std::int32_t>(whole(part_of(engine, "engine_kind")));
  properties->on_subdevice = static_cast<std::uint8_t>(whole(part_of(engine, "engine_tile")));
  return properties->type == kEngineProperties ? kSuccess : 1;
}
Status zesEngineGetActivity(Handle engine, EngineStats* stats) {
  stats->active_microseconds = whole(part_of(engine, "active"));
  stats->timestamp_microseconds = whole("time");
  return answer("zesEngineGetActivity");
}
Status zesDeviceEnumMemoryModules(Handle device, std::uint32_t* count, Handle* handles) {
  return list_parts(device, "memories", 300, count, handles);
}
Status zesMemoryGetState(Handle memory, MemoryState* state) {
  state->size = whole(part_of(memory, "size"));
  state->free = whole(part_of(memory, "free"));
  return state->type == kMemoryState ? answer("zesMemoryGetState") : 1;
}
Status zesDeviceEnumTemperatureSensors(Handle device, std::uint32_t* count, Handle* handles) {
  return list_parts(device, "sensors", 400, count, handles);
}
Status zesTemperatureGetProperties(Handle sensor, TemperatureProperties* properties) {
  properties->sensor = static_cast<std::int32_t>(whole(part_of(sensor, "sensor_kind")));
  return properties->type == kTemperatureProperties ? kSuccess : 1;
}
Status zesTemperatureGetState(Handle sensor, double* celsius) {
  *celsius = number(part_of(sensor, "celsius"));
  return answer("zesTemperatureGetState");
}
Status zesDeviceEnumFrequencyDomains(Handle device, std::uint32_t* count, Handle* handles) {
  return list_parts(device, "frequencies", 500, count, handles);
}
Status zesFrequencyGetProperties(Handle domain, FrequencyProperties* properties) {
  properties->domain = static_cast<std::int32_t>(whole(part_of(domain, "frequency_kind")));
  return properties->type == kFrequencyProperties ? kSuccess : 1;
}
Status zesFrequencyGetState(Handle domain, FrequencyState* state) {
  state->actual = number(part_of(domain, "megahertz"));
  state->throttle_reasons = static_cast<std::uint32_t>(whole(part_of(domain, "reasons")));
  return state->type == kFrequencyState ? answer("zesFrequencyGetState") : 1;
}
Status zesDeviceProcessesGetState(Handle device, std::uint32_t* count, ProcessState* processes) {
  const auto known = pairs(Scenario().text(device_of(device) + ".processes"));
  std::uint32_t i = 0;
  for (const auto& [pid, bytes] : known) {
    if (processes != nullptr && i < *count) {
      processes[i].pid = static_cast<std::uint32_t>(pid);
      processes[i++].memory_bytes = bytes;
    }
  }
  *count = static_cast<std::uint32_t>(
      Scenario().whole("process_count").value_or(processes == nullptr ? known.size() : i));
  return answer("zesDeviceProcessesGetState");
}

}  // extern "C"
