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
  explicit Api(const SharedLibrary& library);

  Init* init;
  ShutDown* shut_down;
  NumMonitorDevices* count;
  DevNumberGet* pci_id;
  DevNumberGet* unique_id;
  DevSerialNumberGet* serial;
  DevNameGet* name;
  DevPowerGet* power;
  DevSensorPowerGet* average_power;
  DevSensorPowerGet* power_cap;
  DevEnergyCountGet* energy;
  DevPercentGet* busy;
  DevPercentGet* memory_busy;
  DevMemoryGet* memory_used;
  DevMemoryGet* memory_total;
  DevTempMetricGet* temperature;
  DevEccCountGet* ecc;
  ComputeProcessInfoGet* processes;
  ComputeProcessInfoByDeviceGet* process_on_device;
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
  void read_memory(std::uint32_t number,
                   std::optional<double>& used,
                   std::optional<double>& total) const;
  void read_processes();

  const SharedLibrary library_;
  const std::filesystem::path sys_;
  const Api api_;
  bool running_ = false;
  AmdBoards<std::uint32_t> boards_;
};

}  // namespace ceems::exporter::gpu::rocm
