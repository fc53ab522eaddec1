#include "lb/health.h"

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/fd.h"
#include "base/log.h"

namespace ceems::lb {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

struct AddressListFree {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using AddressList = std::unique_ptr<addrinfo, AddressListFree>;

/// A socket on its way to one of the addresses of the server with this number.
struct Try {
  std::size_t server;
  UniqueFd socket;
};

/// Tries all addresses that the server's name has: it may listen on one of them only.
void begin_tries(const net::Upstream& server, std::size_t number, std::vector<Try>& tries) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(server.options().host.c_str(), server.options().port.c_str(), &hints, &found) !=
      0) {
    return;
  }
  const AddressList list(found);
  for (const addrinfo* address = list.get(); address != nullptr; address = address->ai_next) {
    UniqueFd fd(::socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (fd.valid() &&
        (::connect(fd.get(), address->ai_addr, address->ai_addrlen) == 0 || errno == EINPROGRESS)) {
      tries.push_back({.server = number, .socket = std::move(fd)});
    }
  }
}

bool is_connected(int fd) {
  int error = 0;
  socklen_t size = sizeof error;
  return ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
}

/// Asks the servers that have said nothing for so long, all at the same time; with `again` also
/// those that did not answer before.
void look_for_hangs(const std::vector<Watched>& watched, milliseconds silence, bool again) {
  std::vector<std::jthread> asking;
  for (const Watched& one : watched) {
    const bool suspect = one.upstream->hangs() ? again : one.upstream->silence() >= silence;
    if (!suspect) {
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

std::vector<bool> probe(const std::vector<std::shared_ptr<net::Upstream>>& servers,
                        milliseconds patience) {
  std::vector<bool> alive(servers.size(), false);
  std::vector<Try> tries;
  for (std::size_t i = 0; i < servers.size(); ++i) {
    begin_tries(*servers[i], i, tries);
  }
  const auto end = steady_clock::now() + patience;
  while (true) {
    std::erase_if(tries, [&](const Try& one) { return alive[one.server] || !one.socket.valid(); });
    std::vector<pollfd> waiting;
    waiting.reserve(tries.size());
    for (const Try& one : tries) {
      waiting.push_back({.fd = one.socket.get(), .events = POLLOUT, .revents = 0});
    }
    const auto left = std::chrono::duration_cast<milliseconds>(end - steady_clock::now());
    if (waiting.empty() || left.count() <= 0) {
      return alive;
    }
    if (::poll(waiting.data(), waiting.size(), static_cast<int>(left.count())) < 0 &&
        errno != EINTR) {
      return alive;
    }
    for (std::size_t i = 0; i < waiting.size(); ++i) {
      if (waiting[i].revents != 0) {
        alive[tries[i].server] = alive[tries[i].server] || is_connected(waiting[i].fd);
        tries[i].socket.reset();
      }
    }
  }
}

namespace {

void try_connections(const std::vector<Watched>& watched, milliseconds patience) {
  std::vector<std::shared_ptr<net::Upstream>> servers;
  servers.reserve(watched.size());
  for (const Watched& one : watched) {
    servers.push_back(one.upstream);
  }
  const auto alive = probe(servers, patience);
  for (std::size_t i = 0; i < servers.size(); ++i) {
    const bool now = alive[i] && !servers[i]->hangs();
    if (servers[i]->alive() == now) {
      continue;
    }
    servers[i]->set_alive(now);
    if (now) {
      log::info("a backend is back", {{"backend", servers[i]->address()}});
    } else {
      log::warn("a backend cannot be reached", {{"backend", servers[i]->address()}});
    }
  }
}

void look(const std::vector<Watched>& watched, const WatchTimes& times, bool all) {
  look_for_hangs(watched, times.silence, all);
  if (all) {
    try_connections(watched, times.patience);
  }
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
    look(servers(), times, all);
    std::unique_lock lock(mutex);
    wake.wait_for(lock, stop, times.glance, [] { return false; });
  }
}

}  // namespace ceems::lb
