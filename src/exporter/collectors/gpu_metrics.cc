#include "exporter/collectors/gpu_metrics.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace ceems::exporter {
namespace {

using metrics::Desc;
using metrics::Type;

Desc device_desc(const char* stem, const char* help, Type type, const char* label = nullptr) {
  std::vector<std::string> labels = {"hostname", "index", "gpuuuid", "gpuiid", "vendor"};
  if (label != nullptr) {
    labels.emplace_back(label);
  }
  return {std::string("ceems_gpu_") + stem, help, type, std::move(labels)};
}

Desc gauge(const char* stem, const char* help, const char* label = nullptr) {
  return device_desc(stem, help, Type::kGauge, label);
}

Desc counter(const char* stem, const char* help, const char* label = nullptr) {
  return device_desc(stem, help, Type::kCounter, label);
}

Desc unit_desc(const char* stem, const char* help) {
  return {
      std::string("ceems_compute_unit_gpu_") + stem,
      help,
      Type::kGauge,
      {"manager", "hostname", "cgrouphostname", "uuid", "index", "hindex", "gpuuuid", "gpuiid"}};
}

bool is_on(const gpu::ProcessUse& process, const gpu::InstanceState& instance) {
  return process.gpu_instance == instance.gpu_instance &&
         (!process.compute_instance || *process.compute_instance == instance.compute_instance);
}

/// Lists each process once, because on a split GPU it may be listed with several instances. With
/// `instance`, only processes of that instance; if it is null, processes of the whole GPU.
double processes_on(const gpu::DeviceState& device, const gpu::InstanceState* instance) {
  std::vector<int> pids;
  for (const gpu::ProcessUse& process : device.processes) {
    if (instance == nullptr || is_on(process, *instance)) {
      pids.push_back(process.pid);
    }
  }
  std::ranges::sort(pids);
  const auto repeated = std::ranges::unique(pids);
  return static_cast<double>(pids.size() - repeated.size());
}

}  // namespace

/// The labels of a GPU or of one of its instances.
struct GpuMetrics::Row {
  std::string_view hostname;
  std::string_view index;
  std::string_view uuid;
  std::string_view gpu_instance;
  std::string_view vendor;

  void add(const Desc& desc, std::optional<double> value, metrics::Sink& sink) const {
    if (value) {
      sink.add(desc, *value, {hostname, index, uuid, gpu_instance, vendor});
    }
  }
  void add(const Desc& desc,
           std::optional<double> value,
           std::string_view label,
           metrics::Sink& sink) const {
    if (value) {
      sink.add(desc, *value, {hostname, index, uuid, gpu_instance, vendor, label});
    }
  }
};

