#pragma once

#include <atomic>
#include <chrono>
#include <map>
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
  std::string unix_socket = {};  ///< path to use instead of both, without TLS
  Lookup lookup = look_up;
  /// Addresses already known for the same host and port, which are shared; null: none.
  std::shared_ptr<ServerAddresses> addresses = {};
  bool use_tls = false;
  TlsOptions tls = {};
  /// For each address. If no address of a name is known yet, a request also waits this long for the
  /// lookup.
  std::chrono::milliseconds connect_timeout{5000};
  /// From the request to the end of the response header. Queries may run for minutes.
  std::chrono::milliseconds answer_timeout{300'000};
  std::chrono::milliseconds idle_timeout{60'000};  ///< between pieces of a response
  std::size_t max_kept = 64;                       ///< idle connections
  std::chrono::milliseconds keep_for{30'000};

  /// True if all options are equal, except those that only serve to find the addresses.
  [[nodiscard]] bool same_server(const UpstreamOptions& other) const;
};

/// A server that requests are passed on to, with its idle connections. Any thread may read the
/// options, the address and the counters. The connections belong to the I/O thread of one
/// net::Server; while that server is being destroyed, no other thread may release the last
/// reference to the upstream.
class Upstream {
 public:
  /// Returns kInvalidArgument if the TLS files or the path of the socket cannot be used.
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
  /// True if the health checks find that the server accepts connections but does not respond.
  /// Requests that wait for it then go to another server if they may be repeated.
  [[nodiscard]] bool hangs() const { return hangs_; }
  void set_hangs(bool hangs) { hangs_ = hangs; }
  /// How long requests have been waiting without receiving a byte of any response; 0 if there are
  /// no requests.
  [[nodiscard]] std::chrono::milliseconds silence() const;
  void heard();  ///< records that a byte has arrived

  /// Records that the server closed the connection of this user's request without an answer. If it
  /// did so to several users within seconds, it is doubted. Thread-safe.
  void broke_off(const std::string& user);
  /// True if a health request should find out whether the server fails or only some requests do.
  [[nodiscard]] bool doubted() const { return doubted_; }
  void set_doubted(bool doubted) { doubted_ = doubted; }

  /// The TLS context, which is created again when one of its files has changed. Null without TLS.
  /// If the new files cannot be used, for example because the key of a new certificate is still
  /// missing, the old context stays in use and the failure is logged. Thread-safe.
  Result<std::shared_ptr<ssl_ctx_st>> tls_context();

  struct Kept;  // connections.h
  [[nodiscard]] Kept& kept() { return *kept_; }
  /// Closes the idle connections. Call this on their I/O thread, or when that thread is not
  /// running.
  void drop_kept();
  /// Counts a request as in flight while this object lives.
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
  std::atomic<bool> doubted_ = false;
  std::atomic<std::chrono::steady_clock::rep> heard_ = 0;  // time of the last byte
  Mutex mutex_;
  std::string tls_files_ CEEMS_GUARDED_BY(mutex_);  // the state of the files in use
  std::shared_ptr<ssl_ctx_st> context_ CEEMS_GUARDED_BY(mutex_);
  std::string bad_files_ CEEMS_GUARDED_BY(mutex_);  // the state that could not be used
  std::chrono::steady_clock::time_point tried_ CEEMS_GUARDED_BY(mutex_);  // of bad_files_
  /// The users of requests that broke off lately.
  std::map<std::string, std::chrono::steady_clock::time_point> broken_ CEEMS_GUARDED_BY(mutex_);
  std::unique_ptr<Kept> kept_;
};

}  // namespace ceems::net
