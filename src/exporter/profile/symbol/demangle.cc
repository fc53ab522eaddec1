#include "exporter/profile/symbol/demangle.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/strings.h"
#include "base/utf8.h"
#include "exporter/profile/symbol/demangle/itanium_node.h"
#include "exporter/profile/symbol/demangle/rust_demangle.h"

namespace ceems::exporter::profile {
namespace {

constexpr std::size_t kMaxMangled = 4096;
constexpr std::size_t kMaxDemangled = 8192;

std::optional<std::string> itanium_demangled(std::string_view name, DemangleMode mode) {
  itanium::Arena arena;
  const itanium::Node* root = itanium::parse(name, arena);
  return root == nullptr ? std::nullopt : itanium::print(*root, mode, kMaxDemangled);
}

}  // namespace

std::optional<DemangleMode> demangle_mode(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, DemangleMode>, 4> kModes = {
      {{"none", DemangleMode::kNone},
       {"simplified", DemangleMode::kSimplified},
       {"templates", DemangleMode::kTemplates},
       {"full", DemangleMode::kFull}}};
  for (const auto& [name, mode] : kModes) {
    if (same_in_any_case(trim(text), name)) {
      return mode;
    }
  }
  return std::nullopt;
}

std::string demangled(std::string_view name, DemangleMode mode) {
  if (mode == DemangleMode::kNone || name.size() > kMaxMangled) {
    return std::string(name);
  }
  std::optional<std::string> found;
  if (name.starts_with("_R")) {
    found = rust_demangled(name, mode, kMaxDemangled);
  } else if (name.starts_with("_Z")) {
    found = rust_legacy_demangled(name);
    if (!found) {
      found = itanium_demangled(name, mode);
    }
  }
  return found ? std::move(*found) : std::string(name);
}

}  // namespace ceems::exporter::profile
