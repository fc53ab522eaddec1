#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace ceems::net {

/// A listen address, as given in a flag.
struct ListenAddress {
  enum class Kind { kTcp, kVsock, kUnix };
  Kind kind = Kind::kTcp;
  std::string host;  ///< without brackets; empty: all addresses
  std::uint32_t port = 0;
  std::string path;  ///< of a unix socket
};

/// Parses "host:port", ":port", "[::1]:port", "[192.0.2.1]:port", "vsock://:port" or "unix:/path".
/// An empty text means any free TCP port. kInvalidArgument names the text and what is wrong with
/// it.
Result<ListenAddress> parse_listen_address(std::string_view text);

/// A bound and listening socket, close-on-exec and non-blocking.
struct Listener {
  UniqueFd fd;
  std::string address;    ///< with the real port, e.g. "127.0.0.1:9010", "[::]:9010", "unix:/path"
  std::string unix_path;  ///< file to remove with the listener; else empty
};

/// Binds and listens. ":port" accepts IPv4 and IPv6 if the machine has both. A unix socket file on
/// which no process listens is replaced. Returns kUnavailable for an address in use, and names the
/// process that holds it if that can be found out.
Result<Listener> listen_on(const ListenAddress& address);

/// The sockets passed by systemd (sd_listen_fds(3)): the descriptors from 3 on, if LISTEN_PID is
/// `pid`. Returns kInvalidArgument if there are none, or if one is not a listening stream socket.
Result<std::vector<Listener>> systemd_listeners(
    const std::function<std::string(const std::string&)>& environment, int pid);

/// "192.0.2.1:80", "[2001:db8::1]:80", "vsock://2:80", "unix:/path".
std::string address_text(const sockaddr_storage& address, socklen_t size);

/// The peer in the form of Request::remote_address: without a port; "unix" or "vsock:2" if it has
/// no IP address. An IPv4 peer of a dual-stack socket is shown as IPv4.
std::string peer_text(const sockaddr_storage& address);

}  // namespace ceems::net
