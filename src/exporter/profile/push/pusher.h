#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "exporter/profile/format/profile.h"
#include "exporter/profile/push/config.h"
#include "net/client/client.h"

namespace ceems::exporter::profile {

/// Whose profile it is.
struct PushTarget {
  std::string service_name;  ///< the unit, by which the load balancer decides who may see it
  std::string pid;
};

/// The message push.v1.PushRequest
/// (https://github.com/grafana/pyroscope/blob/main/api/push/v1/push.proto) with one profile in one
/// series. `raw_profile` is what pprof() returns. Values become valid UTF-8.
std::string encode_push_request(const PushTarget& target,
                                const std::map<std::string, std::string>& external_labels,
                                std::string_view raw_profile);

struct PusherOptions {
  std::chrono::milliseconds timeout{10'000};    ///< of one request
  std::chrono::milliseconds first_pause{1000};  ///< after a failure; doubled after each further one
  std::chrono::milliseconds max_pause{30'000};  ///< also limits what Retry-After asks for
  std::size_t max_queue_bytes = std::size_t{16} << 20U;
};

/// All counters since the start, except the queue's, which are current values.
struct PushCounters {
  std::uint64_t pushed = 0;   ///< accepted by the server
  std::uint64_t retried = 0;  ///< requests that were repeats
  std::uint64_t failed = 0;   ///< given up: refused by the server, or no retry was left
  std::uint64_t dropped = 0;  ///< pushed out of the full queue by newer ones
  std::uint64_t queued = 0;   ///< now in the queue, including the one that is being sent
  std::uint64_t queued_bytes = 0;
};

/// Pushes profiles to Pyroscope from a bounded queue, one at a time on its own thread, as unary
/// calls of the Connect protocol (https://connectrpc.com/docs/protocol/). Connection errors, 408,
/// 429 and 5xx except 501 are retried after a pause that grows with every failure in a row. When
/// the queue is full, the oldest profile in it is dropped. Failures are logged when they begin and
/// when they are over.
class Pusher {
 public:
  /// `clock` must outlive the object. Passes on errors of net::Client::create().
  static Result<std::unique_ptr<Pusher>> create(PushConfig config,
                                                const Clock& clock,
                                                PusherOptions options = {});
  /// Stops at once: a request in flight is cancelled, and what is in the queue is lost.
  ~Pusher();
  Pusher(const Pusher&) = delete;
  Pusher& operator=(const Pusher&) = delete;

  /// Encodes the profile and queues it; does not wait for the server. Nothing is queued if no stack
  /// shows code. The first call starts the thread. Call it from one thread. kInternal if the
  /// profile cannot be compressed.
  Result<> add(const PushTarget& target, const Profile& profile) CEEMS_EXCLUDES(mutex_);

  [[nodiscard]] PushCounters counters() const CEEMS_EXCLUDES(mutex_);  ///< thread-safe

 private:
  /// What became of one request.
  enum class Outcome : std::uint8_t {
    kDone,
    kRetry,     ///< it may succeed later
    kFailed,    ///< the server or the configuration is wrong; a repeat is useless
    kRejected,  ///< the server does not want this profile
  };

  Pusher(PushConfig config,
         const Clock& clock,
         PusherOptions options,
         std::unique_ptr<net::Client> client);

  void run(const std::stop_token& stop);
  void deliver(const std::string& body, const std::stop_token& stop);
  Result<net::ClientResponse> send(const std::string& body);
  Outcome judge(const Result<net::ClientResponse>& response);
  void pause(const std::stop_token& stop);
  void note_failure(const std::string& why);
  void note_rejection(const std::string& why);
  void note_success();

  const PushConfig config_;
  const PusherOptions options_;
  const std::string url_;    ///< of the call
  const std::string shown_;  ///< the server, without a password
  const Clock& clock_;
  const std::unique_ptr<net::Client> client_;

  // Used by the thread only.
  std::chrono::milliseconds pause_;
  std::chrono::milliseconds asked_pause_{0};  ///< by the last response
  bool failing_ = false;
  bool rejection_logged_ = false;
  Clock::SteadyTime rejection_logged_at_{};

  mutable Mutex mutex_;
  Condition changed_;
  std::deque<std::string> queue_ CEEMS_GUARDED_BY(mutex_);  ///< bodies of requests
  bool overflowing_ CEEMS_GUARDED_BY(mutex_) = false;
  PushCounters counters_ CEEMS_GUARDED_BY(mutex_);
  std::jthread thread_;  ///< last, because it uses all other members
};

}  // namespace ceems::exporter::profile
