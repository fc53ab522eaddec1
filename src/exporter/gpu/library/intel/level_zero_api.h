#pragma once

#include <cstdint>

// The part of Level Zero's system management that is used, declared from the oneAPI Level Zero
// Specification 1.9, Sysman (https://oneapi-src.github.io/level-zero-spec/). Structures that the
// library fills in start with their type and a pointer to extensions, which is null here.
namespace ceems::exporter::gpu::level_zero {

using Status = std::int32_t;
inline constexpr Status kSuccess = 0;

using Handle = void*;  // driver, device, power domain, engine group, ...

enum StructureType : std::int32_t {
  kDeviceProperties = 0x1,
  kPciProperties = 0x2,
  kEngineProperties = 0x5,
  kFrequencyProperties = 0x9,
  kPowerProperties = 0xd,
  kTemperatureProperties = 0x14,
  kProcessState = 0x16,
  kFrequencyState = 0x1b,
  kMemoryState = 0x1e,
};

inline constexpr std::int32_t kCoreDeviceProperties = 0x3;  // in the numbering of the core API

struct CoreDeviceProperties {
  std::int32_t type;
  void* next;
  std::int32_t kind;
  std::uint32_t vendor_id;
  std::uint32_t device_id;
  std::uint32_t flags;
  std::uint32_t subdevice_id;
  std::uint32_t core_clock_megahertz;
  std::uint64_t max_allocation;
  std::uint32_t max_hardware_contexts;
  std::uint32_t max_queue_priority;
  std::uint32_t threads_per_unit;
  std::uint32_t unit_width;
  std::uint32_t units_per_subslice;
  std::uint32_t subslices_per_slice;
  std::uint32_t slices;
  std::uint64_t timer_resolution;
  std::uint32_t timestamp_bits;
  std::uint32_t kernel_timestamp_bits;
  std::uint8_t uuid[16];
  char name[256];
};
struct DeviceProperties {
  std::int32_t type;
  void* next;
  CoreDeviceProperties core;
  std::uint32_t subdevices;
  char serial_number[64];
  char board_number[64];
  char brand_name[64];
  char model_name[64];
  char vendor_name[64];
  char driver_version[64];
};

struct PciAddressParts {
  std::uint32_t domain;
  std::uint32_t bus;
  std::uint32_t device;
  std::uint32_t function;
};
struct PciSpeed {
  std::int32_t generation;
  std::int32_t width;
  std::int64_t max_bandwidth;
};
struct PciProperties {
  std::int32_t type;
  void* next;
  PciAddressParts address;
  PciSpeed max_speed;
  std::uint8_t have_bandwidth_counters;
  std::uint8_t have_packet_counters;
  std::uint8_t have_replay_counters;
};
struct PciStats {
  std::uint64_t timestamp;
  std::uint64_t replay_counter;
  std::uint64_t packet_counter;
  std::uint64_t received_bytes;
  std::uint64_t sent_bytes;
  PciSpeed speed;
};

struct PowerProperties {
  std::int32_t type;
  void* next;
  std::uint8_t on_subdevice;
  std::uint32_t subdevice;
  std::uint8_t can_control;
  std::uint8_t is_threshold_supported;
  std::int32_t default_limit_milliwatts;
  std::int32_t min_limit;
  std::int32_t max_limit;
};
struct EnergyCounter {
  std::uint64_t microjoules;
  std::uint64_t microseconds;
};

struct EngineProperties {
  std::int32_t type;
  void* next;
  std::int32_t engine;
  std::uint8_t on_subdevice;
  std::uint32_t subdevice;
};
inline constexpr std::int32_t kEngineAll = 0;
inline constexpr std::int32_t kEngineComputeAll = 1;
struct EngineStats {
  std::uint64_t active_microseconds;
  std::uint64_t timestamp_microseconds;
};

struct MemoryState {
  std::int32_t type;
  const void* next;
  std::int32_t health;
  std::uint64_t free;
  std::uint64_t size;
};

struct TemperatureProperties {
  std::int32_t type;
  void* next;
  std::int32_t sensor;
  std::uint8_t on_subdevice;
  std::uint32_t subdevice;
  double max;
  std::uint8_t is_critical_supported;
  std::uint8_t is_threshold1_supported;
  std::uint8_t is_threshold2_supported;
};
inline constexpr std::int32_t kSensorGlobal = 0;
inline constexpr std::int32_t kSensorGpu = 1;
inline constexpr std::int32_t kSensorMemory = 2;

struct FrequencyProperties {
  std::int32_t type;
  void* next;
  std::int32_t domain;
  std::uint8_t on_subdevice;
  std::uint32_t subdevice;
  std::uint8_t can_control;
  std::uint8_t is_event_supported;
  double min;
  double max;
};
inline constexpr std::int32_t kFrequencyGpu = 0;
inline constexpr std::int32_t kFrequencyMemory = 1;
struct FrequencyState {
  std::int32_t type;
  const void* next;
  double voltage;
  double request;
  double tdp;
  double efficient;
  double actual;  // MHz
  std::uint32_t throttle_reasons;
};

/// Totals since the driver was loaded. This structure has no type.
struct FabricPortThroughput {
  std::uint64_t timestamp;
  std::uint64_t received_bytes;
  std::uint64_t sent_bytes;
};

struct ProcessState {
  std::int32_t type;
  const void* next;
  std::uint32_t pid;
  std::uint64_t memory_bytes;
  std::uint64_t shared_bytes;
  std::uint32_t engines;
};

extern "C" {
using Init = Status(std::uint32_t flags);
using DriverGet = Status(std::uint32_t* count, Handle* drivers);
/// Devices of a driver; power domains, engine groups, fabric ports, ... of a device. Called first
/// without an array, then with one.
using Enumerate = Status(Handle of, std::uint32_t* count, Handle* handles);
using DeviceGetProperties = Status(Handle device, DeviceProperties* properties);
using FabricPortGetThroughput = Status(Handle port, FabricPortThroughput* throughput);
using DevicePciGetProperties = Status(Handle device, PciProperties* properties);
using DevicePciGetStats = Status(Handle device, PciStats* stats);
using PowerGetProperties = Status(Handle domain, PowerProperties* properties);
using PowerGetEnergyCounter = Status(Handle domain, EnergyCounter* counter);
using EngineGetProperties = Status(Handle engine, EngineProperties* properties);
using EngineGetActivity = Status(Handle engine, EngineStats* stats);
using MemoryGetState = Status(Handle memory, MemoryState* state);
using TemperatureGetProperties = Status(Handle sensor, TemperatureProperties* properties);
using TemperatureGetState = Status(Handle sensor, double* celsius);
using FrequencyGetProperties = Status(Handle domain, FrequencyProperties* properties);
using FrequencyGetState = Status(Handle domain, FrequencyState* state);
using DeviceProcessesGetState = Status(Handle device,
                                       std::uint32_t* count,
                                       ProcessState* processes);
}

}  // namespace ceems::exporter::gpu::level_zero
