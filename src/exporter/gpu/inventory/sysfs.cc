#include "exporter/gpu/inventory/sysfs.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "base/strings.h"
#include "host/read_file.h"

namespace ceems::exporter::gpu {
namespace {

constexpr std::size_t kMaxPciDevices = 65536;
constexpr std::size_t kMaxPciText = 64;

constexpr unsigned kNvidiaId = 0x10de;
constexpr unsigned kAmdId = 0x1002;
constexpr unsigned kIntelId = 0x8086;

std::optional<unsigned> number_with_prefix(std::string_view text) {
  text = trim(text);
  const bool hex = text.starts_with("0x") || text.starts_with("0X");
  if (hex) {
    text.remove_prefix(2);
  }
  unsigned value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, hex ? 16 : 10);
  if (error != std::errc{} || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

constexpr std::size_t kMaxNodes = 4096;

/// A device of the driver: a PCI device or, for the further partitions of one, a platform device.
struct Candidate {
  std::string name;  ///< name of its directory
  bool pci = false;
  KfdNode node;
};

std::vector<std::string> names_in(const std::filesystem::path& directory) {
  auto names = host::list_directory(directory.string());
  if (!names) {
    return {};
  }
  names->resize(std::min(names->size(), kMaxNodes));
  return *std::move(names);
}

std::map<std::uint64_t, KfdNode> nodes_by_render_minor(const host::Paths& paths) {
  std::map<std::uint64_t, KfdNode> nodes;
  const auto topology = paths.sys / "class/kfd/kfd/topology/nodes";
  for (const std::string& name : names_in(topology)) {
    const auto text = host::read_file((topology / name / "properties").string(), 65536);
    if (const auto node = text ? parse_kfd_properties(*text) : std::nullopt) {
      nodes.try_emplace(node->render_minor, *node);
    }
  }
  return nodes;
}

std::optional<std::uint64_t> render_minor_of(const std::filesystem::path& device) {
  constexpr std::string_view kRender = "renderD";
  for (const std::string& name : names_in(device / "drm")) {
    if (name.starts_with(kRender)) {
      return parse_int(std::string_view(name).substr(kRender.size()));
    }
  }
  return std::nullopt;
}

std::vector<Candidate> candidates(const host::Paths& paths,
                                  const std::map<std::uint64_t, KfdNode>& nodes) {
  std::vector<Candidate> all;
  const auto add = [&](const std::filesystem::path& directory, bool pci, auto&& wanted) {
    for (const std::string& name : names_in(directory)) {
      if (!wanted(name)) {
        continue;
      }
      const auto minor = render_minor_of(directory / name);
      const auto node = minor ? nodes.find(*minor) : nodes.end();
      if (node != nodes.end()) {
        all.push_back({.name = name, .pci = pci, .node = node->second});
      }
    }
  };
  add(paths.sys / "module/amdgpu/drivers/pci:amdgpu", true, [](std::string_view name) {
    return name.find(':') == 4 &&
           name.find_first_not_of("0123456789abcdefABCDEF") == 4;  // "0000:c8:00.0"
  });
  add(paths.sys / "devices/platform", false,
      [](std::string_view name) { return name.starts_with("amdgpu_xcp"); });
  return all;
}

/// Candidates of one GPU by its name in sysfs, in the order of render minors.
std::map<std::string, std::vector<Candidate>> groups(std::vector<Candidate> all) {
  std::map<std::uint64_t, std::string> pci_names;
  for (const Candidate& candidate : all) {
    if (candidate.pci) {
      pci_names[candidate.node.unique_id] = to_lower(candidate.name);
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const Candidate& a, const Candidate& b) {
    return a.node.render_minor < b.node.render_minor;
  });
  std::map<std::string, std::vector<Candidate>> by_name;
  for (Candidate& candidate : all) {
    const auto name = pci_names.find(candidate.node.unique_id);
    if (name != pci_names.end()) {
      by_name[name->second].push_back(std::move(candidate));
    }
  }
  return by_name;
}

constexpr std::size_t kMaxNames = 4096;  // of one directory
constexpr std::size_t kMaxLayoutText = std::size_t{1} << 20U;

class Text {
 public:
  /// Appends the names in a directory that start with `prefix` to the text.
  std::vector<std::string> add_names(const std::filesystem::path& directory,
                                     std::string_view prefix = {}) {
    auto names = host::list_directory(directory.string()).value_or(std::vector<std::string>{});
    std::erase_if(names, [&](const std::string& name) { return !name.starts_with(prefix); });
    names.resize(std::min(names.size(), kMaxNames));
    for (const std::string& name : names) {
      add(name);
    }
    return names;
  }
  void add(std::string_view part) {
    if (text_.size() < kMaxLayoutText) {
      text_ += part;
      text_ += '\n';
    }
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

}  // namespace

std::optional<Vendor> gpu_vendor(std::string_view device_class, std::string_view vendor) {
  device_class = trim(device_class);
  if (!device_class.starts_with("0x03") && !device_class.starts_with("0x12")) {
    return std::nullopt;
  }
  switch (number_with_prefix(vendor).value_or(0)) {
    case kNvidiaId:
      return Vendor::kNvidia;
    case kAmdId:
      return Vendor::kAmd;
    case kIntelId:
      return Vendor::kIntel;
    default:
      return std::nullopt;
  }
}

std::vector<PciGpu> pci_gpus(const host::Paths& paths) {
  const auto directory = paths.sys / "bus/pci/devices";
  auto names = host::list_directory(directory.string());
  if (!names) {
    return {};
  }
  names->resize(std::min(names->size(), kMaxPciDevices));
  std::vector<PciGpu> gpus;
  for (std::string& name : *names) {
    const auto device_class = host::read_file((directory / name / "class").string(), kMaxPciText);
    const auto vendor = host::read_file((directory / name / "vendor").string(), kMaxPciText);
    if (!device_class || !vendor) {
      continue;
    }
    if (const auto known = gpu_vendor(*device_class, *vendor)) {
      gpus.push_back({.name = std::move(name), .vendor = *known});
    }
  }
  return gpus;
}

std::optional<KfdNode> parse_kfd_properties(std::string_view text) {
  std::map<std::string_view, std::uint64_t> values;
  while (!text.empty()) {
    std::string_view line = take_until(text, '\n');
    const auto key = take_word(line);
    const auto value = parse_int(trim(line));
    const bool wanted = key == "drm_render_minor" || key == "unique_id" || key == "simd_count" ||
                        key == "simd_per_cu";
    if (wanted && value) {
      values.try_emplace(key, *value);
    }
  }
  if (values.size() != 4 || values["drm_render_minor"] == 0 || values["simd_per_cu"] == 0) {
    return std::nullopt;
  }
  return KfdNode{.render_minor = values["drm_render_minor"],
                 .unique_id = values["unique_id"],
                 .compute_units = values["simd_count"] / values["simd_per_cu"]};
}

void add_amd_sysfs(const host::Paths& paths, std::vector<Device>& devices) {
  const auto by_name = groups(candidates(paths, nodes_by_render_minor(paths)));
  for (Device& device : devices) {
    const auto group = by_name.find(device.path_name);
    if (group == by_name.end()) {
      continue;
    }
    const std::vector<Candidate>& members = group->second;
    const auto minor_of = [](const Candidate& candidate) {
      return static_cast<unsigned>(candidate.node.render_minor);
    };
    if (device.split && members.size() == device.instances.size()) {
      for (std::size_t i = 0; i < members.size(); ++i) {
        device.instances[i].sm_count = members[i].node.compute_units;
        device.instances[i].uuid = members[i].name;
        device.instances[i].render_minor = minor_of(members[i]);
      }
    } else if (!device.split && members.size() == 1) {
      device.sm_count = members.front().node.compute_units;
      device.path_name = members.front().name;
      device.render_minor = minor_of(members.front());
    }
  }
}

std::vector<Device> intel_devices(const host::Paths& paths) {
  std::vector<Device> devices;
  for (const PciGpu& gpu : pci_gpus(paths)) {
    const auto address = parse_pci_address(gpu.name);
    if (gpu.vendor != Vendor::kIntel || !address ||
        (address->domain == 0 && address->bus == 0 && address->device == 2)) {
      continue;
    }
    // Without a render node there is no driver, or it is a virtual function for another machine.
    const auto names =
        host::list_directory((paths.sys / "bus/pci/devices" / gpu.name / "drm").string());
    constexpr std::string_view kRender = "renderD";
    for (const std::string& name : names.value_or(std::vector<std::string>{})) {
      const auto minor = name.starts_with(kRender)
                             ? parse_int<unsigned>(std::string_view(name).substr(kRender.size()))
                             : std::nullopt;
      if (!minor) {
        continue;
      }
      Device device;
      device.vendor = Vendor::kIntel;
      device.address = address;
      device.path_name = to_lower(gpu.name);
      device.uuid = device.path_name;
      device.name = "Intel GPU";
      device.render_minor = minor;
      devices.push_back(std::move(device));
      break;
    }
  }
  std::stable_sort(devices.begin(), devices.end(),
                   [](const Device& a, const Device& b) { return a.address < b.address; });
  for (std::size_t i = 0; i < devices.size(); ++i) {
    devices[i].position = i;
    devices[i].index = std::to_string(i);
  }
  return devices;
}

std::string gpu_layout(const host::Paths& paths) {
  constexpr std::size_t kMaxMode = 64;
  Text text;
  text.add_names(paths.sys / "bus/pci/devices");
  const auto capabilities = paths.proc / "driver/nvidia/capabilities";
  for (const std::string& gpu : text.add_names(capabilities, "gpu")) {
    const auto mig = capabilities / gpu / "mig";
    for (const std::string& instance : text.add_names(mig, "gi")) {
      text.add_names(mig / instance, "ci");
    }
  }
  const auto amdgpu = paths.sys / "module/amdgpu/drivers/pci:amdgpu";
  for (const std::string& name : text.add_names(amdgpu)) {
    if (name.find(':') != std::string::npos) {
      text.add(host::read_file((amdgpu / name / "current_compute_partition").string(), kMaxMode)
                   .value_or(std::string()));
    }
  }
  text.add_names(paths.sys / "devices/platform", "amdgpu_xcp");
  text.add_names(paths.sys / "class/kfd/kfd/topology/nodes");
  return text.take();
}

}  // namespace ceems::exporter::gpu
