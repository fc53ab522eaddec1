#include "exporter/gpu/claim/evidence.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/strings.h"
#include "host/cgroup/process.h"
#include "host/read_file.h"

namespace ceems::exporter::gpu {
namespace {

constexpr std::size_t kMaxFile = 65536;
constexpr std::size_t kMaxJobProcesses = 1024;  // of a job, per scrape
constexpr unsigned kLooks = 2;

constexpr std::uint64_t kNvidiaMajor = 195;  // Documentation/admin-guide/devices.txt
constexpr std::uint64_t kDrmMajor = 226;

std::optional<bool> render_allowed(const std::optional<unsigned>& minor,
                                   const AllowedDevices& allowed) {
  return minor ? std::optional(allowed.allows(kDrmMajor, *minor)) : std::nullopt;
}

/// Nothing if the number of its device file is not known.
std::optional<bool> device_allowed(const Device& device, const AllowedDevices& allowed) {
  if (device.vendor != Vendor::kNvidia) {
    return render_allowed(device.render_minor, allowed);
  }
  return device.driver_minor ? std::optional(allowed.allows(kNvidiaMajor, *device.driver_minor))
                             : std::nullopt;
}

/// The index of the GPU or instance; empty if unknown.
std::string index_of(const ProcessList::Entry& entry, const std::vector<Device>& devices) {
  for (const Device& device : devices) {
    if (device.vendor != entry.vendor || device.uuid != entry.device_uuid) {
      continue;
    }
    if (entry.gpu_instance.empty()) {
      return device.index;
    }
    for (const Instance& instance : device.instances) {
      if (std::to_string(instance.gpu_instance) == entry.gpu_instance) {
        return instance.index;
      }
    }
  }
  return {};
}

}  // namespace

bool AllowedDevices::allows(std::uint64_t major, std::uint64_t minor) const {
  return everything || std::any_of(character.begin(), character.end(), [&](const Range& range) {
           return range.major == major && range.minor.value_or(minor) == minor;
         });
}

AllowedDevices parse_devices_list(std::string_view text) {
  constexpr std::size_t kMaxRanges = 65536;
  AllowedDevices allowed;
  while (!text.empty() && allowed.character.size() < kMaxRanges) {
    std::string_view line = take_until(text, '\n');
    const auto type = take_word(line);
    std::string_view numbers = take_word(line);
    const auto access = take_word(line);
    if (access.find('r') == std::string_view::npos) {
      continue;  // "c *:* m": may create device nodes but not use them
    }
    if (type == "a") {
      allowed.everything = true;
    } else if (type == "c") {
      const auto major_text = take_until(numbers, ':');
      const auto minor = parse_int(numbers);
      if (major_text == "*") {
        allowed.everything = true;
      } else if (const auto major = parse_int(major_text); major && (minor || numbers == "*")) {
        allowed.character.push_back({.major = *major, .minor = minor});
      }
    }
  }
  return allowed;
}

std::optional<std::uint64_t> parse_device_major(std::string_view devices, std::string_view name) {
  while (!devices.empty()) {
    std::string_view line = take_until(devices, '\n');
    if (trim(line).starts_with("Block devices")) {
      return std::nullopt;
    }
    const auto major = parse_int(take_word(line));
    if (major && trim(line) == name) {
      return major;
    }
  }
  return std::nullopt;
}

DeviceGroups::DeviceGroups(host::Paths paths, bool unified, std::vector<MigMinor> mig_minors)
    : paths_(std::move(paths)), unified_(unified), mig_minors_(std::move(mig_minors)) {}

void DeviceGroups::refresh() {
  caps_major_.reset();
  if (!unified_) {
    if (const auto text = host::read_file((paths_.proc / "devices").string())) {
      caps_major_ = parse_device_major(*text, "nvidia-caps");
    }
  }
}

std::optional<DeviceGroup> DeviceGroups::of(const Unit& unit, const std::vector<Device>& devices) {
  if (unified_) {
    return std::nullopt;
  }
  const auto path = paths_.cgroup.string() + "/devices" + unit.path + "/devices.list";
  if (!host::read_file(path.c_str(), buffer_, kMaxFile)) {
    return std::nullopt;
  }
  const AllowedDevices allowed = parse_devices_list(buffer_);
  if (allowed.everything) {
    return std::nullopt;
  }
  DeviceGroup group;
  const auto put = [&](const std::string& index, std::optional<bool> may) {
    if (may && !index.empty()) {
      (*may ? group.allowed : group.denied).push_back(index);
    }
  };
  for (const Device& device : devices) {
    const auto whole = device_allowed(device, allowed);
    put(device.index, whole);
    for (const Instance& instance : device.instances) {
      // A MIG device is used through the file of its GPU in addition to its own.
      const bool shut = device.vendor == Vendor::kNvidia && whole == false;
      put(instance.index, shut ? whole : instance_allowed(device, instance, allowed));
    }
  }
  return group;
}

std::optional<bool> DeviceGroups::instance_allowed(const Device& device,
                                                   const Instance& instance,
                                                   const AllowedDevices& allowed) const {
  if (device.vendor != Vendor::kNvidia) {
    return render_allowed(instance.render_minor, allowed);
  }
  if (!device.driver_minor || !caps_major_ || mig_minors_.empty()) {
    return std::nullopt;
  }
  return std::any_of(mig_minors_.begin(), mig_minors_.end(), [&](const MigMinor& minor) {
    return minor.gpu == *device.driver_minor && minor.gpu_instance == instance.gpu_instance &&
           minor.compute_instance == instance.compute_instance &&
           allowed.allows(*caps_major_, minor.capability);
  });
}

void SeenProcesses::refresh(const ProcessList* processes, const std::vector<Device>& devices) {
  by_pid_.clear();
  if (processes == nullptr) {
    return;
  }
  const auto list = processes->all();
  for (const ProcessList::Entry& entry : *list) {
    const auto index = index_of(entry, devices);
    for (const int pid : entry.pids) {
      if (!index.empty()) {
        by_pid_.emplace(pid, index);
      }
    }
  }
}

void SeenProcesses::add_gpus_of(const Unit& unit, std::vector<std::string>& indexes) const {
  if (by_pid_.empty()) {
    return;
  }
  for (const int pid : unit.pids) {
    const auto [begin, end] = by_pid_.equal_range(pid);
    for (auto it = begin; it != end; ++it) {
      if (std::find(indexes.begin(), indexes.end(), it->second) == indexes.end()) {
        indexes.push_back(it->second);
      }
    }
  }
}

std::vector<int> ProcessLooks::next(const std::filesystem::path& proc, const Unit& unit) {
  std::vector<int> live = unit.pids;
  std::sort(live.begin(), live.end());
  std::erase_if(looks_, [&](const auto& look) {
    return !std::binary_search(live.begin(), live.end(), look.first);
  });
  std::vector<std::pair<std::uint64_t, int>> by_start;
  std::string buffer;
  for (const int pid : unit.pids) {
    const auto looked = looks_.find(pid);
    if (looked != looks_.end() && looked->second >= kLooks) {
      continue;
    }
    if (by_start.size() == kMaxJobProcesses) {
      break;
    }
    const auto path = (proc / std::to_string(pid) / "stat").string();
    const auto ticks = host::read_file(path.c_str(), buffer, kMaxFile)
                           ? host::parse_start_ticks(buffer)
                           : std::nullopt;
    by_start.emplace_back(ticks.value_or(std::numeric_limits<std::uint64_t>::max()), pid);
  }
  std::stable_sort(by_start.begin(), by_start.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<int> pids;
  pids.reserve(by_start.size());
  for (const auto& [ticks, pid] : by_start) {
    pids.push_back(pid);
  }
  return pids;
}

void ProcessLooks::count(int pid) {
  ++looks_[pid];
}

std::vector<std::string> without(std::vector<std::string> indexes,
                                 const std::vector<std::string>& others) {
  std::erase_if(indexes, [&](const std::string& index) {
    return std::find(others.begin(), others.end(), index) != others.end();
  });
  return indexes;
}

}  // namespace ceems::exporter::gpu
