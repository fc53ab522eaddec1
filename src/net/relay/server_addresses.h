#pragma once

#include <sys/socket.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ceems::net {

/// An address to which a socket can be connected.
class SocketAddress {
 public:
  /// Copies an address of any family.
  SocketAddress(const sockaddr* address, socklen_t size);
  /// The address of a unix socket. `path` must pass check_unix_path().
  static SocketAddress of_unix(std::string_view path);

  [[nodiscard]] const sockaddr* data() const { return reinterpret_cast<const sockaddr*>(&place_); }
  [[nodiscard]] socklen_t size() const { return size_; }
  [[nodiscard]] int family() const { return place_.ss_family; }
  /// "192.0.2.1", "2001:db8::1"; empty for a unix socket.
  [[nodiscard]] std::string numeric() const;
  bool operator==(const SocketAddress& other) const;

 private:
  sockaddr_storage place_{};
  socklen_t size_;
};
using SocketAddresses = std::vector<SocketAddress>;

/// Finds the addresses of a name, which may take long. It runs on a detached thread that may
/// outlive main(), so it must own what it uses and must not use anything that is destroyed at the
/// end of the program, including the log.
using Lookup =
    std::function<Result<SocketAddresses>(const std::string& host, const std::string& port)>;

/// Uses the system's resolver: /etc/hosts, DNS, and whatever else nsswitch.conf names. A name
/// server that does not respond causes the delay set in resolv.conf(5), by default 10 s for each
/// server.
Result<SocketAddresses> look_up(const std::string& host, const std::string& port);

/// The addresses of one server. get() returns the known addresses at once and starts a lookup if
/// one is due. Lookups run in the background, one at a time. The known addresses stay in use until
/// a lookup finds others. A lookup that fails or hangs changes nothing and delays neither other
/// servers nor the end of the program: its thread is detached, and ends with the lookup or with the
/// process. Thread-safe.
class ServerAddresses {
 public:
  /// `host` is a name or an address, IPv6 without brackets; an address is never looked up.
  ServerAddresses(std::string host, std::string port, Lookup lookup = look_up);
  /// For a unix socket. The path must pass check_unix_path().
  explicit ServerAddresses(std::string_view unix_path);
  ~ServerAddresses();
  ServerAddresses(const ServerAddresses&) = delete;
  ServerAddresses& operator=(const ServerAddresses&) = delete;

  struct Known {
    std::shared_ptr<const SocketAddresses> list;  ///< never null; empty: none has been found yet
    bool looking = false;                         ///< a lookup is running
    std::string error;                            ///< why the last lookup failed; else empty
  };
  /// Returns the known addresses. Starts a lookup if none is running and the last one ended at
  /// least `max_age` ago, or failed at least 5 s ago.
  Known get(std::chrono::milliseconds max_age = std::chrono::seconds(30));
  /// Returns the known addresses without starting a lookup.
  [[nodiscard]] Known known() const;

  /// False for numeric addresses and unix sockets, which never change.
  [[nodiscard]] bool is_looked_up() const;

  struct State;
  /// While this object lives, `told` is called at the end of each lookup, on the thread that ended
  /// it. `told` must not call the ServerAddresses, whose lock is held meanwhile.
  class Waiting {
   public:
    Waiting(ServerAddresses& addresses, std::function<void()> told);
    ~Waiting();
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

   private:
    std::shared_ptr<State> state_;
    std::function<void()> told_;
  };

 private:
  std::shared_ptr<State> state_;  // shared with a running lookup
};

}  // namespace ceems::net
