#include "model/unit.h"

namespace ceems::model {
namespace {

struct MetricName {
  std::string_view column;
  std::string_view weight;
};

constexpr std::array<MetricName, kMetricCount> kNames{{
    {"avg_cpu_usage", "alloc_cputime"},
    {"avg_cpu_mem_usage", "alloc_cpumemtime"},
    {"total_cpu_energy_usage_kwh", ""},
    {"total_cpu_emissions_gms", ""},
    {"avg_gpu_usage", "alloc_gputime"},
    {"avg_gpu_mem_usage", "alloc_gpumemtime"},
    {"total_gpu_energy_usage_kwh", ""},
    {"total_gpu_emissions_gms", ""},
    {"total_io_write_stats", ""},
    {"total_io_read_stats", ""},
    {"total_ingress_stats", ""},
    {"total_egress_stats", ""},
}};

}  // namespace

std::string_view column_name(Metric metric) {
  return kNames[static_cast<std::size_t>(metric)].column;
}

std::string_view weight_key(Metric metric) {
  return kNames[static_cast<std::size_t>(metric)].weight;
}

}  // namespace ceems::model
