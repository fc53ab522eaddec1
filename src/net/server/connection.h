#pragma once

// Internal to the server.

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "net/relay/relaying.h"
#include "net/server/exchange.h"
#include "net/server/fair_queue.h"
#include "net/server/request_memory.h"
#include "net/server/request_parser.h"
#include "net/server/server_core.h"
#include "net/server/web_access.h"
#include "net/stream.h"

namespace ceems::net {

/// Serves one accepted socket until it is closed. Used on the I/O thread only.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(ServerCore& core, Socket socket, std::string peer);

  /// The coroutine that runs a connection and owns it.
  static Task<void> serve(std::shared_ptr<Connection> self);

  /// True between requests, while no byte of the next one has been received.
  [[nodiscard]] bool idle() const { return idle_; }
  void close();
  /// Drops the request if it waits for a worker and its client has left, or it has waited too long.
  /// True if it is to be looked at again. If a worker has taken up a request of
  /// ServerOptions::waits, it is given up once its client has left.
  bool drop_if_late(std::chrono::steady_clock::time_point now);
  /// Tells the handler of a request of ServerOptions::waits to end.
  void give_up();

 private:
  /// What the web configuration says about a request.
  struct Access {
    std::shared_ptr<const WebRules> rules;
    WebAccess::Verdict verdict = WebAccess::Verdict::kAllowed;
    bool decided = false;
  };
  /// A job that waits for a worker, or was taken by one.
  struct Wait {
    FairQueue* queue;
    FairQueue::Ticket ticket;
    std::chrono::steady_clock::time_point since;
  };

  /// Clients open connections before they need them, and Go's does not repeat a request for which
  /// such a connection is closed.
  [[nodiscard]] std::chrono::milliseconds first_byte_timeout() const;
  Task<bool> start_tls();
  Task<void> answer_plain_http();

  // connection_request.cc: from the first byte of a request to its response
  Task<bool> serve_one();
  Task<bool> read_header(RequestParser& parser, RequestMemory::Share& memory);
  Task<bool> read_body(RequestParser& parser, RequestMemory::Share& memory);
  Task<std::size_t> read_more();
  bool feed(RequestParser& parser, RequestMemory::Share& memory);
  Task<Turn> admit(Request& request, Access& access, bool& with_body);
  Task<bool> refuse(int status, std::string_view why);
  Task<bool> answer(Exchange& exchange, Access& access);
  Task<bool> answer_dropped(Exchange& exchange, Turn turn);
  bool produce_inline(Exchange& exchange);
  Task<Turn> produce(Exchange& exchange, Access& access);
  void look_up(Request& request, Access& access);
  Task<Turn> authenticate(Request& request, Access& access);
  Task<void> check_password(Request& request, Access& access);
  /// Runs `work`, which must not throw, on a worker when it is this user's turn. Unless it is
  /// dropped before: work that is not `droppable` is always run.
  Task<Turn> in_turn(Request& request, const std::function<void()>& work, bool droppable);

  // connection.cc
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
  bool drain_ = false;          ///< unread bytes may still arrive: see linger()
  bool cut_ = false;            ///< the response broke off: see reset()
  bool timed_out_ = false;      ///< closed at a deadline
  bool out_of_memory_ = false;  ///< the request does not fit into what requests may occupy
  std::optional<Wait> wait_;
  std::optional<std::stop_source> given_up_;  ///< of Request::given_up
};

}  // namespace ceems::net
