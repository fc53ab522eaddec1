#include "net/relay/connections.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <deque>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>

namespace ceems::net {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

namespace {

constexpr milliseconds kFullSocketPause{20};  // before a full unix socket is tried again

/// Connects to a unix socket. It accepts a connection at once, or it is full and connect() must be
/// called again. Asio would wait for the socket to become writable, which it already is, and take
/// that for success.
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

/// The connections that one probe tries to make. They may end after the probe.
struct Attempts {
  explicit Attempts(asio::io_context& io) : changed(io.get_executor()) {}

  Timer changed;  ///< cancelled to wake the probe
  std::deque<std::pair<SocketAddress, Socket>> begun;
  std::size_t pending = 0;
  bool connected = false;
  bool shortage = false;
};

Task<void> attempt(std::shared_ptr<Attempts> attempts, std::size_t place) {
  auto& [address, socket] = attempts->begun[place];
  ErrorCondition error;
  co_await connect_socket(socket, address, error);
  attempts->connected = attempts->connected || !error;
  attempts->shortage = attempts->shortage || is_shortage(error);
  --attempts->pending;
  attempts->changed.cancel();
}

/// Begins an attempt for each address that has none.
void begin_attempts(asio::io_context& io,
                    const std::shared_ptr<Attempts>& attempts,
                    const SocketAddresses& addresses) {
  for (const SocketAddress& address : addresses) {
    const bool begun = std::ranges::any_of(
        attempts->begun, [&](const auto& entry) { return entry.first == address; });
    if (!begun) {
      attempts->begun.emplace_back(address, io.get_executor());
      ++attempts->pending;
      asio::co_spawn(io.get_executor(), attempt(attempts, attempts->begun.size() - 1),
                     asio::detached);
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

bool is_shortage(const ErrorCondition& error) {
  namespace errc = boost::system::errc;
  return error == errc::too_many_files_open || error == errc::too_many_files_open_in_system ||
         error == errc::not_enough_memory || error == errc::no_buffer_space;
}

Task<Reachability> probe(asio::io_context& io,
                         Upstream& upstream,
                         milliseconds timeout,
                         std::stop_token stop) {
  auto attempts = std::make_shared<Attempts>(io);
  const auto wake = [&io, attempts] { asio::post(io, [attempts] { attempts->changed.cancel(); }); };
  const ServerAddresses::Waiting on_lookup(upstream.addresses(), wake);
  const std::stop_callback on_stop(stop, wake);
  const auto end = steady_clock::now() + timeout;
  auto known = upstream.addresses().get(milliseconds(0));
  begin_attempts(io, attempts, *known.list);
  while (!attempts->connected && (known.looking || attempts->pending > 0) &&
         !stop.stop_requested() && steady_clock::now() < end) {
    attempts->changed.expires_at(end);
    ErrorCondition ignored;
    auto token = asio::redirect_error(kAwait, ignored);
    co_await attempts->changed.async_wait(token);
    known = upstream.addresses().known();
    begin_attempts(io, attempts, *known.list);
  }
  for (auto& [address, socket] : attempts->begun) {
    ErrorCondition ignored;
    static_cast<void>(socket.close(ignored));
  }
  if (attempts->connected) {
    co_return Reachability::kReachable;
  }
  const bool unknown = attempts->shortage || stop.stop_requested();
  co_return unknown ? Reachability::kUnknown : Reachability::kUnreachable;
}

}  // namespace ceems::net
