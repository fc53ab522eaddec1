#include "exporter/unit/directory_watch.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace ceems::exporter {
namespace {

constexpr std::size_t kBufferSize = std::size_t{16} << 10U;  // some 300 events

}  // namespace

Result<DirectoryWatch> DirectoryWatch::create(std::string root) {
  UniqueFd fd(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!fd.valid()) {
    return fail(errno_error(errno, "inotify_init1"));
  }
  return DirectoryWatch(std::move(fd), std::move(root));
}

DirectoryWatch::DirectoryWatch(UniqueFd fd, std::string root)
    : fd_(std::move(fd)), root_(std::move(root)), buffer_(kBufferSize) {}

Result<int> DirectoryWatch::add(const std::string& path) {
  path_ = root_;
  path_ += path;
  path_ += "/.";  // the root may be a symbolic link
  const int directory = ::inotify_add_watch(
      fd_.get(), path_.c_str(), IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ONLYDIR);
  if (directory < 0) {
    return fail(errno_error(errno, "inotify_add_watch"));
  }
  return directory;
}

void DirectoryWatch::remove(int directory) {
  ::inotify_rm_watch(fd_.get(), directory);
}

std::size_t DirectoryWatch::read(const std::function<void(const Event&)>& take) {
  ssize_t size = -1;
  do {
    size = ::read(fd_.get(), buffer_.data(), buffer_.size());
  } while (size < 0 && errno == EINTR);
  std::size_t count = 0;
  for (std::size_t at = 0; size > 0 && at < static_cast<std::size_t>(size);) {
    struct inotify_event head{};
    std::memcpy(&head, buffer_.data() + at, sizeof head);
    // The name is padded with NULs to a multiple of the header's size.
    const char* const name = buffer_.data() + at + sizeof head;
    at += sizeof head + head.len;
    ++count;
    if ((head.mask & IN_Q_OVERFLOW) != 0) {
      take({.lost = true});
    } else if ((head.mask & IN_ISDIR) != 0 && head.len > 0) {
      take({.directory = head.wd,
            .name = std::string_view(name, ::strnlen(name, head.len)),
            .created = (head.mask & (IN_CREATE | IN_MOVED_TO)) != 0});
    }
  }
  return count;
}

}  // namespace ceems::exporter
