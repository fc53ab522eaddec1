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

/// A listening address as a program's flag gives it.
struct ListenAddress {
  enum class Kind { kTcp, kVsock, kUnix };
  Kind kind = Kind::kTcp;
  std::string host;  ///< without brackets; empty: all addresses
  std::uint32_t port = 0;
  std::string path;  ///< of a unix socket
};

/// Reads "host:port", ":port", "[::1]:port", "[192.0.2.1]:port", "vsock://:port", "unix:/path";
/// an empty text means any free TCP port. kInvalidArgument names the text and what is wrong.
Result<ListenAddress> parse_listen_address(std::string_view text);

/// A bound and listening socket, close-on-exec and non-blocking.
struct Listener {
  UniqueFd fd;
  std::string address;    ///< with the real port, e.g. "127.0.0.1:9010", "[::]:9010", "unix:/path"
  std::string unix_path;  ///< to be removed when the listener goes; else empty
};

/// Binds and listens. ":port" takes IPv4 and IPv6 where the machine has both. A unix socket file
/// nobody listens on is replaced. kUnavailable for an address in use, naming the process that holds
/// it where that can be told.
Result<Listener> listen_on(const ListenAddress& address);

/// Sockets passed by systemd (sd_listen_fds(3)): descriptors from 3 on, when LISTEN_PID is `pid`.
/// kInvalidArgument when there is none or one is no listening stream socket.
Result<std::vector<Listener>> systemd_listeners(
    const std::function<std::string(const std::string&)>& environment, int pid);

/// "192.0.2.1:80", "[2001:db8::1]:80", "vsock://2:80", "unix:/path".
std::string address_text(const sockaddr_storage& address, socklen_t size);

/// The peer as Request::remote_address has it: no port; "unix" or "vsock:2" where there is no IP.
/// An IPv4 peer of a dual stack socket reads as IPv4.
std::string peer_text(const sockaddr_storage& address);

}  // namespace ceems::net
