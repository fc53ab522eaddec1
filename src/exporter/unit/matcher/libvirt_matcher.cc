#include <algorithm>

#include "base/strings.h"
#include "exporter/unit/matcher/unit_matcher.h"
#include "host/cgroup/cgroup.h"

namespace ceems::exporter {
namespace {

using Kind = DirectoryMatch::Kind;

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
