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
  /// "vsock://:port", "unix:/path"; port 0 is any free one.
  std::vector<std::string> listen_addresses;
  bool systemd_socket = false;  ///< use LISTEN_FDS sockets instead of the addresses
  std::string web_config_file;  ///< --web.config.file; empty: plain HTTP, no auth
  /// Called around reading that file and those it names, to raise a privilege meanwhile; may be
  /// empty. Any thread, not for every request.
  std::function<void(const std::function<void()>& read)> around_files = {};
  int threads = 2;
  /// Called first, on the thread of all connections: sets Response::relay within microseconds, or
  /// returns false and leaves the request to the handler. Not called where there is a web
  /// configuration. Must not wait for anything; may be empty.
  std::function<bool(const Request&, Response&)> inline_handler = {};
  std::chrono::milliseconds header_timeout{2000};
  std::chrono::milliseconds read_timeout{10000};
  std::chrono::milliseconds write_timeout{10000};
  std::chrono::milliseconds idle_timeout{10000};
  std::size_t max_header_bytes = 16384;
  std::size_t max_body_bytes = 1U << 20U;
  std::size_t max_connections = 10000;
  /// Compress answers of text and JSON types when the client asks and the handler set no
  /// Content-Encoding: gzip, zstd. 0 turns it off.
  int gzip_level = 0;
};

/// HTTP/1.1 server: keep-alive, pipelining-safe, TLS and basic auth by the web configuration
/// (exporter-toolkit format, re-read when its files change; a broken one answers 500 and is
/// logged), limits, timeouts. start() and stop() are called from one thread; handlers run on
/// `threads` workers.
class Server {
 public:
  /// Binds and validates everything; nothing is accepted before start(). Errors: kUnavailable for a
  /// port in use (the message names address and, where it can be told, the process that holds it),
  /// kInvalidArgument or kParse for a bad web configuration (file, line, key).
  static Result<std::unique_ptr<Server>> create(ServerOptions options, Handler handler);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  void start();
  /// Stops accepting, lets requests in flight finish until the deadline, then closes what is left.
  void stop(std::chrono::milliseconds grace = std::chrono::milliseconds(5000));
  /// Bound addresses with real ports, e.g. "127.0.0.1:9010", in the order of the options.
  [[nodiscard]] std::vector<std::string> addresses() const;

 private:
  struct Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ceems::net
