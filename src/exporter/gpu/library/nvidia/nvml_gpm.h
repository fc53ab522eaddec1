#pragma once

#include <optional>

#include "exporter/gpu/library/gpu_library.h"
#include "exporter/gpu/library/nvidia/nvml_api.h"
#include "exporter/gpu/library/shared_library.h"

namespace ceems::exporter::gpu::nvml {

/// Functions of GPU Performance Monitoring (Hopper and later); null if the library does not have
/// them.
struct GpmApi {
  explicit GpmApi(const SharedLibrary& library);
  [[nodiscard]] bool complete() const;

  GpmQueryDeviceSupport* query_support;
  GpmSampleAlloc* sample_alloc;
  GpmSampleFree* sample_free;
  GpmSampleGet* sample_get;
  GpmMigSampleGet* mig_sample_get;
  GpmMetricsGetCall* metrics_get;
};

/// GPM metrics of one GPU or GPU instance: means between one read() and the previous one. `api`
/// must outlive the object.
class Gpm {
 public:
  /// `device` is the physical GPU. `gpu_instance` selects a part of it.
  Gpm(const GpmApi& api, Device device, std::optional<unsigned> gpu_instance);
  ~Gpm();
  Gpm(const Gpm&) = delete;
  Gpm& operator=(const Gpm&) = delete;

  /// Whether the device supports GPM.
  static bool supported(const GpmApi& api, Device device);

  /// Nothing at the first call and if the library fails.
  Activity read();

 private:
  const GpmApi& api_;
  const Device device_;
  const std::optional<unsigned> gpu_instance_;
  GpmSample last_ = nullptr;
  GpmSample now_ = nullptr;
  bool has_last_ = false;
};

}  // namespace ceems::exporter::gpu::nvml
