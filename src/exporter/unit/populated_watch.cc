#include "exporter/unit/populated_watch.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <exception>
#include <limits>
#include <utility>

#include "base/log.h"

namespace ceems::exporter {
namespace {

constexpr std::uint64_t kWake = std::numeric_limits<std::uint64_t>::max();

}  // namespace

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
