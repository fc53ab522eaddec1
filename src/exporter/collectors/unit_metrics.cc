#include "exporter/collectors/unit_metrics.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "base/log.h"

namespace ceems::exporter {
namespace {

using metrics::Desc;
using metrics::Type;

Desc unit_desc(std::string_view name, std::string help, Type type = Type::kGauge) {
  return {"ceems_compute_" + std::string(name),
          std::move(help),
          type,
          {"manager", "hostname", "cgrouphostname", "uuid"}};
}

Desc unit_device_desc(std::string_view name, std::string help) {
  return {"ceems_compute_" + std::string(name),
          std::move(help),
          Type::kGauge,
          {"manager", "hostname", "cgrouphostname", "uuid", "device"}};
}

Desc use_desc(const char* stem,
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

UnitMetrics::UnitMetrics(std::string hostname, UnitMetricOptions options)
    : hostname_(std::move(hostname)),
      options_(options),
      units_("ceems_compute_units", "Total number of jobs", Type::kGauge, {"manager", "hostname"}),
      cpu_user_(
          unit_desc("unit_cpu_user_seconds_total", "Total job CPU user seconds", Type::kCounter)),
      cpu_system_(unit_desc(
          "unit_cpu_system_seconds_total", "Total job CPU system seconds", Type::kCounter)),
      cpus_(unit_desc("unit_cpus", "Total number of job CPUs")),
      cpu_psi_(unit_desc("unit_cpu_psi_seconds", "Total CPU PSI in seconds")),
      memory_rss_(unit_desc("unit_memory_rss_bytes", "Memory RSS used in bytes")),
      memory_cache_(unit_desc("unit_memory_cache_bytes", "Memory cache used in bytes")),
      memory_used_(unit_desc("unit_memory_used_bytes", "Memory used in bytes")),
      memory_total_(unit_desc("unit_memory_total_bytes", "Memory total in bytes")),
      memory_fails_(unit_desc("unit_memory_fail_count", "Memory fail count")),
      memory_psi_(unit_desc("unit_memory_psi_seconds", "Total memory PSI in seconds")),
      pressure_(use_desc("pressure_seconds_total",
                         "Seconds in which some processes of the unit waited for the resource.",
                         Type::kCounter,
                         {"resource", "kind"})),
      swap_used_(unit_desc("unit_memsw_used_bytes", "Swap used in bytes")),
      swap_total_(unit_desc("unit_memsw_total_bytes", "Swap total in bytes")),
      swap_fails_(unit_desc("unit_memsw_fail_count", "Swap fail count")),
      read_bytes_(unit_device_desc("unit_blkio_read_total_bytes", "Total block IO read bytes")),
      write_bytes_(unit_device_desc("unit_blkio_write_total_bytes", "Total block IO write bytes")),
      read_requests_(
          unit_device_desc("unit_blkio_read_total_requests", "Total block IO read requests")),
      write_requests_(
          unit_device_desc("unit_blkio_write_total_requests", "Total block IO write requests")),
      rdma_handles_(
          unit_device_desc("unit_rdma_hca_handles", "Current number of RDMA HCA handles")),
      rdma_objects_(
          unit_device_desc("unit_rdma_hca_objects", "Current number of RDMA HCA objects")),
      error_(unit_desc("collect_error", "Indicates collection error, 0=no error, 1=error")) {}

UnitMetricOptions for_mount(UnitMetricOptions options,
                            const host::CgroupMount& mount,
                            const CollectorContext& context,
                            std::string_view collector) {
  options.zero_cpu_time = mount.mode == host::CgroupMode::kUnified;
  if (!options.zero_cpu_time && !host::find_v1_hierarchy(context.paths.cgroup, "cpuacct", true)) {
    log::warn("cgroup v1 has no cpuacct for these units, so their CPU time is not known",
              {{"collector", collector}});
  }
  return options;
}

void UnitMetrics::add(const UnitSnapshot& snapshot, metrics::Sink& sink) const {
  const auto alive = std::count_if(snapshot.units.begin(), snapshot.units.end(),
                                   [](const Unit& unit) { return !unit.ended; });
  sink.add(units_, static_cast<double>(alive), {snapshot.manager, hostname_});
  for (const Unit& unit : snapshot.units) {
    add_unit(snapshot.manager, unit, sink);
  }
}

void UnitMetrics::add_unit(std::string_view manager, const Unit& unit, metrics::Sink& sink) const {
  const std::array<std::string_view, 4> labels = {manager, hostname_, unit.cgrouphostname,
                                                  unit.uuid};
  const auto add = [&](const Desc& desc, double value) { sink.add(desc, value, labels); };
  const auto add_count = [&](const Desc& desc, std::uint64_t value) {
    sink.add(desc, static_cast<double>(value), labels);
  };
  const UnitStats& stats = unit.stats;
  if (options_.zero_cpu_time || stats.cpu_seconds() > 0) {
    add(cpu_user_, stats.cpu_user_seconds);
    add(cpu_system_, stats.cpu_system_seconds);
  }
  add(cpus_, stats.cpus);
  add_count(memory_rss_, stats.memory_rss_bytes);
  add_count(memory_cache_, stats.memory_cache_bytes);
  add_count(memory_used_, stats.memory_used_bytes);
  add(memory_total_, stats.memory_total_bytes);
  add_count(memory_fails_, stats.memory_fail_count);
  if (options_.swap) {
    add_count(swap_used_, stats.memsw_used_bytes);
    add(swap_total_, stats.memsw_total_bytes);
    add_count(swap_fails_, stats.memsw_fail_count);
  }
  if (options_.pressure) {
    add(cpu_psi_, stats.cpu_psi_seconds);
    add(memory_psi_, stats.memory_psi_seconds);
    // The page of libvirt is the reference's, which has no series of io.pressure.
    if (stats.io_stalled_seconds && manager != "libvirt") {
      sink.add(pressure_, *stats.io_stalled_seconds,
               {manager, hostname_, unit.cgrouphostname, unit.uuid, "io", "some"});
    }
  }
  if (options_.block_io) {
    add_block_io(manager, unit, sink);
  }
  for (const RdmaUse& rdma : stats.rdma) {
    if (rdma.hca_handles > 0) {  // as in the reference: no series without a handle
      const std::array<std::string_view, 5> values = {manager, hostname_, unit.cgrouphostname,
                                                      unit.uuid, rdma.device};
      sink.add(rdma_handles_, rdma.hca_handles, values);
      sink.add(rdma_objects_, rdma.hca_objects, values);
    }
  }
  if (stats.error) {
    add(error_, 1);
  }
}

void UnitMetrics::add_block_io(std::string_view manager,
                               const Unit& unit,
                               metrics::Sink& sink) const {
  for (const BlockIo& io : unit.stats.block_io) {
    const std::array<std::string_view, 5> labels = {manager, hostname_, unit.cgrouphostname,
                                                    unit.uuid, io.device};
    const std::array<std::pair<const Desc*, std::uint64_t>, 4> values = {
        {{&read_bytes_, io.read_bytes},
         {&write_bytes_, io.write_bytes},
         {&read_requests_, io.read_requests},
         {&write_requests_, io.write_requests}}};
    for (const auto& [desc, value] : values) {
      if (value > 0) {
        sink.add(*desc, static_cast<double>(value), labels);
      }
    }
  }
}

UnitUseMetrics::UnitUseMetrics(std::string hostname)
    : hostname_(std::move(hostname)),
      idle_joules_(use_desc("idle_energy_joules_total",
                            "Part of the unit's energy that is the idle power of what it has "
                            "reserved, by domain.",
                            Type::kCounter,
                            {"domain"})),
      unused_joules_(use_desc("unused_idle_energy_joules_total",
                              "Part of the idle energy of what the unit has reserved and did not "
                              "use at that time, by domain.",
                              Type::kCounter,
                              {"domain"})),
      shmem_(use_desc("memory_shmem_bytes", "Shared memory used in bytes", Type::kGauge)),
      memory_peak_(use_desc("memory_peak_bytes",
                            "Most memory, without file cache, that the unit has used in bytes",
                            Type::kGauge)),
      cpu_max_(use_desc("cpu_used_max",
                        "Most CPUs that the unit has kept busy on average of 10 seconds",
                        Type::kGauge)),
      idle_seconds_(use_desc("idle_seconds_total",
                             "Seconds in which the unit used neither CPUs nor GPUs nor disks",
                             Type::kCounter)),
      gpu_busy_(use_desc("gpu_busy_seconds_total",
                         "Seconds in which the unit had work on the GPU",
                         Type::kCounter,
                         gpu_labels())),
      gpu_sms_(use_desc("gpu_sm_seconds_total",
                        "Part of the GPU's SMs that worked for the unit, summed over time",
                        Type::kCounter,
                        gpu_labels())),
      gpu_memory_peak_(use_desc("gpu_memory_peak_bytes",
                                "Most GPU memory that the unit has used in bytes",
                                Type::kGauge,
                                gpu_labels())) {}

void UnitUseMetrics::add(const energy::UnitEntry& unit,
                         const energy::Account& account,
                         metrics::Sink& sink) const {
  for (const energy::Domain domain : energy::kDomains) {
    if (account.known(domain)) {
      const std::array<std::string_view, 5> labels = {unit.manager, hostname_, unit.cgrouphostname,
                                                      unit.uuid, energy::to_string(domain)};
      sink.add(idle_joules_, unit.idle_joules(domain), labels);
      sink.add(unused_joules_, unit.unused_idle_joules(domain), labels);
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
