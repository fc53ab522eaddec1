#include "exporter/gpu/inventory/inventory.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <utility>

#include "base/log.h"
#include "base/strings.h"
#include "exporter/gpu/inventory/library_list.h"
#include "exporter/gpu/inventory/sysfs.h"
#include "exporter/gpu/inventory/vendor_tools.h"
#include "host/read_file.h"

namespace ceems::exporter::gpu {
namespace {

constexpr std::size_t kMaxOutput = std::size_t{16} << 20U;

/// Time left for a program to run, but always enough for one that answers at once.
std::chrono::milliseconds left(Lister::Deadline deadline) {
  constexpr std::chrono::milliseconds kMin{300};
  constexpr std::chrono::milliseconds kMax{std::chrono::minutes(5)};
  const auto rest = std::chrono::duration_cast<std::chrono::milliseconds>(
      deadline - std::chrono::steady_clock::now());
  return std::clamp(rest, kMin, kMax);
}

std::string_view first_line(std::string_view text) {
  text = trim(text);
  return trim(take_until(text, '\n'));
}

/// How long devices reported by observe() take precedence over the lister's.
constexpr auto kObservationCounts = std::chrono::minutes(1);

/// The vendors whose GPUs are listed. Intel is left out where another vendor has a GPU, because
/// SLURM's GPU numbers would be ambiguous, and where its only graphics are part of a processor.
std::set<Vendor> present_vendors(const InventoryOptions& options) {
  if (options.type == "nogpu") {
    return {};
  }
  if (options.type == "nvidia") {
    return {Vendor::kNvidia};
  }
  if (options.type == "amd") {
    return {Vendor::kAmd};
  }
  std::set<Vendor> vendors;
  for (const PciGpu& gpu : pci_gpus(options.paths)) {
    vendors.insert(gpu.vendor);
  }
  if (vendors.size() > 1 || intel_devices(options.paths).empty()) {
    vendors.erase(Vendor::kIntel);
  }
  return vendors;
}

bool same_gpu(const Device& one, const Device& other) {
  return one.vendor == other.vendor &&
         (one.address && other.address ? one.address == other.address : one.uuid == other.uuid);
}

const Device* find_gpu(const std::vector<Device>& devices, const Device& wanted) {
  const auto found =
      std::ranges::find_if(devices, [&](const Device& device) { return same_gpu(device, wanted); });
  return found == devices.end() ? nullptr : &*found;
}

/// Numbers GPUs as the vendors' tools do: one sequence over whole GPUs and instances. A split GPU
/// has no number.
void number_devices(std::vector<Device>& devices) {
  std::uint64_t next = 0;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    devices[i].position = i;
    devices[i].index = devices[i].split ? std::string() : std::to_string(next++);
    for (Instance& instance : devices[i].instances) {
      instance.index = std::to_string(next++);
    }
  }
}

/// Returns known GPUs that are still on the PCI bus to their places.
void keep_lost(const std::vector<Device>& known,
               Vendor vendor,
               const std::filesystem::path& pci,
               std::vector<Device>& found) {
  bool any = false;
  std::size_t next = 0;
  for (const Device& device : known) {
    if (device.vendor != vendor) {
      continue;
    }
    const std::size_t place = std::min(next++, found.size());
    if (!device.address || find_gpu(found, device) != nullptr ||
        !host::is_directory((pci / to_string(*device.address)).string())) {
      continue;
    }
    found.insert(found.begin() + static_cast<std::ptrdiff_t>(place), device)->lost = true;
    any = true;
  }
  if (any) {
    number_devices(found);
  }
}

/// Keeps the ids of vGPUs, which no listing has.
void keep_mdevs(const std::vector<Device>& known, std::vector<Device>& found) {
  for (Device& device : found) {
    const Device* before = find_gpu(known, device);
    if (before == nullptr) {
      continue;
    }
    device.mdevs = before->mdevs;
    for (Instance& instance : device.instances) {
      const auto same =
          std::ranges::find(before->instances, instance.gpu_instance, &Instance::gpu_instance);
      if (same != before->instances.end()) {
        instance.mdevs = same->mdevs;
      }
    }
  }
}

}  // namespace

