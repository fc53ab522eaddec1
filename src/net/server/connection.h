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

/// What all connections of a server share. One thread runs `io` (sockets, timers, the list of
/// connections: touched there only); `workers` run handlers and all else that may take its time.
struct ServerCore {
  ServerCore(ServerOptions server_options, Handler request_handler);

  ServerOptions options;
  Handler handler;
  std::unique_ptr<WebAccess> web;
  std::atomic<bool> stopping = false;
  std::unordered_map<Connection*, std::weak_ptr<Connection>> connections;

  Mutex mutex;
  Condition changed;
  std::size_t open CEEMS_GUARDED_BY(mutex) = 0;  ///< connections

  // In this order: queued work of the pool holds coroutines, which hold sockets of io.
  asio::io_context io{1};
  Keepers keepers;  ///< of the same thread
  /// Never expires; its waits are cancelled when a connection ends.
  Timer room{io.get_executor(), std::chrono::steady_clock::time_point::max()};
  /// Made by start_workers(): threads that exist before privileges are dropped would keep them.
  std::unique_ptr<asio::thread_pool> workers;
  /// Password checks: one at a time, and those that wait hold no worker.
  std::unique_ptr<asio::strand<asio::thread_pool::executor_type>> password_checks;

  std::string date;  ///< of the second `date_of`; I/O thread only
  std::time_t date_of = 0;
  std::chrono::steady_clock::time_point hinted{};  ///< last "plain HTTP on a TLS port" line

  /// Once, before the first connection is accepted.
  void start_workers();

  /// Date of now in the form of RFC 9110 §5.6.7.
  const std::string& http_date();
};

/// Serves one accepted socket until it ends. Lives on the I/O thread.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(ServerCore& core, Socket socket, std::string peer);

  /// The coroutine of a connection; owns it.
  static Task<void> serve(std::shared_ptr<Connection> self);

  /// Between requests, nothing of the next one received.
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

  /// The socket is closed when the time is up before the next call.
  void arm(std::chrono::milliseconds time);
  void disarm();
  void watch();

  ServerCore& core_;
  std::unique_ptr<Stream> stream_;
  std::string peer_;
  /// Set anew for nearer deadlines only: most requests end long before, and a timer that is set
  /// costs more than all else here.
  Timer timer_;
  std::chrono::steady_clock::time_point deadline_ = std::chrono::steady_clock::time_point::max();
  bool watched_ = false;
  std::string received_;  ///< bytes not yet used
  bool idle_ = true;
  bool first_ = true;
  bool tls_ = false;
  bool drain_ = false;  ///< unread bytes may be under way: see linger()
  bool cut_ = false;    ///< the answer broke off: see reset()
};

}  // namespace ceems::net
