#pragma once

#include <string>

#include "exporter/profile/format/profile.h"

namespace ceems::exporter::profile {

/// Folded stacks, which many tools read: one line for each stack, "outermost;...;leaf samples",
/// sorted. A ';' in a name becomes ':'. The limit of depth is CallTree's. All indices of the
/// profile's stacks must be valid.
std::string folded(const Profile& profile);

}  // namespace ceems::exporter::profile
