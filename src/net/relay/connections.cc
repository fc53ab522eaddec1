#include "net/relay/connections.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>

#include <boost/asio/error.hpp>
#include <boost/asio/redirect_error.hpp>

namespace ceems::net {

using std::chrono::milliseconds;

namespace {

constexpr milliseconds kFullSocketPause{20};  // before a full unix socket is tried again

/// A unix socket takes a connection at once, or is full and has to be tried again: Asio would wait
/// for it to become writable, which it is, and take that for success.
Task<void> connect_unix(Socket& socket, const SocketAddress& address, ErrorCondition& error) {
  static_cast<void>(socket.native_non_blocking(true, error));
  Timer pause(socket.get_executor());
  while (!error && ::connect(socket.native_handle(), address.data(), address.size()) != 0) {
    if (errno != EAGAIN) {
      error.assign(errno, boost::system::system_category());
      break;
    }
    pause.expires_after(kFullSocketPause);
    ErrorCondition ignored;
    auto token = asio::redirect_error(kAwait, ignored);
    co_await pause.async_wait(token);
    if (!socket.is_open()) {
      error = asio::error::operation_aborted;
    }
  }
}

}  // namespace

Task<void> connect_socket(Socket& socket, const SocketAddress& address, ErrorCondition& error) {
  const bool is_unix = address.family() == AF_UNIX;
  const int protocol = is_unix ? 0 : IPPROTO_TCP;
  static_cast<void>(socket.open(asio::generic::stream_protocol(address.family(), protocol), error));
  if (error) {
    co_return;
  }
  if (is_unix) {
    co_await connect_unix(socket, address, error);
    co_return;
  }
  const asio::generic::stream_protocol::endpoint endpoint(address.data(), address.size(), protocol);
  auto token = asio::redirect_error(kAwait, error);
  co_await socket.async_connect(endpoint, token);
  const int on = 1;
  ::setsockopt(socket.native_handle(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

}  // namespace ceems::net
