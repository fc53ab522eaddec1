#include "exporter/profile/format/call_tree.h"

#include <algorithm>
#include <functional>
#include <map>
#include <ranges>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "exporter/profile/format/names.h"

namespace ceems::exporter::profile {
namespace {

struct GrowingNode {
  CallTree::Node node;
  std::vector<std::uint32_t> children;
};

/// Replaces each frame by the first one that is shown in the same way. Returns their indices in
/// `merged`.
std::vector<std::uint32_t> merge(const std::vector<Frame>& frames, std::vector<Frame>& merged) {
  std::map<Frame, std::uint32_t> known;
  std::vector<std::uint32_t> indices;
  indices.reserve(frames.size());
  for (const Frame& frame : frames) {
    Frame shown{.name = shown_name(frame), .module = shown_name(frame.module), .kind = frame.kind};
    const auto [found, added] =
        known.try_emplace(std::move(shown), static_cast<std::uint32_t>(merged.size()));
    if (added) {
      merged.push_back(found->first);
    }
    indices.push_back(found->second);
  }
  return indices;
}

class Builder {
 public:
  explicit Builder(std::size_t frames) : counts_(frames), last_stack_(frames, 0) {
    nodes_.emplace_back();
  }

  /// Adds a stack, the outermost frame first.
  void add(const std::vector<std::uint32_t>& frames, std::uint64_t samples) {
    ++stack_;
    std::uint32_t at = 0;
    nodes_[at].node.total += samples;
    for (const std::uint32_t frame : frames) {
      at = child(at, frame);
      nodes_[at].node.total += samples;
      if (std::exchange(last_stack_[frame], stack_) != stack_) {
        counts_[frame].total += samples;
      }
    }
    nodes_[at].node.self += samples;
    counts_[nodes_[at].node.frame].self += samples;
  }

  /// Every node before its children, which are put into the order of their frames.
  std::vector<CallTree::Node> nodes(const std::vector<Frame>& frames) {
    std::vector<CallTree::Node> ordered;
    ordered.reserve(nodes_.size());
    std::vector<std::uint32_t> left{0};
    while (!left.empty()) {
      GrowingNode& next = nodes_[left.back()];
      left.pop_back();
      ordered.push_back(next.node);
      std::ranges::sort(next.children, std::ranges::greater(), [&](std::uint32_t child) {
        return std::cref(frames[nodes_[child].node.frame]);
      });
      left.insert(left.end(), next.children.begin(), next.children.end());
    }
    return ordered;
  }

  std::vector<CallTree::Function> functions(const std::vector<Frame>& frames) && {
    std::vector<CallTree::Function> functions;
    for (std::uint32_t i = 1; i < counts_.size(); ++i) {
      if (counts_[i].total > 0 && frames[i].kind != FrameKind::kProcess) {
        counts_[i].frame = i;
        functions.push_back(counts_[i]);
      }
    }
    std::ranges::sort(functions, [&](const auto& left, const auto& right) {
      return std::tie(right.self, right.total, frames[left.frame]) <
             std::tie(left.self, left.total, frames[right.frame]);
    });
    return functions;
  }

 private:
  std::uint32_t child(std::uint32_t parent, std::uint32_t frame) {
    const std::uint64_t key = std::uint64_t{parent} << 32U | frame;
    const auto [found, added] =
        children_.try_emplace(key, static_cast<std::uint32_t>(nodes_.size()));
    if (added) {
      nodes_[parent].children.push_back(found->second);
      const std::uint32_t depth = nodes_[parent].node.depth + 1;
      nodes_.push_back({.node = {.frame = frame, .depth = depth}, .children = {}});
    }
    return found->second;
  }

  std::vector<GrowingNode> nodes_;
  std::unordered_map<std::uint64_t, std::uint32_t> children_;  ///< by parent and frame
  std::vector<CallTree::Function> counts_;                     ///< of each frame
  std::vector<std::uint64_t> last_stack_;  ///< the last stack that had this frame
  std::uint64_t stack_ = 0;
};

}  // namespace

CallTree::CallTree(const Profile& profile) {
  frames_.push_back({.name = "all", .module = "", .kind = FrameKind::kProcess});
  const std::vector<std::uint32_t> indices = merge(profile.frames, frames_);
  Builder builder(frames_.size());
  std::vector<std::uint32_t> path;
  for (const Stack& stack : profile.stacks) {
    if (!shows_code(profile, stack)) {
      continue;
    }
    path.clear();
    for (const std::uint32_t frame :
         stack.frames | std::views::reverse | std::views::take(kMaxDepth)) {
      path.push_back(indices.at(frame));
    }
    builder.add(path, stack.samples);
  }
  nodes_ = builder.nodes(frames_);
  functions_ = std::move(builder).functions(frames_);
}

}  // namespace ceems::exporter::profile