Result<Listing> Lister::list(Vendor vendor, Deadline deadline, const std::stop_token& stop) const {
  if (vendor == Vendor::kIntel) {
    return Listing{.devices = intel_devices(options_.paths), .by = "sysfs"};
  }
  auto devices = by_library(vendor, deadline, stop);
  const bool library = devices.has_value();
  if (!devices) {
    const Error first = std::move(devices).error();
    log::debug("GPUs cannot be listed by the vendor's library",
               {{"vendor", to_string(vendor)}, {"err", first.message}});
    devices =
        vendor == Vendor::kNvidia ? by_nvidia_smi(deadline, stop) : by_amd_tool(deadline, stop);
    if (!devices) {
      Error error = std::move(devices).error();
      if (!options_.own_program.empty()) {
        error.message += "; library: " + first.message;
      }
      return fail(std::move(error));
    }
  }
  if (vendor == Vendor::kAmd) {
    add_amd_sysfs(options_.paths, *devices);
  }
  return Listing{.devices = *std::move(devices), .by = library ? "library" : "tool"};
}

Lister::Devices Lister::by_library(Vendor vendor,
                                   Deadline deadline,
                                   const std::stop_token& stop) const {
  if (options_.own_program.empty()) {
    return fail(ErrorCode::kNotFound, "not used");
  }
  std::vector<std::string> arguments{kListCommand, std::string(to_string(vendor))};
  if (const auto& path = options_.libraries.at(static_cast<std::size_t>(vendor)); !path.empty()) {
    arguments.push_back(path);
  }
  CEEMS_TRY(text, run({.path = options_.own_program,
                       .arguments = std::move(arguments),
                       .environment = options_.own_environment,
                       .timeout = std::min(left(deadline) / 2, options_.library_timeout),
                       .max_output_bytes = kMaxOutput},
                      stop));
  auto devices = parse_device_list(text);
  if (devices && devices->empty()) {
    return fail(ErrorCode::kNoData, "the library lists no GPU");
  }
  return devices;
}

Lister::Devices Lister::by_nvidia_smi(Deadline deadline, const std::stop_token& stop) const {
  CEEMS_TRY(path, tool(options_.nvidia_smi, "nvidia-smi"));
  CEEMS_TRY(xml, run_tool(path, {"--query", "--xml-format"}, deadline, stop));
  CEEMS_TRY_IN("nvidia-smi --query", devices, parse_nvidia_query(xml));
  if (devices.empty()) {
    return fail(ErrorCode::kNoData, "nvidia-smi lists no GPU");
  }
  if (std::ranges::any_of(devices, &Device::split)) {
    CEEMS_TRY(text, run_tool(path, {"-L"}, deadline, stop));
    set_mig_uuids(parse_nvidia_list(text), devices);
  }
  return devices;
}

Lister::Devices Lister::by_amd_tool(Deadline deadline, const std::stop_token& stop) const {
  const auto output = [&](const std::string& given, const char* name,
                          const std::vector<std::string>& arguments) -> Result<std::string> {
    const auto path = tool(given, name);
    return path ? run_tool(*path, arguments, deadline, stop)
                : Result<std::string>(fail(path.error()));
  };
  auto json = output(options_.amd_smi, "amd-smi", {"static", "-a", "-B", "-b", "-p", "--json"});
  const bool by_rocm = !json && json.error().code == ErrorCode::kNotFound;
  if (by_rocm) {
    auto other = output(options_.rocm_smi, "rocm-smi",
                        {"--showproductname", "--showserial", "--showbus", "--showcomputepartition",
                         "--showmemorypartition", "--json"});
    if (!other && other.error().code == ErrorCode::kNotFound) {
      return fail(ErrorCode::kNotFound, "{}; {}", json.error().message, other.error().message);
    }
    json = std::move(other);
  }
  if (!json) {
    return fail(json.error());
  }
  CEEMS_TRY_IN(by_rocm ? "rocm-smi" : "amd-smi", devices,
               by_rocm ? parse_rocm_smi(*json) : parse_amd_smi(*json));
  if (devices.empty()) {
    return fail(ErrorCode::kNoData, "the tool lists no GPU");
  }
  return devices;
}

Result<std::vector<VgpuEntry>> Lister::list_vgpus(Deadline deadline,
                                                  const std::stop_token& stop) const {
  CEEMS_TRY(path, tool(options_.nvidia_smi, "nvidia-smi"));
  CEEMS_TRY(text, run_tool(path, {"vgpu", "--query"}, deadline, stop));
  return parse_vgpu_query(text);
}

Result<std::string> Lister::tool(const std::string& given, const char* name) const {
  if (given.empty()) {
    return os::find_program(name, options_.search_path);
  }
  return std::filesystem::absolute(given).string();
}

