#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "exporter/gpu/library/gpu_library.h"
#include "exporter/gpu/library/intel/level_zero_api.h"

namespace ceems::exporter::gpu::level_zero {

/// Functions of the library; null if it does not have that function.
struct Api {
  explicit Api(const SharedLibrary& library);

  Init* init;
  DriverGet* get_drivers;
  Enumerate* get_devices;
  DeviceGetProperties* get_properties;
  DevicePciGetProperties* get_pci_properties;
  DevicePciGetStats* get_pci_stats;
  Enumerate* list_power_domains;
  PowerGetProperties* get_power_properties;
  PowerGetEnergyCounter* get_energy;
  Enumerate* list_engines;
  EngineGetProperties* get_engine_properties;
  EngineGetActivity* get_engine_activity;
  Enumerate* list_memories;
  MemoryGetState* get_memory_state;
  Enumerate* list_sensors;
  TemperatureGetProperties* get_sensor_properties;
  TemperatureGetState* get_temperature;
  Enumerate* list_frequencies;
  FrequencyGetProperties* get_frequency_properties;
  FrequencyGetState* get_frequency_state;
  DeviceProcessesGetState* get_processes;
  Enumerate* list_fabric_ports;
  FabricPortGetThroughput* get_fabric_throughput;
};

/// GPUs of Intel through Level Zero's Sysman (libze_loader). Graphics that is part of the processor
/// is left out, because its power is part of the processor's and the inventory does not list it.
class LevelZero final : public GpuLibrary {
 public:
  explicit LevelZero(SharedLibrary library);

  [[nodiscard]] Vendor vendor() const override { return Vendor::kIntel; }
  Result<> start() override;
  std::vector<DeviceState> list() override;
  Result<std::vector<DeviceState>> read(bool everything) override;

 private:
  struct Engine {
    Handle handle = nullptr;
    std::optional<EngineStats> last;
  };
  struct Gpu {
    Handle handle = nullptr;
    DeviceState state;
    Handle power = nullptr;  // domain of the whole card
    std::optional<EnergyCounter> last_energy;
    std::vector<Engine> engines;  // one of the card, or one of each of its tiles
    std::vector<Handle> memories;
    std::vector<Handle> ports;                                 // of Xe Link
    std::vector<std::pair<Handle, std::int32_t>> sensors;      // with their location
    std::vector<std::pair<Handle, std::int32_t>> frequencies;  // with their domain
  };

  void add_device(Handle device);
  void find_parts(Gpu& gpu) const;
  void find_engines(Gpu& gpu) const;
  void read_power(Gpu& gpu) const;
  void read_engines(Gpu& gpu) const;
  void read_processes(Gpu& gpu) const;
  void read_seldom(Gpu& gpu) const;
  void read_frequencies(Gpu& gpu) const;
  void read_traffic(Gpu& gpu) const;

  const SharedLibrary library_;
  const Api api_;
  bool running_ = false;
  std::vector<Gpu> gpus_;
};

}  // namespace ceems::exporter::gpu::level_zero
