#include "exporter/gpu/inventory.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/log.h"
#include "base/strings.h"
#include "exporter/gpu/amd_smi.h"
#include "exporter/gpu/amd_sysfs.h"
#include "exporter/gpu/intel_sysfs.h"
#include "exporter/gpu/nvidia_smi.h"
#include "exporter/gpu/pci_devices.h"

namespace ceems::exporter::gpu {
namespace {

constexpr std::size_t kMostOutput = std::size_t{16} << 20U;

/// Vendors to ask. Graphics of Intel counts only where no other vendor's GPU is: SLURM's numbers of
/// GPUs would be ambiguous else.
std::set<Vendor> vendors_here(const InventoryOptions& options) {
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
  if (vendors.size() > 1) {
    vendors.erase(Vendor::kIntel);
  }
  return vendors;
}

std::string_view first_line(std::string_view text) {
  text = trim(text);
  return trim(take_until(text, '\n'));
}

}  // namespace

Inventory::Inventory(InventoryOptions options, os::CommandRunner& runner)
    : options_(std::move(options)), runner_(runner) {}

Inventory::~Inventory() = default;

std::shared_ptr<Inventory> Inventory::create(InventoryOptions options, os::CommandRunner& runner) {
  // The constructor is private.
  std::shared_ptr<Inventory> inventory(new Inventory(std::move(options), runner));
  for (const Vendor vendor : vendors_here(inventory->options_)) {
    inventory->discover(vendor, inventory->options_.first_timeout, {});
  }
  return inventory;
}

std::shared_ptr<const Inventory::Devices> Inventory::devices() const {
  const std::scoped_lock lock(mutex_);
  return devices_;
}

bool Inventory::nothing_here() const {
  const std::scoped_lock lock(mutex_);
  return devices_->empty() && failed_.empty();
}

bool Inventory::has_vgpus() const {
  const auto now = devices();
  return std::any_of(now->begin(), now->end(), [](const Device& device) { return device.vgpu; });
}

std::string Inventory::shared_help(const std::string& help) {
  const std::scoped_lock lock(mutex_);
  if (help_.empty()) {
    help_ = help;
  }
  return help_;
}

void Inventory::start() {
  const bool vgpus = has_vgpus();
  const std::scoped_lock lock(mutex_);
  if (started_ || (failed_.empty() && !(mdevs_wanted_ && vgpus))) {
    return;
  }
  started_ = true;
  worker_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

void Inventory::want_mdevs() {
  {
    const std::scoped_lock lock(mutex_);
    if (std::exchange(mdevs_wanted_, true)) {
      return;
    }
  }
  read_mdevs(options_.first_timeout, {});
}

void Inventory::refresh_mdevs(std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  if (!started_) {
    return;
  }
  refresh_asked_ = true;
  wake_.notify_all();
  const auto before = refreshes_;
  done_.wait_for(lock, patience, [&] { return refreshes_ > before; });
}

void Inventory::run(const std::stop_token& stop) {
  using std::chrono::steady_clock;
  auto pause = options_.first_retry;
  auto next = steady_clock::now() + pause;
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    if (failed_.empty()) {
      wake_.wait(lock, stop, [this] { return refresh_asked_; });
    } else {
      wake_.wait_until(lock, stop, next, [this] { return refresh_asked_; });
    }
    if (stop.stop_requested()) {
      return;
    }
    if (std::exchange(refresh_asked_, false)) {
      lock.unlock();
      read_mdevs(options_.timeout, stop);
      lock.lock();
      ++refreshes_;
      done_.notify_all();
    }
    if (!failed_.empty() && steady_clock::now() >= next) {
      const std::set<Vendor> again = failed_;
      lock.unlock();
      for (const Vendor vendor : again) {
        discover(vendor, options_.timeout, stop);
      }
      lock.lock();
      pause = std::min(2 * pause, options_.longest_retry);
      next = steady_clock::now() + pause;
    }
  }
}

void Inventory::discover(Vendor vendor,
                         std::chrono::milliseconds timeout,
                         const std::stop_token& stop) {
  Found found = list(vendor, timeout, stop);
  if (stop.stop_requested()) {
    return;
  }
  std::unique_lock lock(mutex_);
  if (!found.error.empty()) {
    if (failed_.insert(vendor).second) {
      log::warn("GPUs cannot be listed; trying again from time to time",
                {{"vendor", to_string(vendor)}, {"err", found.error}});
    }
    return;
  }
  failed_.erase(vendor);
  log::info("GPUs found", {{"vendor", to_string(vendor)}, {"count", found.devices.size()}});
  replace(vendor, std::move(found.devices));
  const bool mdevs = mdevs_wanted_;
  lock.unlock();
  if (mdevs) {
    read_mdevs(timeout, stop);
  }
}

/// With the lock held.
void Inventory::replace(Vendor vendor, Devices found) {
  auto devices = std::make_shared<Devices>(*devices_);
  std::erase_if(*devices, [&](const Device& device) { return device.vendor == vendor; });
  devices->insert(devices->end(), std::make_move_iterator(found.begin()),
                  std::make_move_iterator(found.end()));
  std::stable_sort(devices->begin(), devices->end(),
                   [](const Device& a, const Device& b) { return a.vendor < b.vendor; });
  devices_ = std::move(devices);
}

void Inventory::offer(Vendor vendor, Devices devices) {
  const std::scoped_lock lock(mutex_);
  const bool listed = std::any_of(devices_->begin(), devices_->end(),
                                  [&](const Device& device) { return device.vendor == vendor; });
  if (listed || devices.empty() || !failed_.contains(vendor)) {
    return;
  }
  log::info("GPUs found by the vendor's library",
            {{"vendor", to_string(vendor)}, {"count", devices.size()}});
  replace(vendor, std::move(devices));
}

void Inventory::read_mdevs(std::chrono::milliseconds timeout, const std::stop_token& stop) {
  if (!has_vgpus()) {
    return;
  }
  const auto path = tool(options_.nvidia_smi, "nvidia-smi");
  const auto output = path ? run_tool(*path, {"vgpu", "--query"}, timeout, stop)
                           : Result<std::string>(fail(path.error()));
  if (stop.stop_requested()) {
    return;
  }
  const auto entries = output ? parse_vgpu_query(*output) : std::vector<VgpuEntry>{};
  const std::string error = output ? std::string() : output.error().message;
  const std::scoped_lock lock(mutex_);
  if (error != mdev_error_) {
    if (error.empty()) {
      log::info("vGPUs can be listed again");
    } else {
      log::error("vGPUs cannot be listed; those known are kept", {{"err", error}});
    }
    mdev_error_ = error;
  }
  auto devices = std::make_shared<Devices>(*devices_);
  set_mdevs(entries, *devices);
  devices_ = std::move(devices);
}

Inventory::Found Inventory::list(Vendor vendor,
                                 std::chrono::milliseconds timeout,
                                 const std::stop_token& stop) const {
  switch (vendor) {
    case Vendor::kNvidia:
      return list_nvidia(timeout, stop);
    case Vendor::kAmd:
      return list_amd(timeout, stop);
    case Vendor::kIntel:
      return {.devices = intel_devices(options_.paths), .error = {}};
  }
  return {};
}

Inventory::Found Inventory::list_nvidia(std::chrono::milliseconds timeout,
                                        const std::stop_token& stop) const {
  const auto path = tool(options_.nvidia_smi, "nvidia-smi");
  if (!path) {
    return {.devices = {}, .error = path.error().message};
  }
  const auto xml = run_tool(*path, {"--query", "--xml-format"}, timeout, stop);
  if (!xml) {
    return {.devices = {}, .error = xml.error().message};
  }
  auto devices = parse_nvidia_query(*xml);
  if (!devices) {
    return {.devices = {},
            .error = std::move(devices).error().with_context("nvidia-smi --query").message};
  }
  if (devices->empty()) {
    return {.devices = {}, .error = "nvidia-smi lists no GPU"};
  }
  if (std::any_of(devices->begin(), devices->end(), [](const Device& d) { return d.split; })) {
    const auto text = run_tool(*path, {"-L"}, timeout, stop);
    if (!text) {
      return {.devices = {}, .error = text.error().message};
    }
    set_mig_uuids(parse_nvidia_list(*text), *devices);
  }
  return {.devices = *std::move(devices), .error = {}};
}

Inventory::Found Inventory::list_amd(std::chrono::milliseconds timeout,
                                     const std::stop_token& stop) const {
  const auto output = [&](const std::string& given, const char* name,
                          const std::vector<std::string>& arguments) -> Result<std::string> {
    const auto path = tool(given, name);
    return path ? run_tool(*path, arguments, timeout, stop)
                : Result<std::string>(fail(path.error()));
  };
  auto json = output(options_.amd_smi, "amd-smi", {"static", "-a", "-B", "-b", "-p", "--json"});
  const bool by_rocm = !json && json.error().code == ErrorCode::kNotFound;
  if (by_rocm) {
    auto other = output(options_.rocm_smi, "rocm-smi",
                        {"--showproductname", "--showserial", "--showbus", "--showcomputepartition",
                         "--showmemorypartition", "--json"});
    if (!other && other.error().code == ErrorCode::kNotFound) {
      return {.devices = {}, .error = json.error().message + "; " + other.error().message};
    }
    json = std::move(other);
  }
  if (!json) {
    return {.devices = {}, .error = json.error().message};
  }
  auto devices = by_rocm ? parse_rocm_smi(*json) : parse_amd_smi(*json);
  if (!devices) {
    return {
        .devices = {},
        .error = std::move(devices).error().with_context(by_rocm ? "rocm-smi" : "amd-smi").message};
  }
  if (devices->empty()) {
    return {.devices = {}, .error = "the tool lists no GPU"};
  }
  add_amd_sysfs(options_.paths, *devices);
  return {.devices = *std::move(devices), .error = {}};
}

Result<std::string> Inventory::tool(const std::string& given, const char* name) const {
  if (given.empty()) {
    return os::find_program(name, options_.search_path);
  }
  return std::filesystem::absolute(given).string();
}

Result<std::string> Inventory::run_tool(const std::string& path,
                                        std::vector<std::string> arguments,
                                        std::chrono::milliseconds timeout,
                                        const std::stop_token& stop) const {
  auto result = runner_.run({.path = path,
                             .arguments = std::move(arguments),
                             .environment = {{"PATH", options_.search_path}, {"LC_ALL", "C"}},
                             .timeout = timeout,
                             .max_output_bytes = kMostOutput},
                            stop);
  if (!result) {
    return fail(std::move(result).error());
  }
  if (result->exit_status != 0) {
    const auto said = first_line(result->error_text.empty() ? result->output : result->error_text);
    return fail(ErrorCode::kUnavailable, "{} exits with {}: {}", path, result->exit_status,
                printable(said));
  }
  return std::move(result->output);
}

}  // namespace ceems::exporter::gpu
