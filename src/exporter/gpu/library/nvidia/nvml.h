#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "exporter/gpu/library/gpu_library.h"
#include "exporter/gpu/library/nvidia/nvml_api.h"
#include "exporter/gpu/library/nvidia/nvml_samples.h"

namespace ceems::exporter::gpu::nvml {

/// Functions of the library; null if it does not have that function, in which case only the values
/// it would provide are missing. The first four are required.
struct Api {
  const SharedLibrary& library;  ///< outlives this

  InitV2* init = library.symbol<InitV2>("nvmlInit_v2");
  Shutdown* shutdown = library.symbol<Shutdown>("nvmlShutdown");
  DeviceGetCountV2* get_count = library.symbol<DeviceGetCountV2>("nvmlDeviceGetCount_v2");
  DeviceGetHandleByIndexV2* get_handle =
      library.symbol<DeviceGetHandleByIndexV2>("nvmlDeviceGetHandleByIndex_v2");

  DeviceGetText* get_uuid = library.symbol<DeviceGetText>("nvmlDeviceGetUUID");
  DeviceGetText* get_name = library.symbol<DeviceGetText>("nvmlDeviceGetName");
  DeviceGetPciInfoV3* get_pci_info = library.symbol<DeviceGetPciInfoV3>("nvmlDeviceGetPciInfo_v3");
  DeviceGetUnsigned* get_minor = library.symbol<DeviceGetUnsigned>("nvmlDeviceGetMinorNumber");
  DeviceGetUnsigned* get_virtualization =
      library.symbol<DeviceGetUnsigned>("nvmlDeviceGetVirtualizationMode");
  DeviceGetUnsigned* get_power = library.symbol<DeviceGetUnsigned>("nvmlDeviceGetPowerUsage");
  DeviceGetUnsigned* get_power_limit =
      library.symbol<DeviceGetUnsigned>("nvmlDeviceGetEnforcedPowerLimit");
  DeviceGetTotalEnergyConsumption* get_energy =
      library.symbol<DeviceGetTotalEnergyConsumption>("nvmlDeviceGetTotalEnergyConsumption");
  DeviceGetUtilizationRates* get_utilization =
      library.symbol<DeviceGetUtilizationRates>("nvmlDeviceGetUtilizationRates");
  DeviceGetMemoryInfo* get_memory = library.symbol<DeviceGetMemoryInfo>("nvmlDeviceGetMemoryInfo");
  DeviceGetMemoryInfoV2* get_memory_v2 =
      library.symbol<DeviceGetMemoryInfoV2>("nvmlDeviceGetMemoryInfo_v2");
  DeviceGetTemperature* get_temperature =
      library.symbol<DeviceGetTemperature>("nvmlDeviceGetTemperature");
  DeviceGetClockInfo* get_clock = library.symbol<DeviceGetClockInfo>("nvmlDeviceGetClockInfo");
  DeviceGetClockReasons* get_clock_reasons = library.symbol<DeviceGetClockReasons>(
      "nvmlDeviceGetCurrentClocksEventReasons",
      "nvmlDeviceGetCurrentClocksThrottleReasons");  // before 535
  DeviceGetTotalEccErrors* get_ecc_errors =
      library.symbol<DeviceGetTotalEccErrors>("nvmlDeviceGetTotalEccErrors");
  DeviceGetFieldValues* get_fields =
      library.symbol<DeviceGetFieldValues>("nvmlDeviceGetFieldValues");
  DeviceGetPcieThroughput* get_pcie_throughput =
      library.symbol<DeviceGetPcieThroughput>("nvmlDeviceGetPcieThroughput");
  DeviceGetComputeRunningProcessesV3* get_processes =
      library.symbol<DeviceGetComputeRunningProcessesV3>("nvmlDeviceGetComputeRunningProcesses_v3");
  DeviceGetComputeRunningProcessesV3* get_mps_clients =
      library.symbol<DeviceGetComputeRunningProcessesV3>(
          "nvmlDeviceGetMPSComputeRunningProcesses_v3");
  SystemGetProcessName* get_process_name =
      library.symbol<SystemGetProcessName>("nvmlSystemGetProcessName");
  DeviceGetProcessUtilization* get_process_utilization =
      library.symbol<DeviceGetProcessUtilization>("nvmlDeviceGetProcessUtilization");
  DeviceGetSamples* get_samples = library.symbol<DeviceGetSamples>("nvmlDeviceGetSamples");
  DeviceGetMigMode* get_mig_mode = library.symbol<DeviceGetMigMode>("nvmlDeviceGetMigMode");
  DeviceGetUnsigned* get_max_instances =
      library.symbol<DeviceGetUnsigned>("nvmlDeviceGetMaxMigDeviceCount");
  DeviceGetMigDeviceHandleByIndex* get_instance =
      library.symbol<DeviceGetMigDeviceHandleByIndex>("nvmlDeviceGetMigDeviceHandleByIndex");
  DeviceGetUnsigned* get_gpu_instance_id =
      library.symbol<DeviceGetUnsigned>("nvmlDeviceGetGpuInstanceId");
  DeviceGetUnsigned* get_compute_instance_id =
      library.symbol<DeviceGetUnsigned>("nvmlDeviceGetComputeInstanceId");
  DeviceGetAttributesV2* get_attributes =
      library.symbol<DeviceGetAttributesV2>("nvmlDeviceGetAttributes_v2");
  EventSetCreate* event_set_create = library.symbol<EventSetCreate>("nvmlEventSetCreate");
  EventSetFree* event_set_free = library.symbol<EventSetFree>("nvmlEventSetFree");
  DeviceRegisterEvents* register_events =
      library.symbol<DeviceRegisterEvents>("nvmlDeviceRegisterEvents");
  EventSetWaitV2* event_set_wait = library.symbol<EventSetWaitV2>("nvmlEventSetWait_v2");
  GpmApi gpm{library};
};

/// GPUs of NVIDIA through libnvidia-ml.
class Nvml final : public GpuLibrary {
 public:
  explicit Nvml(SharedLibrary library);
  ~Nvml() override;
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  [[nodiscard]] Vendor vendor() const override { return Vendor::kNvidia; }
  Result<> start() override;
  std::vector<DeviceState> list() override;
  Result<std::vector<DeviceState>> read(bool everything) override;

