#include "exporter/gpu/inventory/amd_sysfs.h"

#include <algorithm>
#include <map>
#include <string>

#include "base/strings.h"
#include "host/read_file.h"

namespace ceems::exporter::gpu {
namespace {

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

}  // namespace

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

}  // namespace ceems::exporter::gpu
