#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "exporter/gpu/library/gpu_library.h"
#include "exporter/gpu/library/nvidia/nvml_api.h"
#include "exporter/gpu/library/nvidia/nvml_samples.h"

namespace ceems::exporter::gpu::nvml {

/// Functions of the library; null if it does not have that function, in which case only the values
/// it would provide are missing. The first four are required.
struct Api {
  explicit Api(const SharedLibrary& library);

  InitV2* init;
  Shutdown* shutdown;
  DeviceGetCountV2* get_count;
  DeviceGetHandleByIndexV2* get_handle;

  DeviceGetText* get_uuid;
  DeviceGetText* get_name;
  DeviceGetPciInfoV3* get_pci_info;
  DeviceGetUnsigned* get_minor;
  DeviceGetUnsigned* get_virtualization;
  DeviceGetUnsigned* get_power;
  DeviceGetUnsigned* get_power_limit;
  DeviceGetTotalEnergyConsumption* get_energy;
  DeviceGetUtilizationRates* get_utilization;
  DeviceGetMemoryInfo* get_memory;
  DeviceGetMemoryInfoV2* get_memory_v2;
  DeviceGetTemperature* get_temperature;
  DeviceGetClockInfo* get_clock;
  DeviceGetClockReasons* get_clock_reasons;
  DeviceGetTotalEccErrors* get_ecc_errors;
  DeviceGetFieldValues* get_fields;
  DeviceGetPcieThroughput* get_pcie_throughput;
  DeviceGetComputeRunningProcessesV3* get_processes;
  DeviceGetComputeRunningProcessesV3* get_mps_clients;
  SystemGetProcessName* get_process_name;
  DeviceGetProcessUtilization* get_process_utilization;
  DeviceGetSamples* get_samples;
  DeviceGetMigMode* get_mig_mode;
  DeviceGetUnsigned* get_max_instances;
  DeviceGetMigDeviceHandleByIndex* get_instance;
  DeviceGetUnsigned* get_gpu_instance_id;
  DeviceGetUnsigned* get_compute_instance_id;
  DeviceGetAttributesV2* get_attributes;
  EventSetCreate* event_set_create;
  EventSetFree* event_set_free;
  DeviceRegisterEvents* register_events;
  EventSetWaitV2* event_set_wait;
  GpmApi gpm;
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
  const Api api_;
  bool running_ = false;
  EventSet events_ = nullptr;
  std::vector<Gpu> gpus_;
  // Since the program started, by uuid: NVML may be opened again in between.
  std::map<std::string, Xids> xids_;
  mutable std::map<std::string, Errors> errors_;
};

}  // namespace ceems::exporter::gpu::nvml