Result<std::string> Lister::run_tool(const std::string& path,
                                     std::vector<std::string> arguments,
                                     Deadline deadline,
                                     const std::stop_token& stop) const {
  return run({.path = path,
              .arguments = std::move(arguments),
              .environment = {{"PATH", options_.search_path}, {"LC_ALL", "C"}},
              .timeout = left(deadline),
              .max_output_bytes = kMaxOutput},
             stop);
}

Result<std::string> Lister::run(os::Command command, const std::stop_token& stop) const {
  CEEMS_TRY(result, runner_.run(command, stop));
  if (result.exit_status != 0) {
    const auto said = first_line(result.error_text.empty() ? result.output : result.error_text);
    return fail(ErrorCode::kUnavailable, "{} exited with {}: {}", command.path, result.exit_status,
                printable(said));
  }
  return std::move(result.output);
}

Inventory::Inventory(InventoryOptions options, os::CommandRunner& runner)
    : options_(std::move(options)),
      lister_(options_, runner),
      vendors_(present_vendors(options_)),
      layout_(vendors_.empty() ? std::string() : gpu_layout(options_.paths)) {}

Inventory::~Inventory() = default;

std::shared_ptr<Inventory> Inventory::create(InventoryOptions options, os::CommandRunner& runner) {
  // Not make_shared, because the constructor is private.
  std::shared_ptr<Inventory> inventory(new Inventory(std::move(options), runner));
  for (const Vendor vendor : inventory->vendors_) {
    inventory->discover(vendor, inventory->options_.start_until, {});
  }
  return inventory;
}

std::shared_ptr<const Inventory::Devices> Inventory::devices() const {
  const MutexLock lock(mutex_);
  return devices_;
}

bool Inventory::has_no_gpus() const {
  return vendors_.empty();
}

bool Inventory::has_vgpus() const {
  const auto now = devices();
  return std::ranges::any_of(*now, &Device::vgpu);
}

std::string Inventory::shared_help(const std::string& help) {
  const MutexLock lock(mutex_);
  if (help_.empty()) {
    help_ = help;
  }
  return help_;
}

void Inventory::wait_first(Steady::time_point deadline) const {
  MutexLock lock(mutex_);
  done_.wait_until(lock, deadline, [this]() CEEMS_REQUIRES(mutex_) { return !late_; });
}

void Inventory::want_mdevs() {
  {
    const MutexLock lock(mutex_);
    if (std::exchange(mdevs_wanted_, true)) {
      return;
    }
  }
  read_mdevs(options_.start_until, {});
}

