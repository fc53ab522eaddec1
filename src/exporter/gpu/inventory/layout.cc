#include "exporter/gpu/inventory/layout.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "host/read_file.h"

namespace ceems::exporter::gpu {
namespace {

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
