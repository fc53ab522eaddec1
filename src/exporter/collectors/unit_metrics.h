#pragma once

#include <string>
#include <string_view>

#include "exporter/collector.h"
#include "exporter/energy/account/account.h"
#include "exporter/unit/unit.h"
#include "host/cgroup/mount.h"
#include "metrics/desc.h"
#include "metrics/sink.h"

namespace ceems::exporter {

/// Which groups of a unit's metrics are exported besides CPU, memory and RDMA.
struct UnitMetricOptions {
  bool swap = false;
  bool pressure = false;
  bool block_io = false;
  /// Whether a CPU time of 0 is a measured value. In cgroup v1 it is what a unit without a cgroup
  /// in the hierarchy cpuacct has, whose CPU time is unknown; it then has no series.
  bool zero_cpu_time = true;
};

/// The options for units of this mount. Logs once if cgroup v1 has no hierarchy cpuacct, so that
/// the CPU time of no unit is known.
UnitMetricOptions for_mount(UnitMetricOptions options,
                            const host::CgroupMount& mount,
                            const CollectorContext& context,
                            std::string_view collector);

/// Adds units to a page: the families ceems_compute_unit* that all unit collectors share. Names,
/// HELP texts, types and labels are the same as in the reference. Not thread-safe.
class UnitMetrics {
 public:
  UnitMetrics(std::string hostname, UnitMetricOptions options);

  /// Adds all units of the snapshot, and their number without ended ones.
  void add(const UnitSnapshot& snapshot, metrics::Sink& sink) const;

 private:
  void add_unit(std::string_view manager, const Unit& unit, metrics::Sink& sink) const;
  void add_block_io(std::string_view manager, const Unit& unit, metrics::Sink& sink) const;

  std::string hostname_;
  UnitMetricOptions options_;

  metrics::Desc units_;
  metrics::Desc cpu_user_;
  metrics::Desc cpu_system_;
  metrics::Desc cpus_;
  metrics::Desc cpu_psi_;
  metrics::Desc memory_rss_;
  metrics::Desc memory_cache_;
  metrics::Desc memory_used_;
  metrics::Desc memory_total_;
  metrics::Desc memory_fails_;
  metrics::Desc memory_psi_;
  metrics::Desc pressure_;
  metrics::Desc swap_used_;
  metrics::Desc swap_total_;
  metrics::Desc swap_fails_;
  metrics::Desc read_bytes_;
  metrics::Desc write_bytes_;
  metrics::Desc read_requests_;
  metrics::Desc write_requests_;
  metrics::Desc rdma_handles_;
  metrics::Desc rdma_objects_;
  metrics::Desc error_;
};

/// How units used what they had reserved: their idle energy and the families that follow from
/// energy::UnitUse. A value that is not known yields no series. Not thread-safe.
class UnitUseMetrics {
 public:
  explicit UnitUseMetrics(std::string hostname);

  /// `account` is the one that the unit belongs to.
  void add(const energy::UnitEntry& unit,
           const energy::Account& account,
           metrics::Sink& sink) const;

 private:
  std::string hostname_;

  metrics::Desc idle_joules_;
  metrics::Desc unused_joules_;
  metrics::Desc shmem_;
  metrics::Desc memory_peak_;
  metrics::Desc cpu_max_;
  metrics::Desc idle_seconds_;
  metrics::Desc gpu_busy_;
  metrics::Desc gpu_sms_;
  metrics::Desc gpu_memory_peak_;
};

}  // namespace ceems::exporter
