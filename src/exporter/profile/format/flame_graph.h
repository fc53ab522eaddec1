#pragma once

#include <string>
#include <string_view>

#include "exporter/profile/format/profile.h"

namespace ceems::exporter::profile {

// web/pages/flame_graph.*
extern const std::string_view kFlameGraphHtml;
extern const std::string_view kFlameGraphCss;
extern const std::string_view kFlameGraphJs;

/// A page that draws the profile as a flame graph with the outermost frames at the top, and lists
/// the functions with the most samples of their own. It is one file that loads nothing and runs no
/// script other than its own (web/pages/flame_graph.js), so it can be mailed and opened offline.
/// `subject` says whose profile it is, such as "job 1234". All indices of the profile's stacks must
/// be valid.
std::string flame_graph(const Profile& profile, std::string_view subject);

/// Folded stacks, which many tools read: one line for each stack, "outermost;...;leaf samples",
/// sorted. A ';' in a name becomes ':'. The limit of depth is CallTree's. All indices of the
/// profile's stacks must be valid.
std::string folded(const Profile& profile);

}  // namespace ceems::exporter::profile
