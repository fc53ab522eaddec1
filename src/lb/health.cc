#include "lb/health.h"

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <condition_variable>
#include <mutex>

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

/// A socket on its way to the server's first address; invalid where there is none.
UniqueFd begin_connect(const net::Upstream& server) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(server.options().host.c_str(), server.options().port.c_str(), &hints, &found) !=
      0) {
    return {};
  }
  const AddressList list(found);
  UniqueFd fd(::socket(list->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (fd.valid() && ::connect(fd.get(), list->ai_addr, list->ai_addrlen) != 0 &&
      errno != EINPROGRESS) {
    return {};
  }
  return fd;
}

bool is_connected(int fd) {
  int error = 0;
  socklen_t size = sizeof error;
  return ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
}

}  // namespace

std::vector<bool> probe(const std::vector<std::shared_ptr<net::Upstream>>& servers,
                        milliseconds patience) {
  std::vector<bool> alive(servers.size(), false);
  std::vector<UniqueFd> sockets;
  for (const auto& server : servers) {
    sockets.push_back(begin_connect(*server));
  }
  const auto end = steady_clock::now() + patience;
  while (true) {
    std::vector<pollfd> waiting;
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < sockets.size(); ++i) {
      if (sockets[i].valid()) {
        waiting.push_back({.fd = sockets[i].get(), .events = POLLOUT, .revents = 0});
        places.push_back(i);
      }
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
        alive[places[i]] = is_connected(waiting[i].fd);
        sockets[places[i]].reset();
      }
    }
  }
}

void keep_watch(const std::stop_token& stop,
                const std::function<std::vector<std::shared_ptr<net::Upstream>>()>& servers,
                milliseconds interval,
                milliseconds patience) {
  std::mutex mutex;
  std::condition_variable_any wake;
  while (!stop.stop_requested()) {
    const auto watched = servers();
    const auto alive = probe(watched, patience);
    for (std::size_t i = 0; i < watched.size(); ++i) {
      if (watched[i]->alive() != alive[i]) {
        watched[i]->set_alive(alive[i]);
        if (alive[i]) {
          log::info("a backend is back", {{"backend", watched[i]->address()}});
        } else {
          log::warn("a backend cannot be reached", {{"backend", watched[i]->address()}});
        }
      }
    }
    std::unique_lock lock(mutex);
    wake.wait_for(lock, stop, interval, [] { return false; });
  }
}

}  // namespace ceems::lb
