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
  UniqueFd fd;  // kept open to list it again
  std::optional<Clock::SteadyTime> listed;
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

Result<> CgroupTree::walk(Clock::SteadyTime now, TreeVisitor& visitor) {
  const std::string start = matcher_->start();
  const char* const relative = start.empty() ? "." : start.c_str() + 1;
  // Opened again for each walk: a descriptor that is kept would still show a directory after it was
  // replaced.
  const UniqueFd fd(::openat(root_fd_, relative, kOpenDirectory));
  if (!fd.valid()) {
    return fail(errno_error(errno, fmt::format("open '{}' in the cgroup hierarchy", relative)));
  }
  ++walk_;
  now_ = now;
  path_ = start;
  if (const int error = list(*start_, fd.get(), path_); error != 0) {
    return fail(errno_error(error, fmt::format("list '{}' in the cgroup hierarchy", relative)));
  }
  visit(*start_, fd.get(), visitor, 0);
  return {};
}

// Marks the known children that still exist and adds new ones. Returns 0 or an errno value.
int CgroupTree::list(Node& node, int fd, const std::string& path) {
  if (::lseek(fd, 0, SEEK_SET) < 0) {
    return errno;
  }
  node.listed = now_;
  return for_each_directory(fd, entries_, [&](std::string_view name, std::uint64_t inode) {
    auto known = node.children.find(name);
    if (known != node.children.end() && known->second->inode != inode) {
      return;  // recreated under the same name: dropped now and found by the next walk
    }
    if (known == node.children.end()) {
      auto child = std::make_unique<Node>();
      child->inode = inode;
      std::string below = path;
      below += '/';
      below += name;
      child->match = matcher_->match(below, name, node.match);
      known = node.children.emplace(std::string(name), std::move(child)).first;
    }
    known->second->walk = walk_;
  });
}

void CgroupTree::visit(Node& node, int fd, TreeVisitor& visitor, int level) {
  node.hot = false;
  const std::size_t path_size = path_.size();
  for (auto it = node.children.begin(); it != node.children.end();) {
    Node& child = *it->second;
    if (child.walk != walk_) {
      drop_children(child, visitor);
      if (child.unit) {
        visitor.vanished(*child.unit);
      }
      it = node.children.erase(it);
      continue;
    }
    path_ += '/';
    path_ += it->first;
    if (child.match.kind == Kind::kUnit) {
      if (!child.unit) {
        child.unit = visitor.found(child.match, path_);
      }
      visitor.present(*child.unit);
      node.hot = true;
    } else if (child.match.kind != Kind::kSkip && level < kMaxLevels) {
      enter(child, it->first, fd, visitor, level);
      node.hot = node.hot || child.hot || child.match.kind == Kind::kDescend;
    }
    path_.resize(path_size);
    ++it;
  }
}

void CgroupTree::enter(
    Node& child, const std::string& name, int parent_fd, TreeVisitor& visitor, int level) {
  const bool cold = child.match.kind == Kind::kSearch && !child.hot;
  if (cold && child.listed && now_ - *child.listed < kSearchEvery) {
    return;
  }
  if (live_ && is_leaf(parent_fd, name.c_str())) {
    drop_children(child, visitor);
    child.hot = false;
    return;
  }
  UniqueFd opened;
  if (!child.fd.valid()) {
    opened.reset(::openat(parent_fd, name.c_str(), kOpenDirectory | O_NOFOLLOW));
  }
  const int fd = child.fd.valid() ? child.fd.get() : opened.get();
  const int error = fd < 0 ? errno : list(child, fd, path_);
  if (error != 0 && error != ENOENT && error != ENODEV && !std::exchange(child.refused, true)) {
    log::warn("cannot list a cgroup",
              {{"cgroup", printable(path_)}, {"err", errno_error(error, "list").message}});
  }
  if (error != 0) {
    return;  // if it is gone, the next walk does not find it in its parent
  }
  child.refused = false;
  visit(child, fd, visitor, level + 1);
  if (live_ && opened.valid() && budget_.take()) {
    child.fd = std::move(opened);
  }
}

void CgroupTree::drop_children(Node& node, TreeVisitor& visitor) {
  for (auto& [name, child] : node.children) {
    drop_children(*child, visitor);
    if (child->unit) {
      visitor.vanished(*child->unit);
    }
  }
  node.children.clear();
  if (node.fd.valid()) {
    node.fd.reset();
    budget_.give_back();
  }
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
