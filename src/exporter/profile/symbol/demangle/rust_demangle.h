#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "exporter/profile/symbol/demangle.h"

namespace ceems::exporter::profile {

/// A Rust name in its own form (_R…, RFC 2603) without hashes and lifetimes. kSimplified leaves out
/// generic arguments. Nothing if it is malformed or becomes longer than `limit`.
std::optional<std::string> rust_demangled(std::string_view name,
                                          DemangleMode mode,
                                          std::size_t limit);

/// A Rust name in the older form, that of C++ with a hash as its last component, which is left out:
/// _ZN4core3fmt5write17h0123456789abcdefE. Nothing for other names.
std::optional<std::string> rust_legacy_demangled(std::string_view name);

}  // namespace ceems::exporter::profile
