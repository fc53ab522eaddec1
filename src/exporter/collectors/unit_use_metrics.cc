#include "exporter/collectors/unit_use_metrics.h"

#include <array>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace ceems::exporter {
namespace {

using metrics::Desc;
using metrics::Type;

Desc unit_desc(const char* stem,
               const char* help,
               Type type,
               const std::vector<std::string>& more = {}) {
  std::vector<std::string> labels = {"manager", "hostname", "cgrouphostname", "uuid"};
  labels.insert(labels.end(), more.begin(), more.end());
  return {std::string("ceems_compute_unit_") + stem, help, type, std::move(labels)};
}

const std::vector<std::string>& gpu_labels() {
  static const std::vector<std::string> labels = {"index", "gpuuuid", "gpuiid"};
  return labels;
}

}  // namespace

UnitUseMetrics::UnitUseMetrics(std::string hostname)
    : hostname_(std::move(hostname)),
      idle_joules_(unit_desc("idle_energy_joules_total",
                             "Part of the unit's energy that is the idle power of what it has "
                             "reserved, by domain.",
                             Type::kCounter,
                             {"domain"})),
      shmem_(unit_desc("memory_shmem_bytes", "Shared memory used in bytes", Type::kGauge)),
      memory_peak_(unit_desc("memory_peak_bytes",
                             "Most memory, without file cache, that the unit has used in bytes",
                             Type::kGauge)),
      cpu_max_(unit_desc("cpu_used_max",
                         "Most CPUs that the unit has kept busy on average of 10 seconds",
                         Type::kGauge)),
      idle_seconds_(unit_desc("idle_seconds_total",
                              "Seconds in which the unit used neither CPUs nor GPUs nor disks",
                              Type::kCounter)),
      gpu_busy_(unit_desc("gpu_busy_seconds_total",
                          "Seconds in which the unit had work on the GPU",
                          Type::kCounter,
                          gpu_labels())),
      gpu_sms_(unit_desc("gpu_sm_seconds_total",
                         "Part of the GPU's SMs that worked for the unit, summed over time",
                         Type::kCounter,
                         gpu_labels())),
      gpu_memory_peak_(unit_desc("gpu_memory_peak_bytes",
                                 "Most GPU memory that the unit has used in bytes",
                                 Type::kGauge,
                                 gpu_labels())) {}

void UnitUseMetrics::add(const energy::UnitEntry& unit,
                         const energy::Account& account,
                         metrics::Sink& sink) const {
  for (const energy::Domain domain : energy::kDomains) {
    if (account.known(domain)) {
      sink.add(
          idle_joules_, unit.idle_joules(domain),
          {unit.manager, hostname_, unit.cgrouphostname, unit.uuid, energy::to_string(domain)});
    }
  }
  const energy::UnitUse& use = unit.use;
  const std::array<std::pair<const Desc*, std::optional<double>>, 4> values = {
      {{&shmem_, use.memory_shmem_bytes()},
       {&memory_peak_, use.memory_peak_bytes()},
       {&cpu_max_, use.cpu_max()},
       {&idle_seconds_, use.idle_seconds()}}};
  for (const auto& [desc, value] : values) {
    if (value) {
      sink.add(*desc, *value, {unit.manager, hostname_, unit.cgrouphostname, unit.uuid});
    }
  }
  for (const energy::GpuUse& gpu : use.gpus()) {
    const std::array<std::pair<const Desc*, std::optional<double>>, 3> of_gpu = {
        {{&gpu_busy_, gpu.busy_seconds},
         {&gpu_sms_, gpu.sm_seconds},
         {&gpu_memory_peak_, gpu.memory_peak_bytes}}};
    for (const auto& [desc, value] : of_gpu) {
      if (value) {
        sink.add(*desc, *value,
                 {unit.manager, hostname_, unit.cgrouphostname, unit.uuid, gpu.index, gpu.device,
                  gpu.instance});
      }
    }
  }
}

}  // namespace ceems::exporter
