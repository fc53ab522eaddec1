#include "exporter/profile/format/flame_graph.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <utility>
#include <vector>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "base/json.h"
#include "base/text/template.h"
#include "crypto/base64.h"
#include "crypto/digest.h"
#include "exporter/profile/format/call_tree.h"
#include "exporter/profile/format/names.h"

namespace ceems::exporter::profile {
namespace {

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
