#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "net/http.h"

namespace ceems::net {

struct ServerOptions {
  /// "host:port", ":port" (all addresses, IPv4 and IPv6), "[::1]:port", "[192.0.2.1]:port",
  /// "vsock://:port", "unix:/path". Port 0 means any free port.
  std::vector<std::string> listen_addresses;
  bool systemd_socket = false;  ///< use the sockets of LISTEN_FDS instead
  std::string web_config_file;  ///< --web.config.file; empty: plain HTTP, no auth
  /// Wraps the reading of that file and of the files that it names, for example to raise a
  /// privilege meanwhile. May be empty. It is called on any thread, but not for every request.
  std::function<void(const std::function<void()>& read)> around_files = {};
  int threads = 2;
  /// Called before the handler, on the thread of all connections, so it must not block. It either
  /// sets Response::relay and returns true, or returns false to leave the request to the handler.
  /// It is not called if there is a web configuration. May be empty.
  std::function<bool(const Request&, Response&)> inline_handler = {};
  std::chrono::milliseconds header_timeout{2000};
  std::chrono::milliseconds read_timeout{10000};
  std::chrono::milliseconds write_timeout{10000};
  std::chrono::milliseconds idle_timeout{10000};
  std::size_t max_header_bytes = 16384;
  std::size_t max_body_bytes = 1U << 20U;
  std::size_t max_connections = 10000;
  /// The level at which responses of text, JSON and similar types are compressed, if the client
  /// accepts that and the handler set no Content-Encoding. 0 turns compression off.
  int gzip_level = 0;
};

/// An HTTP/1.1 server with keep-alive, pipelining, limits and timeouts. TLS and basic
/// authentication follow the web configuration (docs/web-config.md), which is read again when its
/// files change. While it is invalid, the server responds with 500 and logs the reason. Call
/// start() and stop() from one thread. Handlers run on `threads` workers.
class Server {
 public:
  /// Binds the addresses and validates the options; no connection is accepted before start().
  /// Errors: kUnavailable for a port in use (the message names the address and, if it can be found
  /// out, the process that holds it), kInvalidArgument or kParse for a bad web configuration (file,
  /// line, key).
  static Result<std::unique_ptr<Server>> create(ServerOptions options, Handler handler);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  void start();
  /// Stops accepting connections, gives requests in flight up to `grace` to finish, and then closes
  /// the remaining connections. Waits for handlers that are still running.
  void stop(std::chrono::milliseconds grace = std::chrono::milliseconds(5000));
  /// Bound addresses with real ports, e.g. "127.0.0.1:9010", in the order of the options.
  [[nodiscard]] std::vector<std::string> addresses() const;

 private:
  struct Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ceems::net