 private:
  struct MigDevice {
    Device handle = nullptr;
    unsigned gpu_instance = kNoInstance;
    InstanceState state;
  };
  struct Gpu {
    Device handle = nullptr;
    DeviceState state;
    std::vector<MigDevice> instances;
    std::unique_ptr<Gpm> gpm;
    std::map<unsigned, std::unique_ptr<Gpm>> instance_gpm;  // by GPU instance id
    bool has_gpm = false;
    BusySamples busy;
    bool answered = false;      // to a call of this reading
    Return failure = kSuccess;  // the last one of this reading

    unsigned long long last_sample = 0;  // of process utilisation, microseconds
    std::map<int, double> process_use;   // last known SM utilisation
    std::map<int, bool> is_server;       // of MPS, by pid
  };

  using Xids = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
  using Errors = std::vector<std::pair<std::string, std::uint64_t>>;

  static DeviceState with_instances(const Gpu& gpu);
  /// Whether there is such a function and the call succeeded. Counts failures.
  template <class... Arguments>
  bool took(Gpu& gpu,
            Return (*function)(Arguments...),
            std::type_identity_t<Arguments>... arguments) const {
    return function != nullptr && took(gpu, function(arguments...));
  }
  [[nodiscard]] bool took(Gpu& gpu, Return result) const;
  [[nodiscard]] DeviceState read_device(Gpu& gpu, bool everything);
  void stop();
  [[nodiscard]] Return identify(unsigned index, Gpu& gpu);
  void read_often(Gpu& gpu) const;
  void read_seldom(Gpu& gpu) const;
  void read_clocks(Gpu& gpu) const;
  void read_fields(Gpu& gpu) const;
  void read_pcie_rates(Gpu& gpu) const;
  void list_instances(Gpu& gpu) const;
  void read_instances(Gpu& gpu) const;
  void read_processes(Gpu& gpu) const;
  void read_process_utilisation(Gpu& gpu) const;
  void add_processes(Device handle, const MigDevice* instance, std::vector<ProcessUse>& list) const;
  static void list_processes(DeviceGetComputeRunningProcessesV3* get,
                             Device handle,
                             const MigDevice* instance,
                             std::vector<ProcessUse>& list);
  void leave_out_server(Gpu& gpu) const;
  [[nodiscard]] bool is_mps_server(int pid) const;
  void read_events();
  [[nodiscard]] std::optional<double> field(const FieldValue& value, double factor) const;

  const SharedLibrary library_;
  const Api api_{library_};
  bool running_ = false;
  EventSet events_ = nullptr;
  std::vector<Gpu> gpus_;
  // Since the program started, by uuid: NVML may be opened again in between.
  std::map<std::string, Xids> xids_;
  mutable std::map<std::string, Errors> errors_;
};

}  // namespace ceems::exporter::gpu::nvml
