#include "lb/health.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <span>
#include <thread>

#include "base/fd.h"
#include "base/log.h"

namespace ceems::lb {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kNoRoom{20};  // before a full unix socket is asked again

/// Wakes a thread that polls.
class Bell {
 public:
  void ring() const {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(fd_.get(), &one, sizeof one);
  }
  void still() const {
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t taken = ::read(fd_.get(), &count, sizeof count);
  }
  [[nodiscard]] int fd() const { return fd_.get(); }

 private:
  UniqueFd fd_{::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
};

/// A socket on its way to one of the addresses of a server.
class Try {
 public:
  explicit Try(const net::SocketAddress& address)
      : address_(address),
        fd_(::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {
    begin();
  }
  void begin() {
    if (!fd_.valid()) {
      return;
    }
    const bool begun = ::connect(fd_.get(), address_.data(), address_.size()) == 0;
    no_room_ = !begun && errno == EAGAIN;
    if (!begun && !no_room_ && errno != EINPROGRESS) {
      fd_.reset();
    }
  }
  [[nodiscard]] bool failed() const { return !fd_.valid(); }
  /// Of a unix socket: not begun, and no use to poll it.
  [[nodiscard]] bool no_room() const { return no_room_; }
  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] const net::SocketAddress& address() const { return address_; }
  /// After something has happened to it.
  bool connected() {
    int error = 0;
    socklen_t size = sizeof error;
    const bool done =
        ::getsockopt(fd_.get(), SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
    fd_.reset();
    return done;
  }

 private:
  net::SocketAddress address_;
  UniqueFd fd_;
  bool no_room_ = false;
};

/// All that is tried of one server: it may listen on one address of its name only.
class Trial {
 public:
  Trial(net::Upstream& server, std::size_t place, const Bell& bell)
      : addresses_(&server.addresses()),
        place_(place),
        waiting_(std::make_unique<net::ServerAddresses::Waiting>(*addresses_,
                                                                 [&bell] { bell.ring(); })) {
    take(addresses_->get(milliseconds(0)));
  }
  [[nodiscard]] std::size_t place() const { return place_; }
  void finish() { finished_ = true; }
  [[nodiscard]] bool finished() const { return finished_; }
  /// Begins what has become known or possible since.
  void go_on() {
    if (looking_) {
      take(addresses_->known());
    }
    for (Try& one : tries_) {
      if (one.no_room()) {
        one.begin();
      }
    }
  }
  [[nodiscard]] bool failed() const {
    return !looking_ && std::ranges::all_of(tries_, &Try::failed);
  }
  [[nodiscard]] bool no_room() const { return std::ranges::any_of(tries_, &Try::no_room); }

  void add_to(std::vector<pollfd>& waiting) const {
    for (const Try& one : tries_) {
      const int fd = one.no_room() ? -1 : one.fd();  // poll(2) passes those below 0 over
      waiting.push_back({.fd = fd, .events = POLLOUT, .revents = 0});
    }
  }
  /// Takes its part of what add_to() added.
  bool connected(std::span<const pollfd>& happened) {
    bool any = false;
    for (Try& one : tries_) {
      any = (happened.front().revents != 0 && one.connected()) || any;
      happened = happened.subspan(1);
    }
    return any;
  }

 private:
  void take(const net::ServerAddresses::Known& known) {
    looking_ = known.looking;
    for (const net::SocketAddress& address : *known.list) {
      if (std::ranges::find(tries_, address, &Try::address) == tries_.end()) {
        tries_.emplace_back(address);
      }
    }
  }

