#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "base/fd.h"

namespace ceems::net {

/// A port of the loopback interface that is reserved for one test, whether or not a socket listens
/// on it. Connections to it are never accepted.
class TestPort {
 public:
  explicit TestPort(bool listening, int backlog = 16) : backlog_(backlog) {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    fd_ = bind();
    spare_ = bind();
    if (listening) {
      listen();
    }
  }
  void listen() { listen(backlog_); }
  /// May be called while the socket is listening, to make room in the backlog.
  void listen(int backlog) { EXPECT_EQ(::listen(fd_.get(), backlog), 0); }
  /// Refuses connections from now on, until listen() is called again. Works only once.
  void stop() { fd_ = std::move(spare_); }
  [[nodiscard]] std::string number() const { return std::to_string(ntohs(address_.sin_port)); }
  /// Starts a connection, which takes a place in the backlog.
  [[nodiscard]] UniqueFd connect() const {
    UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    static_cast<void>(
        ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address_), sizeof address_));
    return fd;
  }

 private:
  UniqueFd bind() {
    UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int on = 1;
    ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    socklen_t size = sizeof address_;
    auto* const raw = reinterpret_cast<sockaddr*>(&address_);
    if (!fd.valid()) {
      ADD_FAILURE() << "no socket";
      return fd;
    }
    EXPECT_EQ(::bind(fd.get(), raw, size), 0);
    EXPECT_EQ(::getsockname(fd.get(), raw, &size), 0);
    return fd;
  }

  int backlog_;
  sockaddr_in address_{};
  UniqueFd fd_;
  UniqueFd spare_;  ///< holds the port when fd_ is closed
};

}  // namespace ceems::net
