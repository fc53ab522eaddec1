#include <algorithm>
#include <array>

#include "base/strings.h"
#include "exporter/unit/matcher/unit_matcher.h"
#include "host/cgroup/cgroup.h"

namespace ceems::exporter {
namespace {

using Kind = DirectoryMatch::Kind;

constexpr std::string_view kPod = "pod";
constexpr std::string_view kSlice = ".slice";

// A UID, or the hash that static pods have instead, either with '_' or '-' as separator.
bool is_uid(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '_' || c == '-';
  });
}

constexpr std::string_view kKubepods = "kubepods";
// A runtime with another cgroup driver than the kubelet's: "...-podUID.slice:cri-containerd:ID".
constexpr std::string_view kForeignDriver = ".slice:";

bool has_component(std::string_view slice, std::string_view component) {
  while (!slice.empty()) {
    if (take_until(slice, '-') == component) {
      return true;
    }
  }
  return false;
}

// The UID in the name of a pod's directory, as it is written there. Empty for other directories.
// `inside`: below a directory that holds pods, where the shortest form of a name is enough.
std::string_view pod_uid(std::string_view name, bool inside) {
  const auto colon = name.find(kForeignDriver);
  if (colon != std::string_view::npos) {
    name = name.substr(0, colon + kSlice.size());
  }
  if (name.ends_with(kSlice)) {
    name.remove_suffix(kSlice.size());
    const auto at = name.rfind("-pod");
    if (at == std::string_view::npos ||
        (!inside && !has_component(name.substr(0, at), kKubepods))) {
      return {};
    }
    name.remove_prefix(at + 1);
  } else if (!inside) {
    return {};
  }
  if (!name.starts_with(kPod) || !is_uid(name.substr(kPod.size()))) {
    return {};
  }
  return name.substr(kPod.size());
}

bool is_top(std::string_view path) {
  return path.find('/', 1) == std::string_view::npos;
}

/// A hierarchy of cgroup v1 beside the one that is walked, which has the same units again.
bool is_hierarchy(std::string_view name) {
  constexpr std::array<std::string_view, 17> kNames{
      "blkio",    "cpu",        "cpu,cpuacct", "cpuacct", "cpuset",  "devices",
      "freezer",  "hugetlb",    "memory",      "misc",    "net_cls", "net_cls,net_prio",
      "net_prio", "perf_event", "pids",        "rdma",    "systemd"};
  return std::ranges::find(kNames, name) != kNames.end();
}

class K8sMatcher final : public UnitMatcher {
 public:
  [[nodiscard]] std::string start() const override { return ""; }

  [[nodiscard]] DirectoryMatch match(const std::string& path,
                                     std::string_view name,
                                     const DirectoryMatch& parent) const override {
    std::string id = k8s_pod_uid(name, parent.inside);
    if (!id.empty()) {
      return {.kind = Kind::kUnit,
              .inside = true,
              .id = std::move(id),
              .forgeable = !parent.inside || parent.forgeable,
              .part = name.contains(kForeignDriver)};
    }
    if (parent.inside) {
      return {.kind = Kind::kDescend, .inside = true, .forgeable = parent.forgeable};
    }
    if (is_k8s_root(name)) {
      return {.kind = Kind::kDescend, .inside = true, .forgeable = !is_top(path)};
    }
    return {.kind = holds_no_manager(path, name) ? Kind::kSkip : Kind::kSearch};
  }
};

constexpr std::string_view kEmulator = "qemu-";
constexpr std::string_view kInstance = "instance-";

class LibvirtMatcher final : public UnitMatcher {
 public:
  [[nodiscard]] std::string start() const override { return ""; }

  [[nodiscard]] DirectoryMatch match(const std::string& path,
                                     std::string_view name,
                                     const DirectoryMatch& parent) const override {
    if (!parent.inside) {
      const bool root = is_libvirt_root(name);
      if (root || (!is_k8s_root(name) && !holds_no_manager(path, name))) {
        return {.kind = root ? Kind::kDescend : Kind::kSearch,
                .inside = root,
                .forgeable = root && !is_top(path)};
      }
      return {.kind = Kind::kSkip};
    }
    if (auto id = libvirt_instance(name)) {
      return {
          .kind = Kind::kUnit, .inside = true, .id = *std::move(id), .forgeable = parent.forgeable};
    }
    // Other scopes there are containers of systemd-nspawn or Podman.
    return {.kind = name.ends_with(".scope") ? Kind::kSearch : Kind::kDescend,
            .inside = true,
            .forgeable = parent.forgeable};
  }
};

}  // namespace

bool holds_no_manager(std::string_view path, std::string_view name) {
  return path == "/user.slice" || path == "/init.scope" ||
         (is_top(path) && (host::slurm_v1_node(name).has_value() || is_hierarchy(name))) ||
         host::slurm_scope_node(name).has_value() || libvirt_instance(name).has_value();
}

bool is_k8s_root(std::string_view name) {
  if (name.ends_with(kSlice)) {
    name.remove_suffix(kSlice.size());
    return name == kKubepods || name.ends_with("-kubepods");
  }
  return name == kKubepods;
}

std::string k8s_pod_uid(std::string_view name, bool inside) {
  const auto plain = host::unescape_path(name);
  std::string id(plain ? pod_uid(*plain, inside) : std::string_view());
  std::replace(id.begin(), id.end(), '_', '-');
  return id;
}

std::unique_ptr<UnitMatcher> k8s_matcher() {
  return std::make_unique<K8sMatcher>();
}

bool is_libvirt_root(std::string_view name) {
  return name == "machine" || name == "machine.slice" || name.ends_with("-machine.slice");
}

std::optional<std::string> libvirt_instance(std::string_view name) {
  const auto text = host::unescape_path(name);
  if (!text) {
    return std::nullopt;
  }
  for (auto at = text->find(kEmulator); at != std::string::npos;
       at = text->find(kEmulator, at + 1)) {
    std::string_view rest = std::string_view(*text).substr(at + kEmulator.size());
    const auto* const digits_end = std::find_if_not(rest.begin(), rest.end(), is_digit);
    const auto digits = static_cast<std::size_t>(digits_end - rest.begin());
    rest.remove_prefix(digits);
    if (digits == 0 || !rest.starts_with('-') || !rest.substr(1).starts_with(kInstance)) {
      continue;
    }
    rest.remove_prefix(1);
    const auto* const id_end =
        std::find_if_not(rest.begin() + kInstance.size(), rest.end(), is_hex_digit);
    const auto length = static_cast<std::size_t>(id_end - rest.begin());
    if (length > kInstance.size()) {
      return std::string(rest.substr(0, length));
    }
  }
  return std::nullopt;
}

std::unique_ptr<UnitMatcher> libvirt_matcher() {
  return std::make_unique<LibvirtMatcher>();
}

}  // namespace ceems::exporter
