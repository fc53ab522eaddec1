#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ceems::exporter::profile {

/// How much of a C++ or Rust name is shown.
enum class DemangleMode : std::uint8_t {
  kNone,        ///< the name as the binary has it
  kSimplified,  ///< without parameters, enclosing parameters and template parameters
  kTemplates,   ///< without parameters and enclosing parameters
  kFull,        ///< everything except suffixes such as .constprop.0 and .cold
};

/// The mode of a configuration value, trimmed and in any case; nothing for other values.
std::optional<DemangleMode> demangle_mode(std::string_view text);

/// A name in the form that people write. Names that are not mangled, are malformed, or would become
/// longer than 8 KiB are returned as they are: a name of a hundred bytes can stand for gigabytes.
std::string demangled(std::string_view name, DemangleMode mode);

}  // namespace ceems::exporter::profile
