#include "net/server/listen.h"

#include <fcntl.h>
#include <linux/vm_sockets.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include <fmt/format.h>

#include "base/check.h"
#include "base/strings.h"
#include "net/server/port_holder.h"

namespace ceems::net {

namespace {

struct Bindable {
  sockaddr_storage address{};
  socklen_t size = 0;
};

template <typename Address>
Bindable bindable(const Address& address, socklen_t size = sizeof(Address)) {
  Bindable result;
  std::memcpy(&result.address, &address, sizeof(Address));
  result.size = size;
  return result;
}

template <typename Address>
Address address_as(const sockaddr_storage& storage) {
  Address address{};
  std::memcpy(&address, &storage, sizeof(Address));
  return address;
}

std::string numeric_host(const void* address, socklen_t size) {
  std::array<char, NI_MAXHOST> host{};
  const int status = ::getnameinfo(static_cast<const sockaddr*>(address), size, host.data(),
                                   host.size(), nullptr, 0, NI_NUMERICHOST);
  return status == 0 ? std::string(host.data()) : std::string("?");
}

Result<std::uint32_t> parse_port(std::string_view text, std::string_view whole, std::uint32_t max) {
  const auto port = parse_int<std::uint32_t>(text);
  if (!port || *port > max) {
    return fail(ErrorCode::kInvalidArgument,
                "listen address '{}': expected a port from 0 to {}, got '{}'", printable(whole),
                max, printable(text));
  }
  return *port;
}

struct Opened {
  UniqueFd fd;
  int error = 0;  ///< errno of the call that failed
};

Opened open_socket(const Bindable& where, bool dual_stack) {
  const int family = where.address.ss_family;
  Opened opened;
  opened.fd.reset(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int fd = opened.fd.get();
  if (fd < 0) {
    opened.error = errno;
    return opened;
  }
  const int on = 1;
  const int off = 0;
  if (family == AF_INET || family == AF_INET6) {
    ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  }
  if (family == AF_INET6) {
    ::setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, dual_stack ? &off : &on, sizeof(on));
  }
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&where.address), where.size) != 0 ||
      ::listen(fd, SOMAXCONN) != 0) {
    opened.error = errno;
  }
  return opened;
}

/// The error of a failed bind() or listen().
Error bind_error(const std::string& name, int errno_value, std::uint32_t tcp_port) {
  if (errno_value != EADDRINUSE) {
    return errno_error(errno_value, "listen " + name);
  }
  const std::string holder =
      tcp_port == 0 ? std::string() : port_holder(static_cast<std::uint16_t>(tcp_port));
  return Error{ErrorCode::kUnavailable,
               holder.empty()
                   ? fmt::format("listen {}: address already in use", name)
                   : fmt::format("listen {}: address already in use by {}", name, holder)};
}

Result<std::vector<Bindable>> resolve(const ListenAddress& address) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const std::string port = fmt::format("{}", address.port);
  const int status = ::getaddrinfo(address.host.c_str(), port.c_str(), &hints, &list);
  if (status != 0) {
    return fail(ErrorCode::kInvalidArgument, "listen {}:{}: {}", printable(address.host),
                address.port, ::gai_strerror(status));
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(list, &::freeaddrinfo);
  std::vector<Bindable> found;
  // If a name has both, IPv4 comes first, as in net.Listen of Go (https://pkg.go.dev/net#Listen).
  for (const int family : {AF_INET, AF_INET6}) {
    for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
      if (entry->ai_family == family && entry->ai_addrlen <= sizeof(sockaddr_storage)) {
        Bindable one;
        std::memcpy(&one.address, entry->ai_addr, entry->ai_addrlen);
        one.size = entry->ai_addrlen;
        found.push_back(one);
      }
    }
  }
  return found;
}

Result<Listener> finish(UniqueFd fd) {
  CEEMS_CHECK(fd.valid());
  sockaddr_storage bound{};
  socklen_t size = sizeof(bound);
  if (::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&bound), &size) != 0) {
    return fail(errno_error(errno, "getsockname"));
  }
  Listener listener;
  listener.address = address_text(bound, size);
  listener.fd = std::move(fd);
  return listener;
}