void Inventory::start() {
  const MutexLock lock(mutex_);
  if (vendors_.empty() || std::exchange(started_, true)) {
    return;
  }
  late_ = !failed_.empty() && options_.start_until < Steady::now();
  worker_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

void Inventory::refresh_mdevs(std::chrono::milliseconds patience) {
  MutexLock lock(mutex_);
  if (!started_) {
    return;
  }
  refresh_requested_ = true;
  wake_.notify_all();
  const auto before = refreshes_;
  done_.wait_for(lock, patience, [&]() CEEMS_REQUIRES(mutex_) { return refreshes_ > before; });
}

void Inventory::run(const std::stop_token& stop) {
  MutexLock lock(mutex_);
  auto pause = options_.first_retry_pause;
  auto retry = late_ ? Steady::now() : Steady::now() + pause;
  auto watch = Steady::now() + options_.watch_period;
  while (!stop.stop_requested()) {
    wake_.wait_until(lock, stop, failed_.empty() ? watch : std::min(watch, retry),
                     [this]() CEEMS_REQUIRES(mutex_) { return refresh_requested_; });
    if (stop.stop_requested()) {
      return;
    }
    if (std::exchange(refresh_requested_, false)) {
      lock.unlock();
      read_mdevs(Steady::now() + options_.timeout, stop);
      lock.lock();
      ++refreshes_;
    }
    if (failed_.empty()) {
      pause = options_.first_retry_pause;
      retry = Steady::now() + pause;
    } else if (Steady::now() >= retry) {
      const std::set<Vendor> again = failed_;
      lock.unlock();
      discover_again(again, stop);
      lock.lock();
      pause = std::exchange(late_, false) ? pause : std::min(2 * pause, options_.max_retry_pause);
      retry = Steady::now() + pause;
    }
    if (Steady::now() >= watch) {
      lock.unlock();
      check_layout(stop);
      lock.lock();
      watch = Steady::now() + options_.watch_period;
    }
    done_.notify_all();
  }
}

void Inventory::check_layout(const std::stop_token& stop) {
  std::string now = gpu_layout(options_.paths);
  {
    const MutexLock lock(mutex_);
    if (now == layout_) {
      return;
    }
    layout_ = std::move(now);
  }
  log::info("GPUs have changed; listing them again");
  discover_again(vendors_, stop);
}

// Listing.

void Inventory::discover_again(const std::set<Vendor>& vendors, const std::stop_token& stop) {
  for (const Vendor vendor : vendors) {
    discover(vendor, Steady::now() + options_.timeout, stop);
  }
  bool mdevs = false;
  {
    const MutexLock lock(mutex_);
    mdevs = mdevs_wanted_;
  }
  if (mdevs) {
    read_mdevs(Steady::now() + options_.timeout, stop);
  }
}

void Inventory::discover(Vendor vendor, Steady::time_point deadline, const std::stop_token& stop) {
  {
    const MutexLock lock(mutex_);
    if (observed_lately(vendor)) {
      failed_.erase(vendor);
      return;
    }
  }
  auto found = lister_.list(vendor, deadline, stop);
  if (stop.stop_requested()) {
    return;
  }
  const MutexLock lock(mutex_);
  if (!found) {
    if (failed_.insert(vendor).second) {
      log::warn("GPUs cannot be listed; retrying periodically",
                {{"vendor", to_string(vendor)}, {"err", found.error().message}});
    }
    return;
  }
  failed_.erase(vendor);
  if (observed_lately(vendor)) {  // reported during the listing
    return;
  }
  log::info("GPUs found", {{"vendor", to_string(vendor)},
                           {"count", found->devices.size()},
                           {"lost", std::ranges::count(found->devices, true, &Device::lost)},
                           {"by", found->by}});
  replace(vendor, std::move(found->devices));
}

bool Inventory::observed_lately(Vendor vendor) const {
  const auto at = observed_at_.find(vendor);
  return at != observed_at_.end() && Steady::now() - at->second < kObservationCounts;
}

void Inventory::observe(Vendor vendor, Devices devices) {
  if (devices.empty()) {
    return;
  }
  {
    const MutexLock lock(mutex_);
    if (!vendors_.contains(vendor) || vendor == Vendor::kIntel) {
      return;
    }
    observed_at_[vendor] = Steady::now();
    const auto last = observed_.find(vendor);
    if (last != observed_.end() && last->second == devices) {
      return;
    }
    observed_[vendor] = devices;
  }
  if (vendor == Vendor::kAmd) {
    add_amd_sysfs(options_.paths, devices);
  }
  const MutexLock lock(mutex_);
  replace(vendor, std::move(devices));
}

void Inventory::replace(Vendor vendor, Devices found) {
  const std::size_t listed = found.size();
  gpu::identify_lost(options_.paths, found);
  if (found.size() > listed) {
    number_devices(found);
  }
  keep_lost(*devices_, vendor, options_.paths.sys / "bus/pci/devices", found);
  keep_mdevs(*devices_, found);
  auto devices = std::make_shared<Devices>(*devices_);
  std::erase_if(*devices, [&](const Device& device) { return device.vendor == vendor; });
  devices->insert(devices->end(), std::make_move_iterator(found.begin()),
                  std::make_move_iterator(found.end()));
  std::ranges::stable_sort(*devices, {}, &Device::vendor);
  if (*devices != *devices_) {
    devices_ = std::move(devices);
  }
}

void Inventory::read_mdevs(Steady::time_point deadline, const std::stop_token& stop) {
  if (!has_vgpus()) {
    return;
  }
  const auto entries = lister_.list_vgpus(deadline, stop);
  if (stop.stop_requested()) {
    return;
  }
  const std::string error = entries ? std::string() : entries.error().message;
  const MutexLock lock(mutex_);
  if (error != mdev_error_) {
    if (error.empty()) {
      log::info("vGPUs can be listed again");
    } else if (mdev_error_.empty()) {
      log::error("vGPUs cannot be listed; keeping the known ones", {{"err", error}});
    }
    mdev_error_ = error;
  }
  if (entries) {
    auto devices = std::make_shared<Devices>(*devices_);
    set_mdevs(*entries, *devices);
    devices_ = std::move(devices);
  }
}

}  // namespace ceems::exporter::gpu