GpuMetrics::GpuMetrics(std::string hostname)
    : hostname_(std::move(hostname)),
      info_("ceems_gpu_info",
            "GPUs and instances of GPUs; the value is 1.",
            Type::kGauge,
            {"hostname", "index", "gpuuuid", "gpuiid", "vendor", "name", "pci_address"}),
      power_(gauge("power_watts", "Power that the GPU draws.")),
      power_limit_(gauge("power_limit_watts", "Power limit of the GPU.")),
      energy_(
          counter("energy_joules_total", "Energy the GPU has used since its driver was loaded.")),
      utilisation_(gauge("utilization_ratio", "Fraction of the time in which the GPU had work.")),
      memory_busy_(gauge("memory_busy_ratio",
                         "Fraction of the time in which memory of the GPU was read or written.")),
      memory_used_(gauge("memory_used_bytes", "Memory of the GPU in use.")),
      memory_total_(gauge("memory_total_bytes", "Memory of the GPU.")),
      temperature_(gauge("temperature_celsius", "Temperature of the GPU by sensor.", "sensor")),
      clock_(gauge("clock_hertz", "Frequency of the clocks of the GPU.", "clock")),
      clock_reason_(gauge(
          "clock_reason", "1 while this is a reason for clocks below their maximum.", "reason")),
      ecc_(counter("ecc_errors_total", "Memory errors over the life of the GPU.", "type")),
      xid_(counter(
          "xid_errors_total", "Xid errors of the driver since the exporter started.", "xid")),
      pcie_sent_(counter("pcie_transmit_bytes_total", "Bytes sent by the GPU over PCIe.")),
      pcie_received_(counter("pcie_receive_bytes_total", "Bytes received by the GPU over PCIe.")),
      pcie_sent_rate_(gauge("pcie_transmit_bytes_per_second",
                            "Bytes sent per second over PCIe, where the GPU does not count them.")),
      pcie_received_rate_(
          gauge("pcie_receive_bytes_per_second",
                "Bytes received per second over PCIe, where the GPU does not count them.")),
      link_sent_(counter("link_transmit_bytes_total",
                         "Bytes sent to other GPUs over NVLink, xGMI or Xe Link.")),
      link_received_(counter("link_receive_bytes_total",
                             "Bytes received from other GPUs over NVLink, xGMI or Xe Link.")),
      link_sent_rate_(gauge("link_transmit_bytes_per_second",
                            "Bytes sent per second to other GPUs, where the GPU does not count "
                            "them.")),
      link_received_rate_(gauge("link_receive_bytes_per_second",
                                "Bytes received per second from other GPUs, where the GPU does not "
                                "count them.")),
      graphics_(
          gauge("graphics_active_ratio", "Fraction of the time in which any engine had work.")),
      sm_active_(
          gauge("sm_active_ratio", "Fraction of the SMs that had work, averaged over time.")),
      sm_occupancy_(gauge("sm_occupancy_ratio", "Warps on the SMs divided by their maximum.")),
      tensor_(gauge("tensor_active_ratio", "Use of the matrix units by pipe.", "pipe")),
      fp64_(gauge("fp64_active_ratio", "Use of the FP64 units, matrix units excluded.")),
      fp32_(gauge("fp32_active_ratio", "Use of the FP32 units, matrix units excluded.")),
      fp16_(gauge("fp16_active_ratio", "Use of the FP16 units, matrix units excluded.")),
      dram_(gauge("dram_active_ratio", "Memory bandwidth in use divided by its maximum.")),
      processes_(gauge("processes", "Processes that use the GPU.")),
      unit_memory_(unit_desc("memory_used_bytes", "GPU memory that the unit uses.")),
      unit_utilisation_(unit_desc("utilization_ratio",
                                  "Fraction of the time in which the unit used the GPU's SMs.")) {}

void GpuMetrics::add(const gpu::DeviceState& device, metrics::Sink& sink) const {
  const std::string_view vendor = to_string(device.vendor);
  const Row row{hostname_, device.index, device.uuid, "", vendor};
  const std::string address = device.address ? to_string(*device.address) : std::string();
  sink.add(info_, 1, {hostname_, device.index, device.uuid, "", vendor, device.name, address});
  row.add(power_, device.power_watts, sink);
  row.add(power_limit_, device.power_limit_watts, sink);
  row.add(energy_, device.energy_joules, sink);
  row.add(utilisation_, device.utilisation, sink);
  row.add(memory_busy_, device.memory_utilisation, sink);
  row.add(memory_used_, device.memory_used_bytes, sink);
  row.add(memory_total_, device.memory_total_bytes, sink);
  row.add(temperature_, device.temperature_celsius, "gpu", sink);
  row.add(temperature_, device.memory_temperature_celsius, "memory", sink);
  for (const auto& [name, hertz] : device.clocks_hertz) {
    row.add(clock_, hertz, name, sink);
  }
  for (const auto& [reason, applies] : device.clock_reasons) {
    row.add(clock_reason_, applies ? 1 : 0, reason, sink);
  }
  add_errors(device, row, sink);
  add_traffic(device, row, sink);
  add_activity(device.activity, row, sink);
  row.add(processes_, processes_on(device, nullptr), sink);
  for (const gpu::InstanceState& instance : device.instances) {
    const std::string id = std::to_string(instance.gpu_instance);
    const Row part{hostname_, instance.index, device.uuid, id, vendor};
    sink.add(info_, 1, {hostname_, instance.index, device.uuid, id, vendor, device.name, address});
    part.add(utilisation_, instance.utilisation, sink);
    part.add(memory_used_, instance.memory_used_bytes, sink);
    part.add(memory_total_, instance.memory_total_bytes, sink);
    part.add(processes_, processes_on(device, &instance), sink);
    add_activity(instance.activity, part, sink);
  }
}

