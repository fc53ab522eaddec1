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
  const SharedLibrary& library;  ///< outlives this

  Init* init = library.symbol<Init>("zesInit");
  DriverGet* get_drivers = library.symbol<DriverGet>("zesDriverGet");
  Enumerate* get_devices = library.symbol<Enumerate>("zesDeviceGet");
  DeviceGetProperties* get_properties =
      library.symbol<DeviceGetProperties>("zesDeviceGetProperties");
  DevicePciGetProperties* get_pci_properties =
      library.symbol<DevicePciGetProperties>("zesDevicePciGetProperties");
  DevicePciGetStats* get_pci_stats = library.symbol<DevicePciGetStats>("zesDevicePciGetStats");
  Enumerate* list_power_domains = library.symbol<Enumerate>("zesDeviceEnumPowerDomains");
  PowerGetProperties* get_power_properties =
      library.symbol<PowerGetProperties>("zesPowerGetProperties");
  PowerGetEnergyCounter* get_energy =
      library.symbol<PowerGetEnergyCounter>("zesPowerGetEnergyCounter");
  Enumerate* list_engines = library.symbol<Enumerate>("zesDeviceEnumEngineGroups");
  EngineGetProperties* get_engine_properties =
      library.symbol<EngineGetProperties>("zesEngineGetProperties");
  EngineGetActivity* get_engine_activity =
      library.symbol<EngineGetActivity>("zesEngineGetActivity");
  Enumerate* list_memories = library.symbol<Enumerate>("zesDeviceEnumMemoryModules");
  MemoryGetState* get_memory_state = library.symbol<MemoryGetState>("zesMemoryGetState");
  Enumerate* list_sensors = library.symbol<Enumerate>("zesDeviceEnumTemperatureSensors");
  TemperatureGetProperties* get_sensor_properties =
      library.symbol<TemperatureGetProperties>("zesTemperatureGetProperties");
  TemperatureGetState* get_temperature =
      library.symbol<TemperatureGetState>("zesTemperatureGetState");
  Enumerate* list_frequencies = library.symbol<Enumerate>("zesDeviceEnumFrequencyDomains");
  FrequencyGetProperties* get_frequency_properties =
      library.symbol<FrequencyGetProperties>("zesFrequencyGetProperties");
  FrequencyGetState* get_frequency_state =
      library.symbol<FrequencyGetState>("zesFrequencyGetState");
  DeviceProcessesGetState* get_processes =
      library.symbol<DeviceProcessesGetState>("zesDeviceProcessesGetState");
  Enumerate* list_fabric_ports = library.symbol<Enumerate>("zesDeviceEnumFabricPorts");
  FabricPortGetThroughput* get_fabric_throughput =
      library.symbol<FabricPortGetThroughput>("zesFabricPortGetThroughput");
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
  const Api api_{library_};
  bool running_ = false;
  std::vector<Gpu> gpus_;
};

}  // namespace ceems::exporter::gpu::level_zero
