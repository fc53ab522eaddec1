#include "exporter/profile/format/flame_graph.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <ranges>
#include <tuple>
#include <unordered_map>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "base/json.h"
#include "base/text/template.h"
#include "crypto/base64.h"
#include "crypto/digest.h"
#include "exporter/profile/format/profile.h"

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

constexpr std::size_t kMaxDrawn = 100'000;  ///< frames; about 1.5 MB of the file
constexpr std::size_t kMaxRows = 100;       ///< of the table

/// How kinds are marked in the picture, where colour alone must not say it.
std::string_view marker(FrameKind kind) {
  switch (kind) {
    case FrameKind::kPython:
      return "[py]";
    case FrameKind::kJit:
      return "[jit]";
    case FrameKind::kKernel:
      return "[k]";
    case FrameKind::kProcess:
    case FrameKind::kNative:
      break;
  }
  return "";
}

std::string_view kind_name(FrameKind kind) {
  switch (kind) {
    case FrameKind::kProcess:
      return "process";
    case FrameKind::kNative:
      return "native";
    case FrameKind::kPython:
      return "Python";
    case FrameKind::kJit:
      return "compiled at run time";
    case FrameKind::kKernel:
      return "kernel";
  }
  return "";
}

std::string percent(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? "0.00"
                    : fmt::format("{:.2f}",
                                  100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

/// The minimum samples of a drawn frame, so that at most kMaxDrawn are drawn.
std::uint64_t least_drawn(const CallTree& tree) {
  std::vector<std::uint64_t> totals;
  for (const CallTree::Node& node : tree.nodes()) {
    totals.push_back(node.total);
  }
  if (totals.size() <= kMaxDrawn) {
    return 1;
  }
  std::ranges::nth_element(totals, totals.begin() + kMaxDrawn, std::ranges::greater());
  return totals[kMaxDrawn] + 1;
}

/// What the script draws.
std::string data(const CallTree& tree, const Profile& profile, std::uint64_t least) {
  std::string out;
  JsonWriter json(out);
  json.begin_object().member("rate", std::int64_t{profile.rate});
  json.key("kinds").begin_array();
  for (const FrameKind kind : {FrameKind::kProcess, FrameKind::kNative, FrameKind::kPython,
                               FrameKind::kJit, FrameKind::kKernel}) {
    json.begin_array().value(kind_name(kind)).value(marker(kind)).end_array();
  }
  json.end_array().key("frames").begin_array();
  for (const Frame& frame : tree.frames()) {
    json.begin_array().value(frame.name).value(frame.module);
    json.value(static_cast<int>(frame.kind)).end_array();
  }
  // For each node: frame, depth, total samples and own samples.
  json.end_array().key("nodes").begin_array();
  for (const CallTree::Node& node : tree.nodes()) {
    if (node.total >= least || node.depth == 0) {
      json.value(std::int64_t{node.frame}).value(std::int64_t{node.depth});
      json.value(static_cast<std::int64_t>(node.total));
      json.value(static_cast<std::int64_t>(node.self));
    }
  }
  json.end_array().end_object();
  return out;
}

std::vector<TemplateData> rows(const CallTree& tree) {
  std::vector<TemplateData> rows;
  for (const CallTree::Function& function : tree.functions()) {
    if (rows.size() == kMaxRows) {
      break;
    }
    const Frame& frame = tree.frames()[function.frame];
    rows.push_back({.texts = {{"name", frame.name},
                              {"module", frame.module},
                              {"kind", std::string(kind_name(frame.kind))},
                              {"self", percent(function.self, tree.samples())},
                              {"total", percent(function.total, tree.samples())},
                              {"samples", fmt::format("{}", function.self)}}});
  }
  return rows;
}

std::string utc_text(Clock::SystemTime time) {
  return fmt::format("{:%Y-%m-%d %H:%M:%S} UTC",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(time)));
}

/// A source of the content security policy: exactly this text.
std::string only(std::string_view text) {
  return "'sha256-" + crypto::base64_encode(crypto::sha256(text)) + "'";
}

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

std::string flame_graph(const Profile& profile, std::string_view subject) {
  using std::chrono::duration;
  const CallTree tree(profile);
  const std::uint64_t least = least_drawn(tree);
  std::vector<TemplateData> table = rows(tree);
  const double cpu = static_cast<double>(tree.samples()) / std::max(profile.rate, 1U);
  TemplateData page;
  page.texts = {
      {"subject", shown_name(subject)},
      {"started", profile.started == Clock::SystemTime{} ? "" : utc_text(profile.started)},
      {"seconds", profile.duration.count() == 0
                      ? ""
                      : fmt::format("{:.1f}", duration<double>(profile.duration).count())},
      {"rate", fmt::format("{}", profile.rate)},
      {"samples", fmt::format("{}", tree.samples())},
      {"cpu", fmt::format("{:.2f}", cpu)},
      {"has_samples", tree.samples() > 0 ? "yes" : ""},
      {"left_out", least > 1 ? fmt::format("{}", least) : ""},
      {"more", tree.functions().size() > table.size()
                   ? fmt::format("{}", tree.functions().size() - table.size())
                   : ""},
      {"style", std::string(kFlameGraphCss)},
      {"script", std::string(kFlameGraphJs)},
      {"style_source", only(kFlameGraphCss)},
      {"script_source", only(kFlameGraphJs)},
      {"data", data(tree, profile, least)},
  };
  page.lists = {{"functions", std::move(table)}};
  return render_template(kFlameGraphHtml, page);
}

std::string folded(const Profile& profile) {
  const CallTree tree(profile);
  std::string out;
  std::string path;                  // of the current node, each name followed by ';'
  std::vector<std::size_t> ends{0};  // of the path at each depth
  for (const CallTree::Node& node : tree.nodes()) {
    if (node.depth == 0) {
      continue;
    }
    path.resize(ends.at(node.depth - 1));
    std::ranges::replace_copy(tree.frames()[node.frame].name, std::back_inserter(path), ';', ':');
    path += ';';
    ends.resize(node.depth);
    ends.push_back(path.size());
    if (node.self > 0) {
      out.append(path, 0, path.size() - 1);
      fmt::format_to(std::back_inserter(out), " {}\n", node.self);
    }
  }
  return out;
}

}  // namespace ceems::exporter::profile
