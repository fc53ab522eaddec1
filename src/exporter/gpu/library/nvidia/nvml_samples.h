#pragma once

#include <optional>
#include <vector>

#include "exporter/gpu/library/gpu_library.h"
#include "exporter/gpu/library/nvidia/nvml_api.h"

namespace ceems::exporter::gpu::nvml {

/// The part of the time in which one GPU had a kernel, from the samples that the driver takes
/// several times a second and keeps for some seconds. `nvmlDeviceGetUtilizationRates` is only the
/// newest of them: a load whose period is that of the readings looks always busy there, or never.
class BusySamples {
 public:
  /// The mean, 0...1, of the samples since the call before. Nothing at the first call, without a
  /// new sample, and if `get` is null or fails.
  std::optional<double> read(DeviceGetSamples* get, Device device);

 private:
  std::vector<Sample> samples_ = std::vector<Sample>(256);
  unsigned long long last_ = 0;  // microseconds
};

/// Functions of GPU Performance Monitoring (Hopper and later); null if the library does not have
/// them.
struct GpmApi {
  const SharedLibrary& library;  ///< outlives this
  [[nodiscard]] bool complete() const;

  GpmQueryDeviceSupport* query_support =
      library.symbol<GpmQueryDeviceSupport>("nvmlGpmQueryDeviceSupport");
  GpmSampleAlloc* sample_alloc = library.symbol<GpmSampleAlloc>("nvmlGpmSampleAlloc");
  GpmSampleFree* sample_free = library.symbol<GpmSampleFree>("nvmlGpmSampleFree");
  GpmSampleGet* sample_get = library.symbol<GpmSampleGet>("nvmlGpmSampleGet");
  GpmMigSampleGet* mig_sample_get = library.symbol<GpmMigSampleGet>("nvmlGpmMigSampleGet");
  GpmMetricsGetCall* metrics_get = library.symbol<GpmMetricsGetCall>("nvmlGpmMetricsGet");
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
