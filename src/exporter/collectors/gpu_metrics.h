#pragma once

#include <span>
#include <string>

#include "exporter/gpu/device_energy.h"
#include "exporter/gpu/library/gpu_library.h"
#include "metrics/desc.h"
#include "metrics/sink.h"

namespace ceems::exporter {

/// The families ceems_gpu_* and, for units, ceems_compute_unit_gpu_{memory_used_bytes,
/// utilization_ratio}. A value that the library does not have yields no series.
class GpuMetrics {
 public:
  explicit GpuMetrics(std::string hostname);

  /// Adds one GPU with its instances.
  void add(const gpu::DeviceState& device, metrics::Sink& sink) const;
  /// Adds what the units use of it. `processes` is the result of gpu::unit_processes().
  void add_units(const gpu::DeviceState& device,
                 std::span<const gpu::UnitProcess> processes,
                 metrics::Sink& sink) const;

 private:
  struct Row;
  void add_traffic(const gpu::DeviceState& device, const Row& row, metrics::Sink& sink) const;
  void add_activity(const gpu::Activity& activity, const Row& row, metrics::Sink& sink) const;
  void add_errors(const gpu::DeviceState& device, const Row& row, metrics::Sink& sink) const;

  std::string hostname_;

  metrics::Desc info_;
  metrics::Desc power_;
  metrics::Desc power_limit_;
  metrics::Desc energy_;
  metrics::Desc utilisation_;
  metrics::Desc memory_busy_;
  metrics::Desc memory_used_;
  metrics::Desc memory_total_;
  metrics::Desc temperature_;
  metrics::Desc clock_;
  metrics::Desc clock_reason_;
  metrics::Desc ecc_;
  metrics::Desc xid_;
  metrics::Desc pcie_sent_;
  metrics::Desc pcie_received_;
  metrics::Desc pcie_sent_rate_;
  metrics::Desc pcie_received_rate_;
  metrics::Desc link_sent_;
  metrics::Desc link_received_;
  metrics::Desc link_sent_rate_;
  metrics::Desc link_received_rate_;
  metrics::Desc graphics_;
  metrics::Desc sm_active_;
  metrics::Desc sm_occupancy_;
  metrics::Desc tensor_;
  metrics::Desc fp64_;
  metrics::Desc fp32_;
  metrics::Desc fp16_;
  metrics::Desc dram_;
  metrics::Desc processes_;
  metrics::Desc unit_memory_;
  metrics::Desc unit_utilisation_;
};

}  // namespace ceems::exporter
