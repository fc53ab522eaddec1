#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/mutex.h"
#include "base/result.h"
#include "net/cidr.h"
#include "net/http.h"

namespace ceems::api {

/// Limits the requests per minute of each client. The rate is estimated over clock-aligned minutes
/// as previous·(1 − elapsed fraction of this minute) + current. Safe for concurrent use; memory is
/// bounded.
class RateLimiter {
 public:
  struct Peers {
    net::TrustedPeers proxies = {};  ///< whose headers count; if empty, every peer's
    net::TrustedPeers exempt = {};   ///< clients without a limit
  };

  /// `limit` is in requests per minute. Clients are identified by the address in the headers of
  /// proxies.
  RateLimiter(long limit, Peers peers) : limit_(limit), peers_(std::move(peers)) {}

  struct Verdict {
    bool allowed = false;
    long remaining = 0;
    std::int64_t reset = 0;  ///< end of this minute, epoch seconds
  };
  Verdict count(const std::string& client, std::int64_t now_ms);

  /// The address of the client, from True-Client-IP, X-Real-IP, the first entry of X-Forwarded-For,
  /// or the peer. An IPv6 address becomes its /64 network.
  [[nodiscard]] std::string client_of(const net::Request& request) const;

  /// Whether the client is exempt from the limit. Its address is that of the peer or, if the peer
  /// is one of the configured proxies, the last address in X-Forwarded-For that is not a proxy.
  /// Other headers and other peers can name any address, so they do not count here.
  [[nodiscard]] bool is_exempt(const net::Request& request) const;

  /// Counts the request, unless its client is exempt, and adds the X-Ratelimit-* headers. Returns
  /// false after answering with 429.
  bool admit(const net::Request& request, net::Response& response, std::int64_t now_ms);

 private:
  struct Counts {
    std::int64_t minute = 0;
    long current = 0;
    long previous = 0;
  };
  void forget_old(std::int64_t minute) CEEMS_REQUIRES(mutex_);

  const long limit_;
  const Peers peers_;
  Mutex mutex_;
  std::unordered_map<std::string, Counts> clients_ CEEMS_GUARDED_BY(mutex_);
};

}  // namespace ceems::api