Result<Listener> listen_tcp(const ListenAddress& address) {
  if (address.host.empty()) {
    sockaddr_in6 any6{};
    any6.sin6_family = AF_INET6;
    any6.sin6_port = htons(static_cast<std::uint16_t>(address.port));
    auto both = open_socket(bindable(any6), true);
    if (both.error == 0) {
      return finish(std::move(both.fd));
    }
    if (both.error == EADDRINUSE || both.error == EACCES) {
      return fail(bind_error(fmt::format(":{}", address.port), both.error, address.port));
    }
    sockaddr_in any4{};  // the kernel has no IPv6
    any4.sin_family = AF_INET;
    any4.sin_port = htons(static_cast<std::uint16_t>(address.port));
    auto only4 = open_socket(bindable(any4), false);
    if (only4.error != 0) {
      return fail(bind_error(fmt::format(":{}", address.port), only4.error, address.port));
    }
    return finish(std::move(only4.fd));
  }
  CEEMS_TRY(candidates, resolve(address));
  const bool is_v6 = address.host.find(':') != std::string::npos;
  const std::string name = is_v6 ? fmt::format("[{}]:{}", address.host, address.port)
                                 : fmt::format("{}:{}", address.host, address.port);
  int first_errno = EADDRNOTAVAIL;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    auto opened = open_socket(candidates[i], false);
    if (opened.error == 0) {
      return finish(std::move(opened.fd));
    }
    if (i == 0) {
      first_errno = opened.error;
    }
  }
  return fail(bind_error(name, first_errno, address.port));
}

Result<Listener> listen_unix(const ListenAddress& address) {
  sockaddr_un local{};
  local.sun_family = AF_UNIX;
  if (address.path.size() >= sizeof(local.sun_path)) {
    return fail(ErrorCode::kInvalidArgument, "listen unix:{}: the path is longer than {} bytes",
                printable(address.path), sizeof(local.sun_path) - 1);
  }
  std::memcpy(local.sun_path, address.path.c_str(), address.path.size() + 1);
  struct stat info{};
  const UniqueFd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (::lstat(address.path.c_str(), &info) == 0 && S_ISSOCK(info.st_mode) && probe.valid() &&
      ::connect(probe.get(), reinterpret_cast<const sockaddr*>(&local), sizeof(local)) != 0 &&
      errno == ECONNREFUSED) {
    ::unlink(address.path.c_str());  // left behind by a process that has ended
  }
  auto opened = open_socket(bindable(local), false);
  if (opened.error != 0) {
    return fail(bind_error("unix:" + address.path, opened.error, 0));
  }
  auto listener = finish(std::move(opened.fd));
  if (listener) {
    listener->unix_path = address.path;
  }
  return listener;
}

Result<Listener> listen_vsock(const ListenAddress& address) {
  sockaddr_vm local{};
  local.svm_family = AF_VSOCK;
  local.svm_cid = VMADDR_CID_ANY;
  local.svm_port = address.port == 0 ? VMADDR_PORT_ANY : address.port;
  auto opened = open_socket(bindable(local), false);
  if (opened.error != 0) {
    return fail(bind_error(fmt::format("vsock://:{}", address.port), opened.error, 0));
  }
  return finish(std::move(opened.fd));
}

}  // namespace

Result<ListenAddress> parse_listen_address(std::string_view text) {
  constexpr std::string_view kUnix = "unix:";
  constexpr std::string_view kVsock = "vsock://";
  ListenAddress address;
  if (text.empty()) {
    return address;
  }
  if (text.starts_with(kUnix)) {
    address.kind = ListenAddress::Kind::kUnix;
    address.path = text.substr(kUnix.size());
    if (address.path.empty() || address.path.find('\0') != std::string::npos) {
      return fail(ErrorCode::kInvalidArgument,
                  "listen address '{}': expected a path behind 'unix:'", printable(text));
    }
    return address;
  }
  const bool vsock = text.starts_with(kVsock);
  const std::string_view rest = vsock ? text.substr(kVsock.size()) : text;
  const std::size_t colon = rest.rfind(':');
  const std::size_t bracket = rest.rfind(']');
  if (colon == std::string_view::npos || (bracket != std::string_view::npos && colon < bracket)) {
    return fail(ErrorCode::kInvalidArgument, "listen address '{}': the port is missing",
                printable(text));
  }
  std::string_view host = rest.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find_first_of(":[]") != std::string_view::npos) {
    return fail(ErrorCode::kInvalidArgument,
                "listen address '{}': write an IPv6 address in brackets, as in [::1]:9010",
                printable(text));
  }
  if (vsock && !host.empty()) {
    return fail(ErrorCode::kInvalidArgument, "listen address '{}': expected vsock://:PORT",
                printable(text));
  }
  CEEMS_TRY(port, parse_port(rest.substr(colon + 1), text, vsock ? UINT32_MAX - 1 : 65535));
  address.kind = vsock ? ListenAddress::Kind::kVsock : ListenAddress::Kind::kTcp;
  address.host = host;
  address.port = port;
  return address;
}

