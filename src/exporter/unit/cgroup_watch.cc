#include "exporter/unit/cgroup_watch.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <exception>
#include <limits>
#include <utility>

#include "base/log.h"

namespace ceems::exporter {
namespace {

constexpr std::size_t kBufferSize = std::size_t{16} << 10U;  // some 300 events

constexpr std::uint64_t kWake = std::numeric_limits<std::uint64_t>::max();

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

Result<std::unique_ptr<PopulatedWatch>> PopulatedWatch::create(
    std::function<void(std::uint64_t)> changed) {
  UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!epoll.valid() || !wake.valid()) {
    return fail(errno_error(errno, "epoll"));
  }
  struct epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = kWake;
  if (::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, wake.get(), &event) != 0) {
    return fail(errno_error(errno, "epoll_ctl"));
  }
  return std::unique_ptr<PopulatedWatch>(
      new PopulatedWatch(std::move(epoll), std::move(wake), std::move(changed)));
}

PopulatedWatch::PopulatedWatch(UniqueFd epoll,
                               UniqueFd wake,
                               std::function<void(std::uint64_t)> changed)
    : epoll_(std::move(epoll)),
      wake_(std::move(wake)),
      changed_(std::move(changed)),
      thread_([this] { run(); }) {}

PopulatedWatch::~PopulatedWatch() {
  const std::uint64_t one = 1;
  while (::write(wake_.get(), &one, sizeof one) < 0 && errno == EINTR) {
  }
  thread_.join();
}

bool PopulatedWatch::add(int fd, std::uint64_t token) {
  struct epoll_event event{};
  // Edge-triggered, because kernfs reports EPOLLPRI until the file is read again, and EPOLLIN
  // always.
  event.events = EPOLLPRI | EPOLLET;
  event.data.u64 = token;
  return ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
}

bool PopulatedWatch::add_readable(int fd, std::uint64_t token) {
  struct epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = token;
  return ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
}

void PopulatedWatch::run() {
  std::array<struct epoll_event, 64> events{};
  while (true) {
    const int count =
        ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), -1);
    if (count < 0 && errno != EINTR) {
      log::error("stopped watching for the end of units",
                 {{"err", errno_error(errno, "epoll_wait").message}});
      return;
    }
    for (int i = 0; i < count; ++i) {
      const std::uint64_t token = events.at(static_cast<std::size_t>(i)).data.u64;
      if (token == kWake) {
        return;
      }
      try {
        changed_(token);
      } catch (const std::exception& e) {
        log::error("statistics of a unit that ended cannot be read", {{"err", e.what()}});
      }
    }
  }
}

}  // namespace ceems::exporter
