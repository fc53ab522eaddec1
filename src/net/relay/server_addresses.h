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

/// Where a socket can be connected to.
class SocketAddress {
 public:
  /// Copies an address of any family.
  SocketAddress(const sockaddr* address, socklen_t size);
  /// Of a unix socket; a path that passes check_unix_path().
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

/// Finds the addresses of a name and takes its time. It runs on a thread that nobody waits for, so
/// it must own what it uses and leave alone what the end of the program destroys, the log too.
using Lookup =
    std::function<Result<SocketAddresses>(const std::string& host, const std::string& port)>;

/// By the system's resolver: /etc/hosts, DNS, whatever nsswitch.conf names. A name server that is
/// silent costs what resolv.conf(5) says, 10 s each by default.
Result<SocketAddresses> look_up(const std::string& host, const std::string& port);

/// The addresses of one server, where those that were found stay in use until others are: whoever
/// asks gets what is known at once, and a lookup that is due runs meanwhile on a thread of its own,
/// one at a time. A lookup that fails or hangs changes nothing and holds up neither other servers
/// nor the end of the program: its thread ends with it, or with the process. Thread-safe.
class ServerAddresses {
 public:
  /// `host` is a name or an address, IPv6 without brackets; an address is never looked up.
  ServerAddresses(std::string host, std::string port, Lookup lookup = look_up);
  /// Of a unix socket; a path that passes check_unix_path().
  explicit ServerAddresses(std::string_view unix_path);
  ~ServerAddresses();
  ServerAddresses(const ServerAddresses&) = delete;
  ServerAddresses& operator=(const ServerAddresses&) = delete;

  struct Known {
    std::shared_ptr<const SocketAddresses> list;  ///< never null; empty: none was found so far
    bool looking = false;                         ///< a lookup is under way
    std::string error;                            ///< why the last one failed; else empty
  };
  /// What is known. Begins a lookup where the last one ended longer ago than `max_age`, or failed 5
  /// s ago, and none is under way.
  Known get(std::chrono::milliseconds max_age = std::chrono::seconds(30));
  /// The same, but begins nothing.
  [[nodiscard]] Known known() const;

  /// False where they cannot change: of numbers and unix sockets.
  [[nodiscard]] bool is_looked_up() const;

  struct State;
  /// While it lives, `told` is called at the end of each lookup: on another thread and under a lock
  /// of the addresses, which it must not ask then.
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
  std::shared_ptr<State> state_;  // a lookup under way holds it as well
};

}  // namespace ceems::net