Result<Listener> listen_on(const ListenAddress& address) {
  switch (address.kind) {
    case ListenAddress::Kind::kUnix:
      return listen_unix(address);
    case ListenAddress::Kind::kVsock:
      return listen_vsock(address);
    case ListenAddress::Kind::kTcp:
      break;
  }
  return listen_tcp(address);
}

Result<std::vector<Listener>> systemd_listeners(
    const std::function<std::string(const std::string&)>& environment, int pid) {
  constexpr int kFirst = 3;
  const auto count = parse_int<int>(environment("LISTEN_FDS"));
  const auto meant_for = parse_int<int>(environment("LISTEN_PID"));
  if (!count || *count < 1 || meant_for != pid) {
    return fail(ErrorCode::kInvalidArgument,
                "no socket was passed by systemd (LISTEN_FDS and LISTEN_PID)");
  }
  std::vector<Listener> listeners;
  for (int fd = kFirst; fd - kFirst < *count; ++fd) {
    int listening = 0;
    socklen_t size = sizeof(listening);
    if (::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) != 0 || listening == 0) {
      return fail(ErrorCode::kInvalidArgument,
                  "descriptor {} passed by systemd is not a listening stream socket", fd);
    }
    ::fcntl(fd, F_SETFD, FD_CLOEXEC);
    ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
    CEEMS_TRY(listener, finish(UniqueFd(fd)));
    listeners.push_back(std::move(listener));
  }
  return listeners;
}

std::string address_text(const sockaddr_storage& address, socklen_t size) {
  switch (address.ss_family) {
    case AF_INET: {
      const auto ip = address_as<sockaddr_in>(address);
      return fmt::format("{}:{}", numeric_host(&ip, sizeof(ip)), ntohs(ip.sin_port));
    }
    case AF_INET6: {
      const auto ip = address_as<sockaddr_in6>(address);
      return fmt::format("[{}]:{}", numeric_host(&ip, sizeof(ip)), ntohs(ip.sin6_port));
    }
    case AF_VSOCK: {
      const auto vm = address_as<sockaddr_vm>(address);
      return vm.svm_cid == VMADDR_CID_ANY ? fmt::format("vsock://:{}", vm.svm_port)
                                          : fmt::format("vsock://{}:{}", vm.svm_cid, vm.svm_port);
    }
    case AF_UNIX: {
      const auto local = address_as<sockaddr_un>(address);
      const auto used = static_cast<std::size_t>(size) - offsetof(sockaddr_un, sun_path);
      return "unix:" + std::string(local.sun_path, ::strnlen(local.sun_path, used));
    }
    default:
      return "unknown";
  }
}

std::string peer_text(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    const auto ip = address_as<sockaddr_in>(address);
    return numeric_host(&ip, sizeof(ip));
  }
  if (address.ss_family == AF_INET6) {
    const auto ip = address_as<sockaddr_in6>(address);
    if (IN6_IS_ADDR_V4MAPPED(&ip.sin6_addr)) {
      sockaddr_in plain{};
      plain.sin_family = AF_INET;
      std::memcpy(&plain.sin_addr, &ip.sin6_addr.s6_addr[12], sizeof(plain.sin_addr));
      return numeric_host(&plain, sizeof(plain));
    }
    return numeric_host(&ip, sizeof(ip));
  }
  if (address.ss_family == AF_VSOCK) {
    return fmt::format("vsock:{}", address_as<sockaddr_vm>(address).svm_cid);
  }
  return "unix";
}

}  // namespace ceems::net
