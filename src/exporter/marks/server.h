#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"
#include "exporter/marks/ledger.h"
#include "exporter/marks/peer.h"
#include "exporter/marks/token_bucket.h"

namespace ceems::exporter::marks {

/// Limits of a server, by unit and for the node.
struct Limits {
  double unit_messages = 200;  ///< a second; twice as many at once
  double node_messages = 1000;
  double user_connects = 50;  ///< new connections a second of one user
  double node_connects = 1000;
  std::size_t unit_connections = 512;  ///< open at a time
  std::size_t node_connections = 4096;
};

/// The socket to which jobs send marks: SOCK_SEQPACKET, one message each. A caller that connects is
/// answered with "ok" or "refused REASON"; messages are not answered.
///
/// One thread. Beyond the limits it reads nothing: a unit that sends too much is left alone for
/// kPause, so that its messages fill the buffers of its own sockets and further ones fail in the
/// sender. The destructor stops the thread.
class Server {
 public:
  static constexpr auto kPause = std::chrono::milliseconds(250);
  /// How many messages are thrown away at the beginning of a pause, which are counted as dropped.
  static constexpr int kThrownAway = 64;

  /// Makes the socket, which everybody may connect to, and the directory it is in. A socket that an
  /// earlier process has left behind is replaced. Call it before privileges are dropped. `finder`
  /// is used by the thread alone. `ledger` is shared with the collector. Errors: kInvalidArgument
  /// for a path that is not absolute or too long; the errors of bind(2).
  static Result<std::unique_ptr<Server>> create(const std::string& path,
                                                FindPeer finder,
                                                std::shared_ptr<Ledger> ledger,
                                                const Clock& clock,
                                                Limits limits = {});
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// Starts the thread. Call it once, after privileges were dropped.
  void start();
  /// Takes what has been sent so far, for a second at most, and stops the thread.
  void finish();

  /// Connections that were refused so far. Safe for concurrent use.
  [[nodiscard]] std::uint64_t refused(Refusal refusal) const {
    return refused_.at(static_cast<std::size_t>(refusal)).load(std::memory_order_relaxed);
  }

 private:
  /// What limits a unit.
  struct Gate {
    explicit Gate(const Limits& limits) : bucket(limits.unit_messages, 2 * limits.unit_messages) {}
    TokenBucket bucket;
    Clock::SteadyTime paused_until{};
    std::size_t connections = 0;
  };
  struct Connection {
    UniqueFd socket;
    std::shared_ptr<Ledger::Entry> unit;
    Gate* gate = nullptr;
    Stream stream = {};
  };

  Server(UniqueFd listener,
         UniqueFd epoll,
         UniqueFd wake,
         FindPeer finder,
         std::shared_ptr<Ledger> ledger,
         const Clock& clock,
         Limits limits);

  void run(const std::stop_token& stop);
  int take_events(int patience);
  void drain();
  int wait_time() const;
  void accept_all();
  std::optional<Refusal> admit(UniqueFd& socket);
  void serve(int socket);
  bool read_messages(Connection& connection);
  void pause(Connection& connection);
  void resume();
  void drop(int socket);
  bool arm(int socket, bool known, bool once = true);

  UniqueFd listener_;
  UniqueFd epoll_;
  UniqueFd wake_;
  FindPeer finder_;
  std::shared_ptr<Ledger> ledger_;
  const Clock& clock_;
  Limits limits_;
  std::array<std::atomic<std::uint64_t>, kRefusalCount> refused_{};
  std::atomic<bool> finishing_ = false;

  // Used by the thread alone.
  std::unordered_map<int, Connection> connections_;
  std::unordered_map<Ledger::Entry*, std::unique_ptr<Gate>> gates_;
  TokenBucket messages_;
  TokenBucket connects_;
  std::vector<TokenBucket> users_;  // by uid modulo its size
  std::vector<int> paused_;         // sockets
  Clock::SteadyTime node_paused_until_{};
  Clock::SteadyTime resume_at_{};
  bool accepting_ = true;

  std::jthread thread_;  // the last member, so that it is joined before the others are destroyed
};

}  // namespace ceems::exporter::marks
