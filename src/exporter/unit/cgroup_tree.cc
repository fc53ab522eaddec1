#include "exporter/unit/cgroup_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <span>
#include <utility>

#include "base/log.h"
#include "base/strings.h"

namespace ceems::exporter {
namespace {

using Kind = DirectoryMatch::Kind;

constexpr int kOpenDirectory = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
constexpr std::size_t kEntriesSize = std::size_t{32} << 10U;

/// Calls take(name, inode) for each subdirectory and returns 0 or an errno value. take() must copy
/// the name, because `buffer` is reused.
template <typename Take>
int for_each_directory(int fd, std::span<char> buffer, Take take) {
  while (true) {
    const ssize_t size = ::getdents64(fd, buffer.data(), buffer.size());
    if (size <= 0) {
      return size == 0 ? 0 : errno;
    }
    for (std::size_t at = 0; at < static_cast<std::size_t>(size);) {
      struct dirent64 head{};
      const char* const record = buffer.data() + at;
      std::memcpy(&head, record, offsetof(struct dirent64, d_name));
      at += head.d_reclen;
      const char* const name = record + offsetof(struct dirent64, d_name);
      const std::string_view text(name);
      if (text == "." || text == "..") {
        continue;
      }
      bool directory = head.d_type == DT_DIR;
      if (head.d_type == DT_UNKNOWN) {
        struct stat info{};
        directory = ::fstatat(fd, name, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(info.st_mode);
      }
      if (directory) {
        take(text, static_cast<std::uint64_t>(head.d_ino));
      }
    }
  }
}

// On kernfs the link count is 2 plus the number of subdirectories (kernfs_refresh_inode()).
bool is_leaf(int directory_fd, const char* name) {
  struct stat info{};
  return ::fstatat(directory_fd, name, &info, AT_SYMLINK_NOFOLLOW) == 0 && info.st_nlink == 2;
}

}  // namespace

struct CgroupTree::Node {
  std::uint64_t inode = 0;
  std::uint64_t walk = 0;  // number of the walk that listed it last
  DirectoryMatch match;
  std::map<std::string, std::unique_ptr<Node>, std::less<>> children;
  std::unique_ptr<UnitState> unit;
  DirectoryUse use;
  UniqueFd fd;  // kept open to list it again
  std::optional<Clock::SteadyTime> listed;
  std::string path;      // while it is watched
  int watch = -1;        // as DirectoryWatch::add() returned it
  bool hot = false;      // has units or directories that lead to units
  bool refused = false;  // cannot be listed, and this was logged
};

CgroupTree::CgroupTree(int root_fd,
                       std::unique_ptr<UnitMatcher> matcher,
                       bool live,
                       FdBudget& budget)
    : root_fd_(root_fd),
      matcher_(std::move(matcher)),
      live_(live),
      budget_(budget),
      start_(std::make_unique<Node>()),
      entries_(kEntriesSize) {
  start_->match.kind = Kind::kDescend;
}

CgroupTree::~CgroupTree() = default;

void CgroupTree::set_watch(DirectoryWatch* watch) {
  watch_ = watch;
  for (auto& [directory, node] : watched_) {
    node->watch = -1;
  }
  watched_.clear();
}

std::optional<Error> CgroupTree::take_refusal() {
  return std::exchange(refusal_, std::nullopt);
}

Result<> CgroupTree::walk(Clock::SteadyTime now, bool list, TreeVisitor& visitor) {
  ++walk_;
  now_ = now;
  list_ = list;
  walking_ = true;
  path_ = matcher_->start();
  if (!list_ && is_unchanged(*start_, path_)) {
    visitor.enter(start_->use, nullptr, path_);
    visit(*start_, false, visitor, 0);
    visitor.leave(start_->use, nullptr, path_);
    return {};
  }
  const std::string start = path_;
  const char* const relative = start.empty() ? "." : start.c_str() + 1;
  // Opened again for each walk that lists: a descriptor that is kept would still show a directory
  // after it was replaced.
  const UniqueFd fd(::openat(root_fd_, relative, kOpenDirectory));
  if (!fd.valid()) {
    return fail(errno_error(errno, fmt::format("open '{}' in the cgroup hierarchy", relative)));
  }
  struct stat info{};
  if (::fstat(fd.get(), &info) == 0 && info.st_ino != start_->inode) {
    start_->inode = info.st_ino;
    unwatch(*start_);
  }
  watch(*start_, start);
  if (const int error = this->list(*start_, fd.get(), path_); error != 0) {
    return fail(errno_error(error, fmt::format("list '{}' in the cgroup hierarchy", relative)));
  }
  visitor.enter(start_->use, nullptr, path_);
  visit(*start_, true, visitor, 0);
  visitor.leave(start_->use, nullptr, path_);
  return {};
}

CgroupTree::Node& CgroupTree::add(Node& node,
                                  std::string_view name,
                                  std::uint64_t inode,
                                  const std::string& path) {
  auto child = std::make_unique<Node>();
  child->inode = inode;
  child->match = matcher_->match(path, name, node.match);
  if (child->match.kind == Kind::kUnit && child->match.forgeable && !has_root_owner(path)) {
    child->match.kind = Kind::kSkip;
  }
  // Before the first walk has ended, a directory may be old. Later, one may be found late.
  child->use = DirectoryUse(!walking_);
  return *node.children.emplace(std::string(name), std::move(child)).first->second;
}

// Lists a directory into `node`. A directory that is new, or that was recreated under its name, is
// a new node. Returns an errno value.
int CgroupTree::list(Node& node, int fd, const std::string& path) {
  if (::lseek(fd, 0, SEEK_SET) < 0) {
    return errno;
  }
  node.listed = now_;
  std::string below;
  return for_each_directory(fd, entries_, [&](std::string_view name, std::uint64_t inode) {
    auto known = node.children.find(name);
    if (known != node.children.end() && known->second->inode != inode) {
      return;  // recreated under the same name: dropped now and found by the next walk
    }
    if (known != node.children.end()) {
      known->second->walk = walk_;
      return;
    }
    below = path;
    below += '/';
    below += name;
    add(node, name, inode, below).walk = walk_;
  });
}

void CgroupTree::visit(Node& node, bool listed, TreeVisitor& visitor, int level) {
  node.hot = false;
  const std::size_t path_size = path_.size();
  for (auto it = node.children.begin(); it != node.children.end();) {
    Node& child = *it->second;
    if (listed && child.walk != walk_) {
      drop(child, node.use, visitor);
      it = node.children.erase(it);
      continue;
    }
    path_ += '/';
    path_ += it->first;
    if (child.match.kind == Kind::kUnit) {
      const bool known = child.unit != nullptr;
      if (!known) {
        child.unit = visitor.found(child.match, path_);
      }
      if (walking_) {
        visitor.present(*child.unit, node.use);
      } else if (!known) {
        visitor.born(*child.unit);
      }
      node.hot = true;
    } else if (child.match.kind != Kind::kSkip && level < kMaxLevels) {
      const bool cold = child.match.kind == Kind::kSearch && !child.hot;
      if (cold && child.listed && (now_ - *child.listed < kSearchEvery || !list_)) {
        node.use.leave_out_child();
      } else {
        if (walking_) {
          visitor.enter(child.use, &node.use, path_);
        }
        enter(child, visitor, level);
        if (walking_) {
          visitor.leave(child.use, &node.use, path_);
        }
      }
      node.hot = node.hot || child.hot || child.match.kind == Kind::kDescend;
    } else {
      node.use.leave_out_child();
    }
    path_.resize(path_size);
    ++it;
  }
  if (node.hot) {
    watch(node, path_);
  }
}

// True if the directory is watched and its number of subdirectories has not changed. The number
// also changes for what is made in another cgroup namespace, which a watch does not see.
bool CgroupTree::is_unchanged(const Node& node, const std::string& path) {
  if (node.watch < 0 || !node.listed) {
    return false;
  }
  struct stat info{};
  const bool known = node.fd.valid() ? ::fstat(node.fd.get(), &info) == 0
                                     : ::fstatat(root_fd_, path.empty() ? "." : path.c_str() + 1,
                                                 &info, AT_SYMLINK_NOFOLLOW) == 0;
  return known && info.st_ino == node.inode && info.st_nlink == node.children.size() + 2;
}

void CgroupTree::enter(Node& child, TreeVisitor& visitor, int level) {
  if (!list_ && is_unchanged(child, path_)) {
    visit(child, false, visitor, level + 1);
    return;
  }
  if (child.match.kind == Kind::kDescend) {
    watch(child, path_);  // before it is listed, so that nothing is missed
  }
  if (live_ && is_leaf(root_fd_, path_.c_str() + 1)) {
    drop_children(child, visitor);
    child.hot = false;
    child.listed = now_;
    return;
  }
  list_and_visit(child, visitor, level);
}

void CgroupTree::list_and_visit(Node& child, TreeVisitor& visitor, int level) {
  UniqueFd opened;
  if (!child.fd.valid()) {
    opened.reset(::openat(root_fd_, path_.c_str() + 1, kOpenDirectory | O_NOFOLLOW));
  }
  const int fd = child.fd.valid() ? child.fd.get() : opened.get();
  const int error = fd < 0 ? errno : list(child, fd, path_);
  if (error != 0 && error != ENOENT && error != ENODEV && !std::exchange(child.refused, true)) {
    log::warn("cannot list a cgroup",
              {{"cgroup", printable(path_)}, {"err", errno_error(error, "list").message}});
  }
  if (error != 0) {
    child.use.leave_out_child();
    return;  // if it is gone, the next walk does not find it in its parent
  }
  child.refused = false;
  visit(child, true, visitor, level + 1);
  if (live_ && opened.valid() && budget_.take()) {
    child.fd = std::move(opened);
  }
}

void CgroupTree::drop(Node& child, DirectoryUse& parent, TreeVisitor& visitor) {
  drop_children(child, visitor);
  unwatch(child);
  if (child.unit) {
    visitor.vanished(*child.unit, parent);
  } else {
    parent.take_over(child.use);
  }
}

void CgroupTree::drop_children(Node& node, TreeVisitor& visitor) {
  for (auto& [name, child] : node.children) {
    drop(*child, node.use, visitor);
  }
  node.children.clear();
  if (node.fd.valid()) {
    node.fd.reset();
    budget_.give_back();
  }
}

void CgroupTree::watch(Node& node, const std::string& path) {
  if (watch_ == nullptr || node.watch >= 0) {
    return;
  }
  if (watched_.size() >= kMaxWatched) {
    refusal_ = Error{ErrorCode::kUnavailable, "too many directories"};
    return;
  }
  const auto added = watch_->add(path);
  if (!added) {
    if (added.error().code != ErrorCode::kNotFound) {
      refusal_ = added.error();
    }
    return;
  }
  node.watch = *added;
  node.path = path;
  watched_[*added] = &node;
}

void CgroupTree::unwatch(Node& node) {
  if (node.watch >= 0) {
    watch_->remove(node.watch);
    watched_.erase(node.watch);
    node.watch = -1;
    node.path.clear();
  }
}

/// Whether the hierarchy's root and the directory belong to the same user.
bool CgroupTree::has_root_owner(const std::string& path) const {
  struct stat root{};
  struct stat info{};
  return ::fstat(root_fd_, &root) == 0 &&
         ::fstatat(root_fd_, path.c_str() + 1, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
         root.st_uid == info.st_uid;
}

/// 0 if it does not exist.
std::uint64_t CgroupTree::inode_of(const std::string& path) const {
  struct stat info{};
  return ::fstatat(root_fd_, path.c_str() + 1, &info, AT_SYMLINK_NOFOLLOW) == 0 ? info.st_ino : 0;
}

void CgroupTree::created(int directory,
                         std::string_view name,
                         Clock::SteadyTime now,
                         TreeVisitor& visitor) {
  const auto known = watched_.find(directory);
  if (known == watched_.end()) {
    return;
  }
  Node& node = *known->second;
  now_ = now;
  list_ = true;
  walking_ = false;
  path_ = node.path;
  path_ += '/';
  path_ += name;
  // One that is already gone is still taken note of: the report of its removal follows.
  const std::uint64_t inode = inode_of(path_);
  if (auto before = node.children.find(name); before != node.children.end()) {
    if (inode == 0 || before->second->inode == inode) {
      return;
    }
    drop(*before->second, node.use, visitor);
    node.children.erase(before);
  }
  Node& child = add(node, name, inode, path_);
  if (child.match.kind == Kind::kUnit) {
    child.unit = visitor.found(child.match, path_);
    visitor.born(*child.unit);
    node.hot = true;
  } else if (child.match.kind == Kind::kDescend) {
    const auto level = static_cast<int>(std::count(path_.begin(), path_.end(), '/'));
    if (level < kMaxLevels) {
      enter(child, visitor, level);
    }
  }
}

void CgroupTree::removed(int directory,
                         std::string_view name,
                         Clock::SteadyTime now,
                         TreeVisitor& visitor) {
  const auto known = watched_.find(directory);
  if (known == watched_.end()) {
    return;
  }
  Node& node = *known->second;
  const auto child = node.children.find(name);
  if (child == node.children.end()) {
    return;
  }
  now_ = now;
  const std::uint64_t inode = inode_of(node.path + '/' + child->first);
  if (inode != 0 && inode == child->second->inode) {
    return;  // an older one of this name was removed
  }
  drop(*child->second, node.use, visitor);
  node.children.erase(child);
}

void for_each_cgroup(int root_fd,
                     const std::string& path,
                     const std::function<bool(const std::string& path)>& visit,
                     int levels) {
  std::vector<std::pair<std::string, int>> left = {{path, 0}};
  constexpr std::size_t kSize = 4096;  // most of these directories are small
  std::array<char, kSize> entries;  // NOLINT(cppcoreguidelines-pro-type-member-init): written first
  std::vector<std::string> names;
  while (!left.empty()) {
    const auto [current, level] = std::move(left.back());
    left.pop_back();
    if (!visit(current)) {
      return;
    }
    if (level >= levels) {
      continue;
    }
    const char* const relative = current.empty() ? "." : current.c_str() + 1;
    const UniqueFd fd(::openat(root_fd, relative, kOpenDirectory | O_NOFOLLOW));
    if (!fd.valid()) {
      continue;
    }
    names.clear();
    for_each_directory(fd.get(), entries, [&names](std::string_view name, std::uint64_t) {
      names.emplace_back(name);
    });
    std::sort(names.begin(), names.end(), std::greater<>());
    for (const std::string& name : names) {
      std::string below = current;
      below += '/';
      below += name;
      left.emplace_back(std::move(below), level + 1);
    }
  }
}

}  // namespace ceems::exporter
