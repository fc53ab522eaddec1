#include "exporter/profile/format/folded.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include <fmt/format.h>

#include "exporter/profile/format/call_tree.h"

namespace ceems::exporter::profile {

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
