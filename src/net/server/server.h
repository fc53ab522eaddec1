#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "net/http.h"

namespace ceems::net {

class RequestMemory;  // request_memory.h

/// Why a server dropped a request.
enum class Dropped : std::uint8_t {
  kSlowReader,  ///< the client did not take the answer in time, so the connection was closed
  kLate,        ///< it waited too long for a worker and was answered with 503
  kGone,        ///< the client left before it was the request's turn
  kMemory,      ///< requests together occupy too much memory; answered with 503
};

/// "slow_reader", "late", "client_gone", "memory", for metrics.
std::string_view to_string(Dropped what);

struct ServerOptions {
  /// "host:port", ":port" (all addresses, IPv4 and IPv6), "[::1]:port", "[192.0.2.1]:port",
  /// "vsock://:port", "unix:/path". Port 0 means any free port.
  std::vector<std::string> listen_addresses;
  bool systemd_socket = false;  ///< use the sockets of LISTEN_FDS instead
  std::string web_config_file;  ///< --web.config.file; empty: plain HTTP, no auth
  /// Wraps the reading of that file and of the files that it names, for example to raise a
  /// privilege meanwhile. May be empty. It is called on any thread, but not for every request.
  std::function<void(const std::function<void()>& read)> around_files = {};
  /// Called when the certificates of that file are taken into use, at create() and whenever they
  /// were read again, with the time at which the first of them ends, in seconds since the epoch.
  /// On any thread, for metrics. May be empty.
  std::function<void(std::int64_t end)> on_certificate = {};
  int threads = 2;
  /// Called before the handler, on the thread of all connections, so it must not block. It either
  /// sets Response::relay and returns true, or returns false to leave the request to the handler.
  /// It is not called if there is a web configuration. May be empty.
  std::function<bool(const Request&, Response&)> inline_handler = {};
  /// Whether the answer depends on the body of a request with this header. If not, the handler is
  /// called without the body (Request::body_missing), which is never read, and the connection is
  /// closed. Called on a worker if the body has not arrived with the header. May be empty: all
  /// bodies are read.
  std::function<bool(const Request&)> needs_body = {};
  /// Bodies of an announced size up to this are read without asking: the decision by the header
  /// would cost more than they do.
  std::size_t small_body_bytes = 0;
  /// The user for whom a request waits if all workers are busy. Workers serve users in turn. May be
  /// empty: the address of the client counts as the user.
  std::function<std::string(const Request&)> queue_key = {};
  /// Requests that never wait for a worker, because one more thread serves them. May be empty.
  std::function<bool(const Request&)> urgent = {};
  /// Requests whose handler may wait for another server. They have `threads` of their own, of which
  /// each user gets kMaxWaiting at most, so that they cannot occupy the workers of all others.
  /// Request::given_up tells them to end. May be empty.
  std::function<bool(const Request&)> waits = {};
  static constexpr std::size_t kMaxWaiting = 2;
  /// Requests that the handler answers in less than a millisecond without waiting for anything: it
  /// is called for them on the thread of all connections, which saves switching to a worker and
  /// back. On a busy machine, each switch waits for a CPU. May be empty.
  std::function<bool(const Request&)> brief = {};
  /// A request that has waited so long for a worker is answered with 503.
  std::chrono::milliseconds queue_timeout{10000};
  /// Called on any thread, for metrics. May be empty.
  std::function<void(Dropped)> on_dropped = {};

  static constexpr std::size_t kDefaultRequestMemory = std::size_t{256} << 20U;
  /// Bounds the memory of all requests; servers can share it. Null: kDefaultRequestMemory for this
  /// server.
  std::shared_ptr<RequestMemory> request_memory = {};
  /// Called on a worker after a burst of requests. Empty: malloc_trim(3).
  std::function<void()> give_memory_back = {};
  /// If not 0, memory is also given back so long after a request, and for as long as requests come
  /// once in this time. For handlers that need much memory for a short time: the allocator keeps
  /// several times as much as is in use.
  std::chrono::milliseconds give_back_after{0};

  std::chrono::milliseconds header_timeout{2000};
  std::chrono::milliseconds read_timeout{10000};
  /// In which a client must take each piece of an answer, of 256 KiB at most.
  std::chrono::milliseconds write_timeout{10000};
  std::chrono::milliseconds idle_timeout{10000};
  std::size_t max_header_bytes = 16384;
  std::size_t max_body_bytes = 1U << 20U;
  std::size_t max_connections = 10000;
  /// Connections use at most this part of the soft limit of open files at start(): one half, one
  /// third and so on. The rest is for everything else that the program opens.
  std::size_t file_share = 2;
  /// The level at which responses of text, JSON and similar types are compressed, if they have at
  /// least 512 bytes, the client accepts that and the handler set no Content-Encoding. Relayed ones
  /// never are. 0 turns compression off.
  int gzip_level = 0;
};

/// How many connections a server accepts: those it wants, and no more than 1/`share` of the files
/// that may be open, but 8 in any case.
std::size_t connections_allowed(std::size_t wanted, std::size_t open_files, std::size_t share);
/// The soft limit of open files.
std::size_t open_file_limit();

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
  /// the remaining connections. Requests of ServerOptions::waits are given up after a second. Waits
  /// for handlers that are still running.
  void stop(std::chrono::milliseconds grace = std::chrono::milliseconds(5000));
  /// Bound addresses with real ports, e.g. "127.0.0.1:9010", in the order of the options.
  [[nodiscard]] std::vector<std::string> addresses() const;

 private:
  struct Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ceems::net
