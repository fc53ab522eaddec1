#include <algorithm>

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

// The UID in the name of a pod's directory, as it is written there. Empty for other directories.
std::string_view pod_uid(std::string_view name) {
  if (name.ends_with(kSlice)) {
    name.remove_suffix(kSlice.size());
    const auto at = name.rfind("-pod");
    name = at == std::string_view::npos ? std::string_view() : name.substr(at + 1);
  }
  if (!name.starts_with(kPod) || !is_uid(name.substr(kPod.size()))) {
    return {};
  }
  return name.substr(kPod.size());
}

class K8sMatcher final : public UnitMatcher {
 public:
  [[nodiscard]] std::string start() const override { return ""; }

  [[nodiscard]] DirectoryMatch match(const std::string& path,
                                     std::string_view name,
                                     const DirectoryMatch& parent) const override {
    if (!parent.inside) {
      const bool root = is_k8s_root(path);
      return {.kind = root ? Kind::kDescend : Kind::kSkip, .inside = root};
    }
    std::string id = k8s_pod_uid(name);
    if (id.empty()) {
      return {.kind = Kind::kDescend, .inside = true};
    }
    return {.kind = Kind::kUnit, .inside = true, .id = std::move(id)};
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
      const bool root = is_libvirt_root(path);
      return {.kind = root ? Kind::kDescend : Kind::kSkip, .inside = root};
    }
    if (auto id = libvirt_instance(name)) {
      return {.kind = Kind::kUnit, .inside = true, .id = *std::move(id)};
    }
    // Other scopes there are containers of systemd-nspawn or Podman.
    return {.kind = name.ends_with(".scope") ? Kind::kSearch : Kind::kDescend, .inside = true};
  }
};

}  // namespace

bool is_k8s_root(std::string_view path) {
  return path == "/kubepods" || path == "/kubepods.slice";
}

std::string k8s_pod_uid(std::string_view name) {
  const auto plain = host::unescape_path(name);
  std::string id(plain ? pod_uid(*plain) : std::string_view());
  std::replace(id.begin(), id.end(), '_', '-');
  return id;
}

std::unique_ptr<UnitMatcher> k8s_matcher() {
  return std::make_unique<K8sMatcher>();
}

bool is_libvirt_root(std::string_view path) {
  return path == "/machine" || path == "/machine.slice";
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
