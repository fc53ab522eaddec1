#include "exporter/gpu/library/nvidia/nvml_gpm.h"

#include <array>
#include <memory>
#include <utility>

#include "exporter/gpu/library/plausible.h"

namespace ceems::exporter::gpu::nvml {
namespace {

struct Metric {
  unsigned id;
  std::optional<double> Activity::* member;
};

constexpr std::array kMetrics = {
    Metric{kGpmGraphics, &Activity::graphics},
    Metric{kGpmSmActive, &Activity::sm_active},
    Metric{kGpmSmOccupancy, &Activity::sm_occupancy},
    Metric{kGpmTensor, &Activity::tensor},
    Metric{kGpmTensorDfma, &Activity::tensor_dfma},
    Metric{kGpmTensorHmma, &Activity::tensor_hmma},
    Metric{kGpmTensorImma, &Activity::tensor_imma},
    Metric{kGpmFp64, &Activity::fp64},
    Metric{kGpmFp32, &Activity::fp32},
    Metric{kGpmFp16, &Activity::fp16},
    Metric{kGpmDram, &Activity::dram},
};

}  // namespace

GpmApi::GpmApi(const SharedLibrary& library)
    : query_support(library.symbol<GpmQueryDeviceSupport>("nvmlGpmQueryDeviceSupport")),
      sample_alloc(library.symbol<GpmSampleAlloc>("nvmlGpmSampleAlloc")),
      sample_free(library.symbol<GpmSampleFree>("nvmlGpmSampleFree")),
      sample_get(library.symbol<GpmSampleGet>("nvmlGpmSampleGet")),
      mig_sample_get(library.symbol<GpmMigSampleGet>("nvmlGpmMigSampleGet")),
      metrics_get(library.symbol<GpmMetricsGetCall>("nvmlGpmMetricsGet")) {}

bool GpmApi::complete() const {
  return query_support != nullptr && sample_alloc != nullptr && sample_free != nullptr &&
         sample_get != nullptr && metrics_get != nullptr;
}

bool Gpm::supported(const GpmApi& api, Device device) {
  GpmSupport support{.version = kGpmVersion, .is_supported = 0};
  return api.complete() && api.query_support(device, &support) == kSuccess &&
         support.is_supported != 0;
}

Gpm::Gpm(const GpmApi& api, Device device, std::optional<unsigned> gpu_instance)
    : api_(api), device_(device), gpu_instance_(gpu_instance) {
  if (api_.sample_alloc(&last_) != kSuccess) {
    last_ = nullptr;
  }
  if (api_.sample_alloc(&now_) != kSuccess) {
    now_ = nullptr;
  }
}

Gpm::~Gpm() {
  for (const GpmSample sample : {last_, now_}) {
    if (sample != nullptr) {
      static_cast<void>(api_.sample_free(sample));
    }
  }
}

Activity Gpm::read() {
  Activity activity;
  if (last_ == nullptr || now_ == nullptr || (gpu_instance_ && api_.mig_sample_get == nullptr)) {
    return activity;
  }
  const Return taken = gpu_instance_ ? api_.mig_sample_get(device_, *gpu_instance_, now_)
                                     : api_.sample_get(device_, now_);
  if (taken != kSuccess) {
    has_last_ = false;
    return activity;
  }
  if (has_last_) {
    const auto request = std::make_unique<GpmMetricsGet>();
    request->version = kGpmVersion;
    request->count = kMetrics.size();
    request->sample1 = last_;
    request->sample2 = now_;
    for (std::size_t i = 0; i < kMetrics.size(); ++i) {
      request->metrics[i].metric_id = kMetrics[i].id;
    }
    if (api_.metrics_get(request.get()) == kSuccess) {
      for (std::size_t i = 0; i < kMetrics.size(); ++i) {
        const GpmMetric& metric = request->metrics[i];
        if (metric.result == kSuccess) {
          activity.*kMetrics[i].member = from_percent(metric.value);
        }
      }
    }
  }
  has_last_ = true;
  std::swap(last_, now_);
  return activity;
}

}  // namespace ceems::exporter::gpu::nvml
