#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "base/result.h"
#include "net/client/client.h"
#include "net/relay/server_addresses.h"

struct ssl_ctx_st;

namespace ceems::net {

struct UpstreamOptions {
  std::string host = {};  ///< a name or an address, IPv6 without brackets
  std::string port = {};
  std::string unix_socket = {};  ///< a path instead of both, without TLS; see unix_url.h
  Lookup lookup = look_up;
  /// What is known of the same host and port already, to go on with; null: nothing.
  std::shared_ptr<ServerAddresses> addresses = {};
  bool use_tls = false;
  TlsOptions tls = {};
  /// For each address; as long again for those of a name of which none is known yet.
  std::chrono::milliseconds connect_timeout{5000};
  /// From the request to the first byte of its answer; queries may run for minutes.
  std::chrono::milliseconds answer_timeout{300'000};
  std::chrono::milliseconds idle_timeout{60'000};  ///< between pieces of an answer
  std::size_t max_kept = 64;                       ///< connections that wait for the next request
  std::chrono::milliseconds keep_for{30'000};

  /// The same server, spoken to in the same way: all but what finds its addresses.
  [[nodiscard]] bool same_server(const UpstreamOptions& other) const;
};

/// A server that requests are passed on to, with its kept connections. Options, address and the
/// counters may be read from any thread; connections belong to the I/O thread of one net::Server:
/// while that is being destroyed, no other thread may let go of the last reference.
class Upstream {
 public:
  /// kInvalidArgument for TLS files or a path of a socket that cannot be used.
  static Result<std::shared_ptr<Upstream>> create(UpstreamOptions options);
  ~Upstream();
  Upstream(const Upstream&) = delete;
  Upstream& operator=(const Upstream&) = delete;

  [[nodiscard]] const UpstreamOptions& options() const { return options_; }
  [[nodiscard]] std::string address() const;  ///< "host:port", or the path of the unix socket
  [[nodiscard]] ServerAddresses& addresses() { return *addresses_; }
  [[nodiscard]] std::shared_ptr<ServerAddresses> shared_addresses() const { return addresses_; }

  [[nodiscard]] bool alive() const { return alive_; }
  void set_alive(bool alive) { alive_ = alive; }
  [[nodiscard]] int in_flight() const { return in_flight_; }
  /// Whoever watches the server finds that it takes connections but answers nothing: requests that
  /// wait for it go to another server if they may.
  [[nodiscard]] bool hangs() const { return hangs_; }
  void set_hangs(bool hangs) { hangs_ = hangs; }
  /// How long requests have been waiting without a byte of any answer; 0 when there are none.
  [[nodiscard]] std::chrono::milliseconds silence() const;
  void heard();  ///< a byte

  /// The TLS side, made anew when one of its files has changed. Null without TLS. Where that cannot
  /// be done, as while a certificate is there and its key not yet, the old one stays in use, which
  /// is logged. Thread-safe.
  Result<std::shared_ptr<ssl_ctx_st>> tls_context();

  struct Kept;  // connections.h
  [[nodiscard]] Kept& kept() { return *kept_; }
  /// Closes the kept connections. On their I/O thread, or when it does not run.
  void drop_kept();
  /// Counts a request while it lives.
  class Flight {
   public:
    explicit Flight(Upstream& upstream) : upstream_(&upstream) {
      if (upstream.in_flight_++ == 0) {
        upstream.heard();
      }
    }
    Flight(const Flight&) = delete;
    Flight& operator=(const Flight&) = delete;
    ~Flight() { --upstream_->in_flight_; }

   private:
    Upstream* upstream_;
  };

 private:
  explicit Upstream(UpstreamOptions options);

  UpstreamOptions options_;
  std::shared_ptr<ServerAddresses> addresses_;
  std::atomic<bool> alive_ = true;
  std::atomic<int> in_flight_ = 0;
  std::atomic<bool> hangs_ = false;
  std::atomic<std::chrono::steady_clock::rep> heard_ = 0;  // time of the last byte
  Mutex mutex_;
  std::string tls_files_ CEEMS_GUARDED_BY(mutex_);  // what the context was made of
  std::shared_ptr<ssl_ctx_st> context_ CEEMS_GUARDED_BY(mutex_);
  std::string bad_files_ CEEMS_GUARDED_BY(mutex_);  // what none could be made of
  std::chrono::steady_clock::time_point tried_ CEEMS_GUARDED_BY(mutex_);  // last in vain
  std::unique_ptr<Kept> kept_;
};

}  // namespace ceems::net
