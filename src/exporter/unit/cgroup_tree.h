#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"
#include "exporter/unit/cgroup_watch.h"
#include "exporter/unit/directory_use.h"
#include "exporter/unit/matcher/unit_matcher.h"
#include "exporter/unit/stat/kept_file.h"
#include "exporter/unit/stat/stat_reader.h"
#include "exporter/unit/unit.h"

namespace ceems::exporter {

/// What a source remembers of a unit while the unit's directory exists.
struct UnitState {
  Unit unit;
  DirectoryMatch match;
  UnitFiles files;
  std::uint64_t serial = 0;  ///< counts from 1; never reused
  std::string key;           ///< host and uuid; empty until both are known

  Clock::SteadyTime first_seen{};
  Clock::SteadyTime birth{};        ///< creation of the cgroup, as far as known
  Clock::SteadyTime last_alive{};   ///< last time a process was seen in it
  Clock::SteadyTime cpu_read{};     ///< when the CPU times were read last
  Clock::SteadyTime stats_read{};   ///< when all statistics were read last
  Clock::SteadyTime life_read{};    ///< when it was last checked whether it has a process
  Clock::SteadyTime limits_read{};  ///< when its CPUs and limits were read last
  double sampled_seconds = 0;       ///< CPU time at the last sample
  double stats_seconds = -1;        ///< CPU time when all statistics were read last
  bool alive = false;
  bool ever_alive = false;
  bool stale = false;         ///< has had no process since it was found, or for kIdle
  bool reported = false;      ///< its staleness was logged
  bool uuid_pending = false;  ///< shown under its id until its uuid is known
  bool owner_settled = false;
  bool watched = false;    ///< PopulatedWatch waits for its cgroup.events
  bool evidenced = false;  ///< its manager has said that the job runs
  bool final = false;      ///< its statistics were read after its last process had ended

  double traffic_bytes = 0;         ///< of the last UnitTraffic
  std::uint64_t traffic_notes = 0;  ///< how many of them there were

  std::string fault;     ///< message of the current read error; empty if there is none
  KeptFile alive_procs;  ///< v1: cgroup.procs of the descendant in which a process was found last
};

/// UnitState::key of a unit.
inline std::string key_of(std::string_view host, std::string_view uuid) {
  std::string key(host);
  key += '\0';
  key += uuid;
  return key;
}

/// Receives the units and directories of a tree. Called by CgroupTree only.
class TreeVisitor {
 public:
  virtual ~TreeVisitor() = default;
  /// A unit that was not known before.
  virtual std::unique_ptr<UnitState> found(const DirectoryMatch& match,
                                           const std::string& path) = 0;
  /// A unit that exists. Called once per walk, in byte order of the paths. `parent` is the
  /// directory that it is in.
  virtual void present(UnitState& state, DirectoryUse& parent) = 0;
  /// A unit that exists, outside of a walk, after found().
  virtual void born(UnitState& state) = 0;
  /// A unit whose directory is gone or was replaced by a new one of the same name.
  virtual void vanished(UnitState& state, DirectoryUse& parent) = 0;
  /// Called by a walk before and after the contents of a directory. `parent` is null for the start.
  virtual void enter(DirectoryUse& use, const DirectoryUse* parent, const std::string& path) = 0;
  virtual void leave(DirectoryUse& use, DirectoryUse* parent, const std::string& path) = 0;
};

/// The directories of a cgroup hierarchy that a matcher wants. A walk lists them and compares the
/// result with what is known. Each name is matched once, so a walk is linear in the number of
/// directories and cheap for those that have not changed. A directory that vanishes during the walk
/// is not an error. Symbolic links below the start are not followed. Not thread-safe.
///
/// With a watch, a walk need not list a watched directory whose number of subdirectories has not
/// changed, and created() and removed() report changes between walks. A directory that cannot be
/// watched is listed by each walk.
class CgroupTree {
 public:
  static constexpr int kMaxLevels = 64;
  static constexpr auto kSearchEvery = std::chrono::seconds(10);

  /// `root_fd` and `budget` must outlive the tree. `live` says that this is a real cgroup file
  /// system.
  static constexpr std::size_t kMaxWatched = 8192;

  CgroupTree(int root_fd, std::unique_ptr<UnitMatcher> matcher, bool live, FdBudget& budget);
  ~CgroupTree();
  CgroupTree(const CgroupTree&) = delete;
  CgroupTree& operator=(const CgroupTree&) = delete;

  /// Errors: the start directory cannot be opened or read. The visitor is not called then, and
  /// units stay known.
  /// `list`: list watched directories, too.
  Result<> walk(Clock::SteadyTime now, bool list, TreeVisitor& visitor);

  /// From now on, watches the directories that have units or lead to units. Null: watches none.
  void set_watch(DirectoryWatch* watch);
  /// Why the last directory could not be watched that was refused since the last call.
  std::optional<Error> take_refusal();
  /// The subdirectory `name` of a watched directory was created or removed, if that still holds.
  void created(int directory, std::string_view name, Clock::SteadyTime now, TreeVisitor& visitor);
  void removed(int directory, std::string_view name, Clock::SteadyTime now, TreeVisitor& visitor);

 private:
  struct Node;
  struct Entry;

  int list(Node& node, int fd, const std::string& path);
  Node& add(Node& node, std::string_view name, std::uint64_t inode, const std::string& path);
  void visit(Node& node, bool listed, TreeVisitor& visitor, int level);
  void enter(Node& child, TreeVisitor& visitor, int level);
  void list_and_visit(Node& child, TreeVisitor& visitor, int level);
  void drop(Node& child, DirectoryUse& parent, TreeVisitor& visitor);
  void drop_children(Node& node, TreeVisitor& visitor);
  bool is_unchanged(const Node& node, const std::string& path);
  void watch(Node& node, const std::string& path);
  void unwatch(Node& node);
  [[nodiscard]] bool has_root_owner(const std::string& path) const;
  [[nodiscard]] std::uint64_t inode_of(const std::string& path) const;

  int root_fd_;
  std::unique_ptr<UnitMatcher> matcher_;
  bool live_;
  FdBudget& budget_;
  std::unique_ptr<Node> start_;
  std::vector<char> entries_;
  std::string path_;  // of the directory being visited
  std::uint64_t walk_ = 0;
  Clock::SteadyTime now_{};
  bool list_ = true;      // this walk lists every directory
  bool walking_ = false;  // not in created()
  DirectoryWatch* watch_ = nullptr;
  std::unordered_map<int, Node*> watched_;
  std::optional<Error> refusal_;
};

/// Calls visit(path) for the directory at `path` (relative to `root_fd`, with a leading '/') and
/// for all directories down to `levels` below it, until visit returns false. Directories that
/// cannot be read count as empty.
void for_each_cgroup(int root_fd,
                     const std::string& path,
                     const std::function<bool(const std::string& path)>& visit,
                     int levels = CgroupTree::kMaxLevels);

}  // namespace ceems::exporter
