#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "exporter/gpu/library/amd/amd_boards.h"
#include "exporter/gpu/library/amd/amd_smi_api.h"
#include "exporter/gpu/library/gpu_library.h"

namespace ceems::exporter::gpu::amdsmi {

/// Functions of the library; null if it does not have that function.
struct Api {
  const SharedLibrary& library;  ///< outlives this

  Init* init = library.symbol<Init>("amdsmi_init");
  ShutDown* shut_down = library.symbol<ShutDown>("amdsmi_shut_down");
  GetSocketHandles* sockets = library.symbol<GetSocketHandles>("amdsmi_get_socket_handles");
  GetProcessorHandles* processors =
      library.symbol<GetProcessorHandles>("amdsmi_get_processor_handles");
  GetGpuBdfId* bdf_id = library.symbol<GetGpuBdfId>("amdsmi_get_gpu_bdf_id");
  GetGpuAsicInfo* asic_info = library.symbol<GetGpuAsicInfo>("amdsmi_get_gpu_asic_info");
  GetGpuActivity* activity = library.symbol<GetGpuActivity>("amdsmi_get_gpu_activity");
  GetEnergyCount* energy = library.symbol<GetEnergyCount>("amdsmi_get_energy_count");
  GetGpuMemory* memory_used = library.symbol<GetGpuMemory>("amdsmi_get_gpu_memory_usage");
  GetGpuMemory* memory_total = library.symbol<GetGpuMemory>("amdsmi_get_gpu_memory_total");
  GetTempMetric* temperature = library.symbol<GetTempMetric>("amdsmi_get_temp_metric");
  GetGpuTotalEccCount* ecc = library.symbol<GetGpuTotalEccCount>("amdsmi_get_gpu_total_ecc_count");
};

/// GPUs of AMD through libamd_smi, for machines that no longer have librocm_smi64. Power, clocks,
/// xGMI and the use of partitions come from the driver's table and serial numbers from sysfs
/// (amd_boards.h). Processes are not read, because their structure differs between releases of the
/// library.
class AmdSmi final : public GpuLibrary {
 public:
  AmdSmi(SharedLibrary library, std::filesystem::path sys);
  ~AmdSmi() override;
  AmdSmi(const AmdSmi&) = delete;
  AmdSmi& operator=(const AmdSmi&) = delete;

  [[nodiscard]] Vendor vendor() const override { return Vendor::kAmd; }
  Result<> start() override;
  std::vector<DeviceState> list() override;
  Result<std::vector<DeviceState>> read(bool everything) override;

 private:
  using Gpu = AmdGpu<Handle>;
  using Partition = AmdPartition<Handle>;

  void stop();
  [[nodiscard]] Result<std::vector<Handle>> list_processors() const;
  void add_processor(Handle handle);
  void read_often(Gpu& gpu) const;
  void read_seldom(Gpu& gpu) const;

  const SharedLibrary library_;
  const std::filesystem::path sys_;
  const Api api_{library_};
  bool running_ = false;
  AmdBoards<Handle> boards_;
};

}  // namespace ceems::exporter::gpu::amdsmi
