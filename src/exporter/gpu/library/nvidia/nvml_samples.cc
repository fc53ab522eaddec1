#include "exporter/gpu/library/nvidia/nvml_samples.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "exporter/gpu/library/gpu_library.h"

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

std::optional<double> BusySamples::read(DeviceGetSamples* get, Device device) {
  if (get == nullptr) {
    return std::nullopt;
  }
  int type = 0;
  auto count = static_cast<unsigned>(samples_.size());
  if (get(device, kGpuUtilizationSamples, last_, &type, &count, samples_.data()) != kSuccess ||
      type != kUnsignedValue) {
    return std::nullopt;
  }
  const unsigned long long before = last_;
  double sum = 0;
  int number = 0;
  for (std::size_t i = 0; i < std::min<std::size_t>(count, samples_.size()); ++i) {
    const Sample& sample = samples_[i];
    last_ = std::max(last_, sample.time_stamp);
    if (sample.time_stamp > before && sample.value.number <= 100) {
      sum += sample.value.number;
      ++number;
    }
  }
  // The first call gets samples from before any unit was charged.
  return before > 0 && number > 0 ? std::optional(sum / 100 / number) : std::nullopt;
}

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
