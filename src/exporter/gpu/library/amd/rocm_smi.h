#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "exporter/gpu/library/amd/amd_boards.h"
#include "exporter/gpu/library/amd/rocm_smi_api.h"
#include "exporter/gpu/library/gpu_library.h"

namespace ceems::exporter::gpu::rocm {

/// Functions of the library; null if it does not have that function.
struct Api {
  const SharedLibrary& library;  ///< outlives this

  Init* init = library.symbol<Init>("rsmi_init");
  ShutDown* shut_down = library.symbol<ShutDown>("rsmi_shut_down");
  NumMonitorDevices* count = library.symbol<NumMonitorDevices>("rsmi_num_monitor_devices");
  DevNumberGet* pci_id = library.symbol<DevNumberGet>("rsmi_dev_pci_id_get");
  DevNumberGet* unique_id = library.symbol<DevNumberGet>("rsmi_dev_unique_id_get");
  DevSerialNumberGet* serial = library.symbol<DevSerialNumberGet>("rsmi_dev_serial_number_get");
  DevNameGet* name = library.symbol<DevNameGet>("rsmi_dev_name_get");
  DevPowerGet* power = library.symbol<DevPowerGet>("rsmi_dev_power_get");
  DevSensorPowerGet* average_power = library.symbol<DevSensorPowerGet>("rsmi_dev_power_ave_get");
  DevSensorPowerGet* power_cap = library.symbol<DevSensorPowerGet>("rsmi_dev_power_cap_get");
  DevEnergyCountGet* energy = library.symbol<DevEnergyCountGet>("rsmi_dev_energy_count_get");
  DevPercentGet* busy = library.symbol<DevPercentGet>("rsmi_dev_busy_percent_get");
  DevPercentGet* memory_busy = library.symbol<DevPercentGet>("rsmi_dev_memory_busy_percent_get");
  DevMemoryGet* memory_used = library.symbol<DevMemoryGet>("rsmi_dev_memory_usage_get");
  DevMemoryGet* memory_total = library.symbol<DevMemoryGet>("rsmi_dev_memory_total_get");
  DevTempMetricGet* temperature = library.symbol<DevTempMetricGet>("rsmi_dev_temp_metric_get");
  DevEccCountGet* ecc = library.symbol<DevEccCountGet>("rsmi_dev_ecc_count_get");
  ComputeProcessInfoGet* processes =
      library.symbol<ComputeProcessInfoGet>("rsmi_compute_process_info_get");
  ComputeProcessInfoByDeviceGet* process_on_device =
      library.symbol<ComputeProcessInfoByDeviceGet>("rsmi_compute_process_info_by_device_get");
};

/// GPUs of AMD through librocm_smi64. The library's structures for clocks and xGMI differ between
/// releases, so these, and the use of each partition, come from the driver's table (amd_boards.h).
/// PCIe traffic is not read, because that takes a second.
class RocmSmi final : public GpuLibrary {
 public:
  RocmSmi(SharedLibrary library, std::filesystem::path sys);
  ~RocmSmi() override;
  RocmSmi(const RocmSmi&) = delete;
  RocmSmi& operator=(const RocmSmi&) = delete;

  [[nodiscard]] Vendor vendor() const override { return Vendor::kAmd; }
  Result<> start() override;
  std::vector<DeviceState> list() override;
  Result<std::vector<DeviceState>> read(bool everything) override;

 private:
  using Gpu = AmdGpu<std::uint32_t>;  // identified by the library's device number
  using Partition = AmdPartition<std::uint32_t>;

  void stop();
  void add_device(std::uint32_t number);
  void read_often(Gpu& gpu) const;
  void read_seldom(Gpu& gpu) const;
  void read_processes();

  const SharedLibrary library_;
  const std::filesystem::path sys_;
  const Api api_{library_};
  bool running_ = false;
  AmdBoards<std::uint32_t> boards_;
};

}  // namespace ceems::exporter::gpu::rocm
