#include "exporter/gpu/inventory/lost.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "base/strings.h"
#include "exporter/gpu/inventory/sysfs.h"
#include "host/read_file.h"

namespace ceems::exporter::gpu {
namespace {

constexpr std::string_view kNotListed = "the driver knows it, but its library does not list it";

bool is_lost(const Device& device) {
  return device.lost;
}
bool is_lost(const DeviceState& device) {
  return !device.lost.empty();
}

void set_lost(Device& device) {
  device.lost = true;
  device.path_name = device.address ? to_string(*device.address) : std::string();
}
void set_lost(DeviceState& device) {
  if (device.lost.empty()) {
    device.lost = kNotListed;
  }
}

/// A place in the library's list of which only the number is known.
template <class D>
bool nameless(const D& device) {
  return is_lost(device) && !device.address && device.name.empty();
}

/// What the driver says about a GPU, answering or not.
struct DriverGpu {
  PciAddress address;
  std::string uuid;
  std::string name;
  std::optional<std::uint64_t> minor;
};

DriverGpu driver_gpu(const std::filesystem::path& directory, const PciAddress& address) {
  DriverGpu gpu{.address = address, .uuid = {}, .name = {}, .minor = {}};
  const auto text = host::read_file((directory / "information").string());
  std::string_view rest = text ? std::string_view(*text) : std::string_view();
  while (!rest.empty()) {
    std::string_view value = take_until(rest, '\n');
    const auto key = trim(take_until(value, ':'));
    if (key == "Model") {
      gpu.name = printable(trim(value), 256);
    } else if (key == "GPU UUID" && value.find('?') == std::string_view::npos) {
      gpu.uuid = printable(trim(value), 256);
    } else if (key == "Device Minor") {
      gpu.minor = parse_int(trim(value));
    }
  }
  return gpu;
}

/// The GPUs of NVIDIA's driver by address; `complete` if these are all that its library may list.
std::vector<DriverGpu> driver_gpus(const host::Paths& paths, bool& complete) {
  std::vector<DriverGpu> gpus;
  std::error_code error;
  const auto folder = paths.proc / "driver/nvidia/gpus";
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    if (const auto address = parse_pci_address(it->path().filename().string());
        address && gpus.size() < kMaxDevices) {
      gpus.push_back(driver_gpu(it->path(), *address));
    }
  }
  complete = !gpus.empty();
  if (!complete) {
    for (const PciGpu& gpu : pci_gpus(paths)) {
      const auto address = parse_pci_address(gpu.name);
      if (gpu.vendor == Vendor::kNvidia && address) {
        gpus.push_back({.address = *address, .uuid = {}, .name = {}, .minor = {}});
      }
    }
  }
  std::ranges::sort(gpus, {}, &DriverGpu::address);
  return gpus;
}

template <class D>
void take(const DriverGpu& gpu, D& device) {
  device.address = gpu.address;
  if (!gpu.uuid.empty()) {
    device.uuid = gpu.uuid;
  } else if (device.uuid.empty()) {
    device.uuid = to_string(gpu.address);
  }
  device.name = gpu.name;
  device.driver_minor = gpu.minor;
  set_lost(device);
}

template <class D>
void identify(const host::Paths& paths, std::vector<D>& devices) {
  if (std::ranges::none_of(devices, [](const D& d) { return d.vendor == Vendor::kNvidia; })) {
    return;
  }
  bool complete = false;
  auto gpus = driver_gpus(paths, complete);
  std::erase_if(gpus, [&](const DriverGpu& gpu) {
    return std::ranges::any_of(devices, [&](const D& d) { return d.address == gpu.address; });
  });
  auto next = gpus.begin();
  for (D& device : devices) {
    if (next != gpus.end() && device.vendor == Vendor::kNvidia && nameless(device)) {
      take(*next++, device);
    }
  }
  if (!complete) {
    return;
  }
  for (; next != gpus.end(); ++next) {
    D added{};
    take(*next, added);
    const auto place = std::ranges::find_if(devices, [&](const D& d) {
      return d.vendor == Vendor::kNvidia && d.address && *d.address > next->address;
    });
    devices.insert(place, std::move(added));
  }
}

bool same(const DeviceState& one, const DeviceState& other) {
  return one.address && other.address ? one.address == other.address : one.uuid == other.uuid;
}

}  // namespace

void identify_lost(const host::Paths& paths, std::vector<Device>& devices) {
  identify(paths, devices);
}

void identify_lost(const host::Paths& paths, std::vector<DeviceState>& devices) {
  identify(paths, devices);
}

void recall(const std::vector<DeviceState>& before, std::vector<DeviceState>& now) {
  std::vector<std::size_t> missing;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const auto found =
        std::ranges::find_if(now, [&](const DeviceState& d) { return same(before[i], d); });
    if (found == now.end()) {
      missing.push_back(i);
    } else if (is_lost(*found)) {  // a library that was opened anew no longer knows its counters
      DeviceState kept = as_lost(before[i], std::exchange(found->lost, {}));
      kept.xids = found->xids.empty() ? kept.xids : found->xids;
      kept.errors = found->errors.empty() ? kept.errors : found->errors;
      *found = std::move(kept);
    }
  }
  for (std::size_t i = 0; i < now.size(); ++i) {
    if (!nameless(now[i]) || missing.empty()) {
      continue;
    }
    auto mine = std::ranges::find(missing, i);
    mine = mine == missing.end() ? missing.begin() : mine;
    now[i] = as_lost(before[*mine], std::exchange(now[i].lost, {}));
    missing.erase(mine);
  }
  for (const std::size_t i : missing) {
    if (nameless(before[i])) {
      continue;  // it has a name now
    }
    const auto place = now.begin() + static_cast<std::ptrdiff_t>(std::min(i, now.size()));
    now.insert(place, as_lost(before[i], "the library no longer lists it"));
  }
}

}  // namespace ceems::exporter::gpu
