#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "exporter/profile/format/profile.h"

namespace ceems::exporter::profile {

/// The stacks of a profile joined at their outermost frames, for formats that start there. Frames
/// are the same if name (as shown), module and kind are.
class CallTree {
 public:
  /// Frames further from the outermost one are left out; their samples count for the last one kept.
  static constexpr std::size_t kMaxDepth = 512;

  struct Node {
    std::uint32_t frame = 0;  ///< index into frames()
    std::uint32_t depth = 0;
    std::uint64_t total = 0;  ///< samples of this frame and those that it called
    std::uint64_t self = 0;   ///< samples of this frame alone
  };
  struct Function {
    std::uint32_t frame = 0;  ///< index into frames()
    std::uint64_t total = 0;  ///< samples of stacks with this frame; recursion counts once
    std::uint64_t self = 0;
  };

  /// All indices of the profile's stacks must be valid.
  explicit CallTree(const Profile& profile);

  /// Names and modules as they are shown. The first one stands for the whole profile.
  [[nodiscard]] const std::vector<Frame>& frames() const { return frames_; }
  /// Every node before its children, and children in the order of their names. The first one is
  /// the root, with depth 0 and the samples of all.
  [[nodiscard]] const std::vector<Node>& nodes() const { return nodes_; }
  /// Without the names of processes; those with the most samples of their own first.
  [[nodiscard]] const std::vector<Function>& functions() const { return functions_; }
  [[nodiscard]] std::uint64_t samples() const { return nodes_.front().total; }

 private:
  std::vector<Frame> frames_;
  std::vector<Node> nodes_;
  std::vector<Function> functions_;
};

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
