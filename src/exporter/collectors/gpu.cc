#include "exporter/collectors/gpu.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/log.h"
#include "exporter/collectors/gpu_metrics.h"
#include "exporter/collectors/unit_flags.h"
#include "exporter/energy/options.h"
#include "exporter/gpu/device_energy.h"
#include "exporter/gpu/inventory/pci_devices.h"
#include "exporter/gpu/monitor.h"
#include "host/read_file.h"

namespace ceems::exporter {
namespace {

using gpu::Vendor;

constexpr std::array kVendors = {Vendor::kNvidia, Vendor::kAmd, Vendor::kIntel};

// A walk of the cgroups within this time, by a sampler or another collector, is shared.
constexpr auto kSharedAge = std::chrono::milliseconds(100);

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
    for (const gpu::DeviceState& device : reading->devices) {
      metrics_.add(device, sink);
    }
    add_units(*reading, sink);
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
      const auto snapshot = source->snapshot(kSharedAge);
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
    for (const Vendor vendor : kVendors) {
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
