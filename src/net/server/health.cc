#include "net/server/health.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
// After the one above, which headers of older kernels do not include.
#include <linux/vm_sockets.h>
#include <sys/time.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include <fmt/format.h>

#include "base/fd.h"
#include "base/strings.h"
#include "net/server/listen.h"

namespace ceems::net {
namespace {

/// A method of our own: a server with TLS takes the small letter for a record that is none and ends
/// the connection, without the warning that it logs for plain HTTP.
std::string request_for(std::string_view path) {
  return fmt::format("probe {} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", path);
}

Error socket_error(std::string_view address, int number) {
  const bool late = number == EAGAIN || number == EINPROGRESS || number == ETIMEDOUT;
  return {late ? ErrorCode::kTimeout : ErrorCode::kUnavailable,
          late ? fmt::format("{}: no reaction in time", printable(address))
               : fmt::format("{}: {}", printable(address), errno_error(number, "probe").message)};
}

/// Connects, sends, and waits for the first byte or the end.
Result<> ask(std::string_view name,
             int family,
             const void* address,
             socklen_t size,
             std::chrono::milliseconds timeout,
             const std::string& request) {
  const UniqueFd socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(timeout);
  const timeval limit{
      .tv_sec = seconds.count(),
      .tv_usec = std::chrono::duration_cast<std::chrono::microseconds>(timeout - seconds).count()};
  if (!socket.valid() ||
      ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) != 0 ||
      ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) != 0 ||
      ::connect(socket.get(), static_cast<const sockaddr*>(address), size) != 0 ||
      ::send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL) < 0) {
    return fail(socket_error(name, errno));
  }
  std::array<char, 16> first{};
  // A reset is a connection that the server has closed before it had read everything.
  if (::recv(socket.get(), first.data(), first.size(), 0) < 0 && errno != ECONNRESET) {
    return fail(socket_error(name, errno));
  }
  return {};
}

Result<> ask_tcp(std::string_view name,
                 const ListenAddress& where,
                 std::chrono::milliseconds timeout,
                 const std::string& request) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const bool anywhere = where.host.empty() || where.host == "::" || where.host == "0.0.0.0";
  const std::string port = fmt::format("{}", where.port);
  const int status =
      ::getaddrinfo(anywhere ? (where.host == "::" ? "::1" : "127.0.0.1") : where.host.c_str(),
                    port.c_str(), &hints, &list);
  if (status != 0) {
    return fail(ErrorCode::kInvalidArgument, "{}: {}", printable(name), ::gai_strerror(status));
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(list, &::freeaddrinfo);
  Result<> last;
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    last = ask(name, entry->ai_family, entry->ai_addr, entry->ai_addrlen, timeout, request);
    if (last) {
      break;
    }
  }
  return last;
}

}  // namespace

Result<> probe(std::string_view address, std::chrono::milliseconds timeout, std::string_view path) {
  CEEMS_TRY(where, parse_listen_address(address));
  const std::string request = request_for(path);
  switch (where.kind) {
    case ListenAddress::Kind::kUnix: {
      sockaddr_un local{};
      local.sun_family = AF_UNIX;
      if (where.path.size() >= sizeof(local.sun_path)) {
        return fail(ErrorCode::kInvalidArgument, "{}: the path is too long", printable(address));
      }
      std::memcpy(local.sun_path, where.path.c_str(), where.path.size() + 1);
      return ask(address, AF_UNIX, &local, sizeof(local), timeout, request);
    }
    case ListenAddress::Kind::kVsock: {
      sockaddr_vm local{};
      local.svm_family = AF_VSOCK;
      local.svm_cid = VMADDR_CID_LOCAL;
      local.svm_port = where.port;
      return ask(address, AF_VSOCK, &local, sizeof(local), timeout, request);
    }
    case ListenAddress::Kind::kTcp:
      break;
  }
  return ask_tcp(address, where, timeout, request);
}

bool all_react(const std::vector<std::string>& addresses,
               std::chrono::milliseconds timeout,
               std::string_view path) {
  return std::ranges::all_of(addresses, [timeout, path](const std::string& address) {
    return address.starts_with("vsock:") || probe(address, timeout, path);
  });
}

int report_health(const std::vector<std::string>& addresses, std::string_view path) {
  constexpr std::chrono::seconds kMaxWait{5};
  int status = 0;
  for (const std::string& address : addresses) {
    if (const auto reacts = probe(address, kMaxWait, path); !reacts) {
      fmt::print(stderr, "{}\n", reacts.error().message);
      status = 1;
    }
  }
  return status;
}

}  // namespace ceems::net
