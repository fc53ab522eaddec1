#pragma once

// Internal to the server, because it exposes Asio.

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "net/relay/answer_parser.h"
#include "net/relay/relay.h"
#include "net/stream.h"

namespace ceems::net {

/// The upstreams to which the I/O thread of one server keeps idle connections. The destructor
/// closes these connections, which must not outlive the io_context.
class Keepers {
 public:
  Keepers() = default;
  Keepers(const Keepers&) = delete;
  Keepers& operator=(const Keepers&) = delete;
  ~Keepers();

  /// Call it after adding a connection to the upstream's. Also closes connections to all upstreams
  /// that have been idle for too long, at most once a second.
  void add(const std::shared_ptr<Upstream>& upstream);

 private:
  void clean(std::chrono::steady_clock::time_point now);

  std::map<const Upstream*, std::weak_ptr<Upstream>> all_;
  std::chrono::steady_clock::time_point cleaned_{};
};

/// Relays one request to an upstream and the response back. Used on the I/O thread only.
class Relaying {
 public:
  /// `client_gone` is called about once a second while the relay waits. If it returns true, the
  /// request ends.
  Relaying(asio::io_context& io, Keepers& keepers, Relay& relay, std::function<bool()> client_gone);
  ~Relaying();
  Relaying(const Relaying&) = delete;
  Relaying& operator=(const Relaying&) = delete;

  /// Tries the servers until one begins a response. Returns false if none does; end() then says
  /// why.
  Task<bool> start();
  // Valid after start() has returned true:
  [[nodiscard]] const AnswerParser& answer() const { return *parser_; }
  /// Gives the next piece of the (filtered) body, or an empty one at its end. Returns false if the
  /// response broke off.
  Task<bool> next(std::string& piece);
  /// The length of the body that the client gets, if it is known.
  [[nodiscard]] std::optional<std::uint64_t> length() const;
  [[nodiscard]] bool filtered() const { return filtered_; }

  [[nodiscard]] RelayEnd& end() { return end_; }

 private:
  enum class Outcome : std::uint8_t {
    kAnswered,
    kNotSent,     ///< no connection
    kMaybeSent,   ///< a new connection broke off without a response
    kKeptClosed,  ///< a kept connection did, which says nothing about the server
  };

  Task<Outcome> attempt(const Relay::Attempt& attempt);
  Task<Outcome> exchange(const Relay::Attempt& attempt, bool reused);
  bool take_kept(Upstream& upstream);
  Task<bool> connect(Upstream& upstream);
  Task<ServerAddresses::Known> find_addresses(Upstream& upstream);
  Task<bool> read_more(std::chrono::milliseconds patience);
  void arm(std::chrono::milliseconds time);
  void watch();
  void keep();

  asio::io_context& io_;
  Keepers& keepers_;
  Relay& relay_;
  std::function<bool()> client_gone_;
  Timer timer_;
  std::chrono::steady_clock::time_point deadline_{};
  bool watched_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Upstream::Flight> flight_;
  std::shared_ptr<Upstream> upstream_;
  std::unique_ptr<AnswerParser> parser_;
  std::unique_ptr<BodyFilter> filter_;
  bool filtered_ = false;
  std::string received_;   // bytes not yet used
  std::size_t piece_ = 0;  // how many bytes to read at once
  std::string body_;       // decoded, not yet handed out
  bool timed_out_ = false;
  bool gone_ = false;
  bool waiting_ = false;    // for a response, and another server could be tried
  bool abandoned_ = false;  // given up because the server hangs
  bool has_next_ = false;
  bool local_ = false;       // the failure is this machine's, not the server's
  bool sent_whole_ = false;  // the request was sent completely
  RelayEnd end_;
};

}  // namespace ceems::net