void GpuMetrics::add_errors(const gpu::DeviceState& device,
                            const Row& row,
                            metrics::Sink& sink) const {
  row.add(ecc_, device.ecc_corrected, "corrected", sink);
  row.add(ecc_, device.ecc_uncorrected, "uncorrected", sink);
  for (const auto& [number, count] : device.xids) {
    row.add(xid_, static_cast<double>(count), std::to_string(number), sink);
  }
}

void GpuMetrics::add_traffic(const gpu::DeviceState& device,
                             const Row& row,
                             metrics::Sink& sink) const {
  row.add(pcie_sent_, device.pcie.sent_bytes, sink);
  row.add(pcie_received_, device.pcie.received_bytes, sink);
  row.add(pcie_sent_rate_, device.pcie.sent_bytes_per_second, sink);
  row.add(pcie_received_rate_, device.pcie.received_bytes_per_second, sink);
  row.add(link_sent_, device.link.sent_bytes, sink);
  row.add(link_received_, device.link.received_bytes, sink);
  row.add(link_sent_rate_, device.link.sent_bytes_per_second, sink);
  row.add(link_received_rate_, device.link.received_bytes_per_second, sink);
}

void GpuMetrics::add_activity(const gpu::Activity& activity,
                              const Row& row,
                              metrics::Sink& sink) const {
  row.add(graphics_, activity.graphics, sink);
  row.add(sm_active_, activity.sm_active, sink);
  row.add(sm_occupancy_, activity.sm_occupancy, sink);
  row.add(tensor_, activity.tensor, "any", sink);
  row.add(tensor_, activity.tensor_dfma, "dfma", sink);
  row.add(tensor_, activity.tensor_hmma, "hmma", sink);
  row.add(tensor_, activity.tensor_imma, "imma", sink);
  row.add(fp64_, activity.fp64, sink);
  row.add(fp32_, activity.fp32, sink);
  row.add(fp16_, activity.fp16, sink);
  row.add(dram_, activity.dram, sink);
}

void GpuMetrics::add_units(const gpu::DeviceState& device,
                           std::span<const gpu::UnitProcess> processes,
                           metrics::Sink& sink) const {
  struct Use {
    std::string_view manager;
    std::string index;
    std::optional<double> memory;
    std::optional<double> utilisation;
  };
  const auto sum = [](std::optional<double>& total, std::optional<double> part) {
    if (part) {
      total = total.value_or(0) + *part;
    }
  };
  std::map<std::pair<const Unit*, std::string>, Use> uses;  // by unit and instance
  for (const gpu::ProcessUse& process : device.processes) {
    const auto [begin, end] =
        std::ranges::equal_range(processes, process.pid, {}, &gpu::UnitProcess::pid);
    const std::string id =
        process.gpu_instance ? std::to_string(*process.gpu_instance) : std::string();
    std::string index = device.index;
    for (const gpu::InstanceState& instance : device.instances) {
      if (is_on(process, instance)) {
        index = instance.index;
      }
    }
    for (auto member = begin; member != end; ++member) {
      Use& use = uses[{member->unit, fmt::format("{}/{}", id, index)}];
      use.manager = member->manager;
      use.index = index;
      sum(use.memory, process.memory_bytes);
      sum(use.utilisation, process.utilisation);
    }
  }
  for (const auto& [key, use] : uses) {
    const Unit& unit = *key.first;
    const std::string id = key.second.substr(0, key.second.find('/'));
    const std::string hindex = hostname_ + "/gpu-" + use.index;
    const auto labels =
        std::to_array<std::string_view>({use.manager, hostname_, unit.cgrouphostname, unit.uuid,
                                         use.index, hindex, device.uuid, id});
    if (use.memory) {
      sink.add(unit_memory_, *use.memory, labels);
    }
    if (use.utilisation) {
      sink.add(unit_utilisation_, std::min(*use.utilisation, 1.0), labels);
    }
  }
}

}  // namespace ceems::exporter