  net::ServerAddresses* addresses_;
  std::size_t place_;
  std::unique_ptr<net::ServerAddresses::Waiting> waiting_;
  bool looking_ = false;
  bool finished_ = false;
  std::vector<Try> tries_;
};

/// Asks the servers that have said nothing for so long, all at the same time; with `again` also
/// those that did not answer before. One whose name is not found yet has not even been connected.
void look_for_hangs(const std::vector<Watched>& watched, milliseconds silence, bool again) {
  std::vector<std::jthread> asking;
  for (const Watched& one : watched) {
    const bool suspect = one.upstream->hangs() ? again : one.upstream->silence() >= silence;
    if (!suspect || one.upstream->addresses().known().list->empty()) {
      continue;
    }
    asking.emplace_back([&one] {
      const bool hangs = !one.answers();
      if (hangs && !one.upstream->hangs()) {
        log::warn("a backend takes connections but answers nothing",
                  {{"backend", one.upstream->address()}});
      }
      one.upstream->set_hangs(hangs);
      if (hangs) {
        one.upstream->set_alive(false);
      }
    });
  }
}

}  // namespace

void probe(const std::vector<std::shared_ptr<net::Upstream>>& servers,
           milliseconds patience,
           const std::stop_token& stop,
           const std::function<void(std::size_t place, bool alive)>& decided) {
  const Bell bell;
  const std::stop_callback on_stop(stop, [&bell] { bell.ring(); });
  std::vector<Trial> trials;
  trials.reserve(servers.size());
  for (const auto& server : servers) {
    trials.emplace_back(*server, trials.size(), bell);
  }
  const auto end = steady_clock::now() + patience;
  while (!stop.stop_requested()) {
    const auto left = std::chrono::ceil<milliseconds>(end - steady_clock::now());
    for (Trial& trial : trials) {
      trial.go_on();
      if (trial.failed() || left.count() <= 0) {
        trial.finish();
        decided(trial.place(), false);
      }
    }
    std::erase_if(trials, [](const Trial& trial) { return trial.finished(); });
    if (trials.empty()) {
      return;
    }
    std::vector<pollfd> waiting = {{.fd = bell.fd(), .events = POLLIN, .revents = 0}};
    for (const Trial& trial : trials) {
      trial.add_to(waiting);
    }
    const auto wait = std::ranges::any_of(trials, &Trial::no_room) ? std::min(left, kNoRoom) : left;
    ::poll(waiting.data(), waiting.size(), static_cast<int>(wait.count()));
    bell.still();
    std::span<const pollfd> happened = std::span(waiting).subspan(1);
    for (Trial& trial : trials) {
      if (trial.connected(happened)) {
        trial.finish();
        decided(trial.place(), true);
      }
    }
    std::erase_if(trials, [](const Trial& trial) { return trial.finished(); });
  }
}

namespace {

void try_connections(const std::vector<Watched>& watched,
                     milliseconds patience,
                     const std::stop_token& stop) {
  std::vector<std::shared_ptr<net::Upstream>> servers;
  servers.reserve(watched.size());
  for (const Watched& one : watched) {
    servers.push_back(one.upstream);
  }
  probe(servers, patience, stop, [&servers](std::size_t place, bool alive) {
    net::Upstream& server = *servers[place];
    const bool now = alive && !server.hangs();
    if (server.alive() == now) {
      return;
    }
    server.set_alive(now);
    if (now) {
      log::info("a backend is back", {{"backend", server.address()}});
    } else {
      log::warn("a backend cannot be reached", {{"backend", server.address()}});
    }
  });
}

/// Between the rounds those that are gone are tried, for a short while: one that a request found
/// gone may have closed a connection and nothing else.
void look(std::vector<Watched> watched,
          const WatchTimes& times,
          bool all,
          const std::stop_token& stop) {
  look_for_hangs(watched, times.silence, all);
  if (!all) {
    std::erase_if(
        watched, [](const Watched& one) { return one.upstream->alive() || one.upstream->hangs(); });
  }
  try_connections(watched, all ? times.patience : std::min(times.patience, times.glance), stop);
}

}  // namespace

void keep_watch(const std::stop_token& stop,
                const std::function<std::vector<Watched>()>& servers,
                const WatchTimes& times) {
  std::mutex mutex;
  std::condition_variable_any wake;
  steady_clock::time_point next{};
  while (!stop.stop_requested()) {
    const bool all = steady_clock::now() >= next;
    if (all) {
      next = steady_clock::now() + times.interval;
    }
    look(servers(), times, all, stop);
    std::unique_lock lock(mutex);
    wake.wait_for(lock, stop, times.glance, [] { return false; });
  }
}

}  // namespace ceems::lb
