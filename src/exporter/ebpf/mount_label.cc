#include "exporter/ebpf/mount_label.h"

#include <algorithm>
#include <string_view>

#include "base/strings.h"

namespace ceems::exporter::ebpf {
namespace {

constexpr std::size_t kMaxLabel = 64;
constexpr std::size_t kMaxPath = 512;

std::string_view until_zero(std::string_view text) {
  return text.substr(0, text.find('\0'));
}

}  // namespace

MountLabel mount_label(const ebpf_place& place, bool full_path) {
  const std::string_view all(std::begin(place.text), std::size(place.text));
  std::string_view rest = all.substr(0, std::min<std::size_t>(place.length, all.size()));
  std::string path;
  while (!rest.empty()) {
    const bool last_of_path = rest.front() == 1;
    rest.remove_prefix(1);
    const std::string_view name = until_zero(rest);
    rest.remove_prefix(std::min(rest.size(), name.size() + 1));
    if (last_of_path || full_path) {
      path.insert(0, "/" + std::string(name));  // names come from the mount up to the root
    }
  }
  if (!full_path && path.size() > kMaxLabel) {
    path.resize(kMaxLabel);
  }
  return {.text = path.empty() ? "/" : printable(path, kMaxPath),
          .type = printable(until_zero({std::begin(place.type), std::size(place.type)}),
                            sizeof(place.type))};
}

}  // namespace ceems::exporter::ebpf
