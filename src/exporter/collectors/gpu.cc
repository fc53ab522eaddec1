#include "exporter/collectors/gpu.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "exporter/collectors/unit_flags.h"
#include "exporter/energy/options.h"
#include "exporter/gpu/device_energy.h"
#include "exporter/gpu/inventory/sysfs.h"
#include "exporter/gpu/monitor.h"
#include "host/read_file.h"
#include "metrics/desc.h"
#include "metrics/sink.h"

namespace ceems::exporter {
namespace {

/// The families ceems_gpu_* and, for units, ceems_compute_unit_gpu_{memory_used_bytes,
/// utilization_ratio}. A value that the library does not have yields no series.
class GpuMetrics {
 public:
  explicit GpuMetrics(std::string hostname);

  /// Adds one GPU with its instances. `still` is the number of readings for which its energy
  /// counter stood still.
  void add(const gpu::DeviceState& device, std::uint64_t still, metrics::Sink& sink) const;
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
  metrics::Desc up_;
  metrics::Desc errors_;
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
  metrics::Desc clock_reason_seconds_;
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

Desc gpu_unit_desc(const char* stem, const char* help) {
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
      up_(gauge("up", "1 if the GPU answers, 0 if it is lost; its counters stay as they were.")),
      errors_(counter("read_errors_total",
                      "Calls of the GPU's library that failed, and readings of an energy counter "
                      "that stood still, since the exporter started.",
                      "error")),
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
      clock_reason_seconds_(counter("clock_reason_seconds_total",
                                    "Seconds in which this was a reason for clocks below their "
                                    "maximum, since the exporter started.",
                                    "reason")),
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
      unit_memory_(gpu_unit_desc("memory_used_bytes", "GPU memory that the unit uses.")),
      unit_utilisation_(gpu_unit_desc(
          "utilization_ratio", "Fraction of the time in which the unit used the GPU's SMs.")) {}

void GpuMetrics::add(const gpu::DeviceState& device,
                     std::uint64_t still,
                     metrics::Sink& sink) const {
  const std::string_view vendor = to_string(device.vendor);
  const Row row{hostname_, device.index, device.uuid, "", vendor};
  const std::string address = device.address ? to_string(*device.address) : std::string();
  sink.add(info_, 1, {hostname_, device.index, device.uuid, "", vendor, device.name, address});
  row.add(up_, device.lost.empty() ? 1 : 0, sink);
  for (const auto& [error, count] : device.errors) {
    row.add(errors_, static_cast<double>(count), error, sink);
  }
  if (still > 0) {
    row.add(errors_, static_cast<double>(still), "energy_stands_still", sink);
  }
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
  for (const auto& [reason, seconds] : device.clock_reason_seconds) {
    row.add(clock_reason_seconds_, seconds, reason, sink);
  }
  add_errors(device, row, sink);
  add_traffic(device, row, sink);
  add_activity(device.activity, row, sink);
  if (device.lost.empty()) {
    row.add(processes_, processes_on(device, nullptr), sink);
  }
  for (const gpu::InstanceState& instance : device.instances) {
    const std::string id = std::to_string(instance.gpu_instance);
    const Row part{hostname_, instance.index, device.uuid, id, vendor};
    sink.add(info_, 1, {hostname_, instance.index, device.uuid, id, vendor, device.name, address});
    part.add(utilisation_, instance.utilisation, sink);
    part.add(memory_used_, instance.memory_used_bytes, sink);
    part.add(memory_total_, instance.memory_total_bytes, sink);
    if (device.lost.empty()) {
      part.add(processes_, processes_on(device, &instance), sink);
    }
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

using gpu::Vendor;

constexpr std::array kGpuVendors = {Vendor::kNvidia, Vendor::kAmd, Vendor::kIntel};

// A walk of the cgroups within this time, by a sampler or another collector, is shared.
constexpr auto kGpuSharedAge = std::chrono::milliseconds(100);

class GpuCollector final : public Collector {
 public:
  /// `devices` is null if no library was loaded. Nothing is read then.
  GpuCollector(const CollectorContext& context,
               std::vector<std::shared_ptr<UnitSource>> units,
               std::shared_ptr<gpu::Monitor> monitor,
               std::shared_ptr<gpu::DeviceEnergy> devices)
      : clock_(*context.clock),
        units_(std::move(units)),
        monitor_(std::move(monitor)),
        devices_(std::move(devices)),
        metrics_(context.hostname) {}

  [[nodiscard]] Sources sources() const override {
    return devices_ != nullptr ? Sources{.devices = {devices_}} : Sources{};
  }

  void start() override {
    if (devices_ != nullptr) {
      monitor_->start();
    }
  }

  void wait_first(std::chrono::steady_clock::time_point deadline) override {
    if (devices_ != nullptr) {
      monitor_->wait_first(deadline);
    }
  }

  Result<> collect(metrics::Sink& sink) override {
    if (devices_ == nullptr) {
      return fail(ErrorCode::kNoData, "no library of a GPU vendor was loaded");
    }
    const auto reading = monitor_->latest();
    if (reading == nullptr) {
      return fail(ErrorCode::kUnavailable, "no recent reading: {}", monitor_->last_error());
    }
    const auto still = devices_->still_readings();
    for (const gpu::DeviceState& device : reading->devices) {
      const auto found = still.find(device.uuid);
      metrics_.add(device, found == still.end() ? 0 : found->second, sink);
    }
    add_units(*reading, sink);
    const auto lost = [](const gpu::DeviceState& device) { return !device.lost.empty(); };
    if (!reading->devices.empty() && std::ranges::all_of(reading->devices, lost)) {
      return fail(ErrorCode::kUnavailable, "no GPU answers: {}", reading->devices.front().lost);
    }
    return {};
  }

  [[nodiscard]] std::vector<SourceAge> source_ages() const override {
    const auto good = monitor_->last_good();
    if (!good) {
      return {};
    }
    return {{.source = "gpu", .age = clock_.steady_now() - *good}};
  }

 private:
  void add_units(const gpu::Reading& reading, metrics::Sink& sink) const {
    const bool any =
        std::any_of(reading.devices.begin(), reading.devices.end(),
                    [](const gpu::DeviceState& device) { return !device.processes.empty(); });
    if (!any) {
      return;
    }
    for (const auto& source : units_) {
      const auto snapshot = source->snapshot(kGpuSharedAge);
      if (!snapshot) {
        continue;  // the collector of these units reports the error
      }
      const std::array<energy::ManagerUnits, 1> manager = {
          energy::ManagerUnits{.manager = source->manager(), .snapshot = snapshot->get()}};
      const auto processes = gpu::unit_processes(reading.devices, manager);
      for (const gpu::DeviceState& device : reading.devices) {
        metrics_.add_units(device, processes, sink);
      }
    }
  }

  const Clock& clock_;
  const std::vector<std::shared_ptr<UnitSource>> units_;
  const std::shared_ptr<gpu::Monitor> monitor_;
  const std::shared_ptr<gpu::DeviceEnergy> devices_;
  const GpuMetrics metrics_;
};

/// Values of the flags, and the libraries that were found. They are loaded on first use.
class Setup {
 public:
  explicit Setup(const std::shared_ptr<UnitFlags>& shared) : gpus_(shared, &shared->gpus) {}

  void add_to(config::FlagSet& flags) {
    flags.add("collector.gpu.interval", interval_,
              {.help = "Time between two readings of the GPUs"});
  }

  /// True if there are GPUs whose library can be loaded.
  bool present(const CollectorContext& context) {
    load(context);
    return !libraries_.empty();
  }

  Result<std::unique_ptr<Collector>> create(const CollectorContext& context,
                                            const Sources& sources) {
    CEEMS_TRY(interval,
              energy::parse_duration("--collector.gpu.interval", interval_,
                                     std::chrono::milliseconds(100), std::chrono::minutes(5)));
    load(context);
    if (libraries_.empty()) {
      log::warn("no library of a GPU vendor can be loaded",
                {{"collector", "gpu"}, {"err", error_}});
    }
    const GpuCollectorOptions options{
        .interval = interval, .max_age = std::max(std::chrono::milliseconds(30'000), 5 * interval)};
    return make_gpu_collector(context, sources.units, options, std::exchange(libraries_, {}),
                              gpus_->existing_inventory(), gpus_->processes());
  }

 private:
  /// Vendors of this machine's GPUs. A container may have the driver without the PCI bus.
  [[nodiscard]] std::set<Vendor> vendors(const CollectorContext& context) const {
    if (gpus_->type() == "nogpu") {
      return {};
    }
    std::set<Vendor> found;
    for (const gpu::PciGpu& device : gpu::pci_gpus(context.paths)) {
      const auto address = gpu::parse_pci_address(device.name);
      const bool of_processor = device.vendor == Vendor::kIntel && address &&
                                address->domain == 0 && address->bus == 0 && address->device == 2;
      if (!of_processor) {
        found.insert(device.vendor);
      }
    }
    if (host::is_directory((context.paths.proc / "driver/nvidia/gpus").string())) {
      found.insert(Vendor::kNvidia);
    }
    for (const Vendor vendor : kGpuVendors) {
      const bool other = !gpus_->type().empty() && gpus_->type() != to_string(vendor);
      if (other) {
        found.erase(vendor);
      } else if (!gpus_->library(vendor).empty()) {
        found.insert(vendor);
      }
    }
    return found;
  }

  void load(const CollectorContext& context) {
    if (std::exchange(loaded_, true)) {
      return;
    }
    error_ = "this machine has no GPU";
    for (const Vendor vendor : vendors(context)) {
      if (!gpus_->may_use_library(vendor, context.paths)) {
        error_ = "--path.sysfs is not the sysfs of this machine";
        continue;
      }
      auto library = gpu::load_library(vendor, gpus_->library(vendor), context.paths.sys);
      if (library) {
        libraries_.push_back(*std::move(library));
      } else {
        error_ = library.error().message;
        log::debug("library of a GPU vendor cannot be loaded",
                   {{"vendor", to_string(vendor)}, {"err", error_}});
      }
    }
  }

  const std::shared_ptr<GpuFlags> gpus_;  // keeps the shared flags alive
  std::string interval_ = "1s";
  bool loaded_ = false;
  std::vector<std::unique_ptr<gpu::GpuLibrary>> libraries_;
  std::string error_;
};

}  // namespace

std::unique_ptr<Collector> make_gpu_collector(
    const CollectorContext& context,
    const std::vector<std::shared_ptr<UnitSource>>& units,
    const GpuCollectorOptions& options,
    std::vector<std::unique_ptr<gpu::GpuLibrary>> libraries,
    std::shared_ptr<gpu::Inventory> inventory,
    std::shared_ptr<gpu::ProcessList> processes) {
  const bool any = !libraries.empty();
  auto monitor = std::make_shared<gpu::Monitor>(
      gpu::MonitorOptions{.interval = options.interval,
                          .max_age = options.max_age,
                          .patience = options.patience,
                          .first_wait = options.first_wait},
      *context.clock, std::move(libraries), inventory, std::move(processes));
  std::shared_ptr<gpu::DeviceEnergy> devices;
  if (any) {
    for (const auto& source : units) {
      source->want_processes();
    }
    devices = std::make_shared<gpu::DeviceEnergy>(monitor, std::move(inventory));
  }
  return std::make_unique<GpuCollector>(context, units, std::move(monitor), std::move(devices));
}

/// --collector.gpu: GPUs, through the libraries of their vendors. On by default if a GPU and its
/// library are present; otherwise no library is searched for.
CollectorSpec gpu_collector(const std::shared_ptr<UnitFlags>& shared) {
  const auto setup = std::make_shared<Setup>(shared);
  return {
      .name = "gpu",
      .help =
          "Enable the gpu collector (power, use, memory and errors of GPUs from the libraries of "
          "their vendors; on by default if a GPU and its library are present)",
      .stage = Stage::kDevices,
      .enabled_when = [setup](const CollectorContext& context,
                              const Sources&) { return setup->present(context); },
      .add_flags = [setup](config::FlagSet& flags) { setup->add_to(flags); },
      .create = [setup](const CollectorContext& context,
                        const Sources& sources) { return setup->create(context, sources); }};
}

}  // namespace ceems::exporter
