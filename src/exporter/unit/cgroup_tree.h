#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"
#include "exporter/unit/matcher/unit_matcher.h"
#include "exporter/unit/stat/kept_file.h"
#include "exporter/unit/unit_state.h"

namespace ceems::exporter {

/// Receives the units that a walk visits. Called by walk() only.
class TreeVisitor {
 public:
  virtual ~TreeVisitor() = default;
  /// A unit that the last walk did not find.
  virtual std::unique_ptr<UnitState> found(const DirectoryMatch& match,
                                           const std::string& path) = 0;
  /// A unit that exists. Called once per walk, in byte order of the paths.
  virtual void present(UnitState& state) = 0;
  /// A unit whose directory is gone or was replaced by a new one of the same name.
  virtual void vanished(UnitState& state) = 0;
};

/// The directories of a cgroup hierarchy that a matcher wants. A walk lists them and compares the
/// result with what is known. Each name is matched once, so a walk is linear in the number of
/// directories and cheap for those that have not changed. A directory that vanishes during the walk
/// is not an error. Symbolic links below the start are not followed. Not thread-safe.
class CgroupTree {
 public:
  static constexpr int kMaxLevels = 64;
  static constexpr auto kSearchEvery = std::chrono::seconds(10);

  /// `root_fd` and `budget` must outlive the tree. `live` says that this is a real cgroup file
  /// system.
  CgroupTree(int root_fd, std::unique_ptr<UnitMatcher> matcher, bool live, FdBudget& budget);
  ~CgroupTree();
  CgroupTree(const CgroupTree&) = delete;
  CgroupTree& operator=(const CgroupTree&) = delete;

  /// Errors: the start directory cannot be opened or read. The visitor is not called then, and
  /// units stay known.
  Result<> walk(Clock::SteadyTime now, TreeVisitor& visitor);

 private:
  struct Node;
  struct Entry;

  int list(Node& node, int fd, const std::string& path);
  void visit(Node& node, int fd, TreeVisitor& visitor, int level);
  void enter(Node& child, const std::string& name, int parent_fd, TreeVisitor& visitor, int level);
  void drop_children(Node& node, TreeVisitor& visitor);

  int root_fd_;
  std::unique_ptr<UnitMatcher> matcher_;
  bool live_;
  FdBudget& budget_;
  std::unique_ptr<Node> start_;
  std::vector<char> entries_;
  std::string path_;  // of the directory being visited
  std::uint64_t walk_ = 0;
  Clock::SteadyTime now_{};
};

/// Calls visit(path) for the directory at `path` (relative to `root_fd`, with a leading '/') and
/// for all directories down to `levels` below it, until visit returns false. Directories that
/// cannot be read count as empty.
void for_each_cgroup(int root_fd,
                     const std::string& path,
                     const std::function<bool(const std::string& path)>& visit,
                     int levels = CgroupTree::kMaxLevels);

}  // namespace ceems::exporter
