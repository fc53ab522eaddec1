#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "exporter/profile/format/profile.h"

namespace ceems::exporter::profile {

/// Longer names are cut. Names of C++ templates can be of any length.
inline constexpr std::size_t kMaxNameBytes = 2048;

/// A name as all formats show it: one line of valid UTF-8 of at most kMaxNameBytes. Line ends and
/// tabs become spaces. Other control characters, and those that change the direction of the text
/// after them, become U+FFFD. A cut name ends with "…".
std::string shown_name(std::string_view name);

/// The name of a frame. A process without a name is "pid_unknown", as in CEEMS 0.10.2, and any
/// other frame without a name "[unknown]".
std::string shown_name(const Frame& frame);

/// Whether a stack has samples and shows more than the name of its process. All formats leave out
/// stacks that do not.
bool shows_code(const Profile& profile, const Stack& stack);

/// Whether any stack shows code.
bool shows_code(const Profile& profile);

}  // namespace ceems::exporter::profile
