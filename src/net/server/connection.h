#pragma once

// Internal to the server.

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>

#include "base/mutex.h"
#include "net/relay/relaying.h"
#include "net/server/exchange.h"
#include "net/server/listen.h"
#include "net/server/request_parser.h"
#include "net/server/server.h"
#include "net/server/web_access.h"
#include "net/stream.h"

namespace ceems::net {

class Connection;

/// State that all connections of a server share. One thread runs `io`; only that thread uses the
/// sockets, the timers and `connections`. `workers` run the handlers and everything else that may
/// take long.
struct ServerCore {
  ServerCore(ServerOptions server_options, Handler request_handler);

  ServerOptions options;
  Handler handler;
  std::unique_ptr<WebAccess> web;
  std::atomic<bool> stopping = false;
  std::unordered_map<Connection*, std::weak_ptr<Connection>> connections;

  Mutex mutex;
  Condition changed;
  std::size_t open CEEMS_GUARDED_BY(mutex) = 0;  ///< number of connections

  // The order of these members matters: work queued in the pool holds coroutines, which hold
  // sockets of `io`.
  asio::io_context io{1};
  Keepers keepers;  ///< of the thread that runs `io`
  /// Acceptors wait on it while the server is full. It never expires; the waits are cancelled when
  /// a connection ends.
  Timer room{io.get_executor(), std::chrono::steady_clock::time_point::max()};
  /// Created by start_workers(), because threads that exist before privileges are dropped would
  /// keep them.
  std::unique_ptr<asio::thread_pool> workers;
  /// Runs password checks one at a time. Checks that wait do not occupy a worker.
  std::unique_ptr<asio::strand<asio::thread_pool::executor_type>> password_checks;

  std::string date;  ///< HTTP date of the second `date_of`; I/O thread only
  std::time_t date_of = 0;
  std::chrono::steady_clock::time_point hinted{};  ///< when plain HTTP was last logged

  /// Call this once, before the first connection is accepted.
  void start_workers();

  /// The current time as an HTTP date (RFC 9110 §5.6.7).
  const std::string& http_date();
};

/// Serves one accepted socket until it is closed. Used on the I/O thread only.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(ServerCore& core, Socket socket, std::string peer);

  /// The coroutine that runs a connection and owns it.
  static Task<void> serve(std::shared_ptr<Connection> self);

  /// True between requests, while no byte of the next one has been received.
  [[nodiscard]] bool idle() const { return idle_; }
  void close();

 private:
  Task<bool> start_tls();
  Task<void> answer_plain_http();
  Task<bool> serve_one();
  Task<bool> read_request(RequestParser& parser);
  Task<std::size_t> read_more();
  Task<bool> refuse(const RequestParser& parser);
  bool produce_inline(Exchange& exchange);
  Task<void> produce(Exchange& exchange, std::shared_ptr<const WebRules>& rules);
  Task<bool> send(Exchange& exchange, const Headers& extra);
  Task<bool> send_pieces(Exchange& exchange);
  Task<bool> pass_on(Exchange& exchange, const Headers& extra);
  Task<bool> send_relayed(Exchange& exchange, Relaying& relaying, const Headers& extra);
  [[nodiscard]] bool client_gone();
  Task<bool> write(std::string_view first, std::string_view second);
  Task<void> linger();
  void reset();

  /// Closes the socket after `time`, unless arm() or disarm() is called before.
  void arm(std::chrono::milliseconds time);
  void disarm();
  void watch();

  ServerCore& core_;
  std::unique_ptr<Stream> stream_;
  std::string peer_;
  /// Set again for earlier deadlines only. Most requests end long before their deadline, and
  /// setting a timer costs more than everything else here.
  Timer timer_;
  std::chrono::steady_clock::time_point deadline_ = std::chrono::steady_clock::time_point::max();
  bool watched_ = false;
  std::string received_;  ///< bytes not yet used
  bool idle_ = true;
  bool first_ = true;
  bool tls_ = false;
  bool drain_ = false;  ///< unread bytes may still arrive: see linger()
  bool cut_ = false;    ///< the response broke off: see reset()
};

}  // namespace ceems::net
